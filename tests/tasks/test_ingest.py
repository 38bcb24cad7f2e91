"""Dumps, also of several files: what was read has landed or lies in quarantine, or nothing is published; once only."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ssrem.tasks.ingest
from ssrem.errors import SsremError
from ssrem.readers import open_dump
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.stage.stage import last_parameters
from ssrem.tasks.warehouse.home import Warehouse
from support.exports import EXPORTS, write_dump
from support.random_examples import TIMES
from support.reader_rows import rows_of

Rows = list[Any]


def _write(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _row(conversation: str, speaker: str, text: str, **more: object) -> dict[str, object]:
    return {"conversation_id": conversation, "speaker": speaker, "text": text, **more}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two files whose conversations both begin at 1, where the first ends; the second has a row that cannot land."""
    _write(tmp_path / "logs" / "june.jsonl", [_row("1", "june", "hello")])
    _write(tmp_path / "logs" / "may.jsonl", [_row("1", "may", "hello"), _row("2", "may", "bye"), 7])
    return tmp_path / "logs"


def _ids(home: Warehouse) -> list[tuple[Any, ...]]:
    return home.query("SELECT conversation_id, conversation_no, speaker FROM utterances ORDER BY ALL")


def test_conversations_that_repeat_across_files_are_scoped_to_their_file(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Warehouse.at(tmp_path / "home")
    assert land(f"{logs}/*.jsonl", str(home.root), DumpSettings(max_quarantine=0.5)) == ("logs", True)
    numbered = enumerate((("june", 1), ("may", 1), ("may", 2)))
    assert _ids(home) == [(f"{name}.jsonl/{id}", number, name) for number, (name, id) in numbered]
    broken = [("may.jsonl", 3, "broken_json", b"7")]
    assert home.query("SELECT file, line, reason, raw FROM quarantine") == broken
    told = "ids of conversations repeat across files ('1' in 2); each conversation was scoped"
    assert told in capsys.readouterr().err
    files = [str(logs / "may.jsonl"), str(logs / "june.jsonl")]
    assert land(files, str(home.root), DumpSettings(max_quarantine=0.5)) == ("logs", False)
    assert land(str(logs), str(home.root), DumpSettings(max_quarantine=0.5)) == ("logs", False)


@pytest.mark.parametrize(
    ("first", "second", "ids"),
    [
        (  # the last conversation of a file goes on in the next if its messages have ids, which never repeat
            [_row("1", "a", "hello", id="m1")],
            [_row("1", "b", "hi", id="m2", reply_to="m1"), _row("2", "b", "x", id="m3")],
            {("1", "m1", "a"), ("1", "m2", "b"), ("2", "m3", "b")},
        ),
        (  # ids of messages that repeat across files and conversations are scoped to both
            [_row("1", "a", "hello", id="0"), _row("1", "c", "hi", id="1")],
            [_row("1", "b", "hello", id="0")],
            {("a.jsonl/1", f"a.jsonl/1/{id}", who) for id, who in ((0, "a"), (1, "c"))}
            | {("b.jsonl/1", "b.jsonl/1/0", "b")},
        ),
    ],
)
def test_ids_are_scoped_to_their_file_only_where_they_repeat(
    tmp_path: Path, home: Warehouse, first: Rows, second: Rows, ids: set[Any]
) -> None:
    _write(tmp_path / "logs" / "a.jsonl", first)
    _write(tmp_path / "logs" / "b.jsonl", second)
    land(str(tmp_path / "logs"), str(home.root))
    assert set(home.query("SELECT conversation_id, utterance_id, speaker FROM utterances")) == ids
    addressees = home.query("SELECT addressee FROM utterances WHERE utterance_id = 'm2'")
    assert addressees == ([("a",)] if ("1", "m2", "b") in ids else [])


def _minutes(order: Any) -> Rows:
    at = "2024-01-01T10:0"
    return [_row(f"c{n}", f"s{k % 2}", f"text {k}", time=f"{at}{k}:00") for n in range(3) for k in order]


def _replies(suffix: str, *, named: str = "id") -> Rows:
    to = [None, *(f"{n}{suffix}" for n in range(3))]
    return [_row("c", "ab"[n % 2], f"{n}", reply_to=to[n], **{named: str(n)}) for n in range(4)]


LANDED_ODDLY = {
    "9 of 9 messages are older than one before them in their conversation": _minutes(range(3, -1, -1)),
    "3 of 3 replies are to messages that have not landed, such as '0-x', and so answer nothing": _replies(
        "-x"
    ),
    "no column is taken for the id of a message; name it with --map id=COLUMN": _replies("", named="number"),
}


@pytest.mark.parametrize("said", [*LANDED_ODDLY, None])
def test_an_odd_order_and_replies_that_answer_nothing_are_told(
    tmp_path: Path, home: Warehouse, capsys: pytest.CaptureFixture[str], said: str | None
) -> None:
    # Replies stand where their chain puts them, whatever their times.
    times = [f"2024-01-01T10:0{9 - n}:00" for n in range(6)]
    tree = [
        _row("t", "ab"[n % 2], f"{n}", id=f"r{n}", reply_to="r0" if n else None, time=time)
        for n, time in enumerate(times)
    ]
    rows = LANDED_ODDLY[said] if said else [*_minutes(range(4)), *_replies(""), *tree]
    land(str(_write(tmp_path / "dump.jsonl", rows)), str(home.root))
    notes = capsys.readouterr().err
    assert said in notes if said else not any(text in notes for text in LANDED_ODDLY)


def test_the_ledger_has_every_setting_of_the_corpus_and_pseudonyms_hide_the_names_of_files(
    logs: Path, home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "0123456789abcdef" * 4)
    given = DumpSettings(not_people=("may",), pseudonymise=True, max_quarantine=0.5)
    land(str(logs), str(home.root), given)
    ids = {id for id, *_ in _ids(home)}
    assert len(ids) == 3 and not any("may" in id or "june" in id for id in ids)
    recorded = last_parameters(home, "logs", "ingest")
    fingerprints = {recorded.pop("not_people"), recorded.pop("pseudonym_key")}
    assert all(len(value) in (8, 16) for value in fingerprints)
    assert recorded == {
        **{"corpus": "logs", "format": "jsonl", "sources": [str(logs)], "speakers": "auto"},
        **{"map": None, "encoding": None, "time_format": None},
    }


def test_a_dump_is_opened_once_and_not_before_names_and_keys_are_checked(
    logs: Path, home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def counted(*source: Any, **how: Any) -> Any:
        opened.append(source)
        return open_dump(*source, **how)

    monkeypatch.setattr(ssrem.tasks.ingest, "open_dump", counted)
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY", raising=False)
    slips: list[dict[str, Any]] = [{"name": "a/b"}, {"pseudonymise": True}, {"pseudonym_key": "key"}]
    slips += [{"map": {"txt": "b"}}, {"encoding": "utf-9"}, {"time_format": "%Q"}, {"format": "jsonll"}]
    for slip in slips:
        with pytest.raises(SsremError, match=next(iter(slip)).split("_")[0].removesuffix("ise")):
            land(str(logs), str(home.root), DumpSettings(**slip))
    assert not opened
    land(str(logs), str(home.root), DumpSettings(max_quarantine=0.5))
    assert len(opened) == 1


@pytest.mark.parametrize("format", ["slack", "personachat"])
def test_what_was_read_landed_or_is_quarantined_and_the_rest_is_counted(
    tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, home = write_dump(EXPORTS[format][0], tmp_path / "dump"), Warehouse.at(tmp_path / "home")
    expected = open_dump(dump)
    rows = [row for row in rows_of(expected) if row["record"] == "message"]
    land(str(dump), str(home.root), DumpSettings(max_quarantine=1.0, speakers="conversation"))
    said = " ".join(capsys.readouterr().err.split())
    assert all(f"{count:,} {kind}" in said for kind, count in expected.left_out.items())
    assert all(note in said for note in expected.notes)
    ((landed, quarantined),) = home.query(
        "SELECT (SELECT count(*) FROM utterances), (SELECT count(*) FROM quarantine)"
    )
    assert landed + quarantined == len(rows)
    assert quarantined == sum("problem" in row or "was deleted" in row["text"] for row in rows)
    nobodies = sum(not row.get("is_person", True) for row in rows)
    found = home.query("SELECT format, (SELECT count(*) FROM utterances WHERE NOT is_person) FROM corpora")
    assert found == [(format, nobodies)] and (nobodies or format != "slack")


GOOD = {"conversation": "elsewhere", "id": "good", "speaker": "ann", "text": "hi"}

_text = st.sampled_from(
    ["", " ", "a", "b", "\0", "\ud800", "é\u0301", "\u202e", "'; --", "c#0", "\x1b[2J"]
) | st.text(max_size=4)
_plain = st.none() | st.booleans() | st.integers() | st.floats()
_odd = _plain | st.lists(_text, max_size=2) | st.dictionaries(_text, _text, max_size=2)
_field = _text | _text | _text | _odd
_keys = st.sampled_from(["conversation", "id", "speaker", "text", "reply_to", "addressee", "time", "x"])
_message = st.dictionaries(_keys, _field)
_talk = st.fixed_dictionaries(
    {"id": _field, "ratings": _odd, "utterances": st.lists(_message | _odd, max_size=4)}
)
_json = (_message | _message | _talk | _odd).map(lambda value: json.dumps(value).encode())
_line = _json | st.binary(max_size=20)


@settings(max_examples=3 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(_line, min_size=6, max_size=24), packed=st.booleans())
@example(lines=[b'{"\\ud800":""}', b"{}", b'{"a":{"\\udfff":1}}', b"{}"], packed=False)
def test_what_was_read_landed_or_is_quarantined(lines: list[bytes], packed: bool) -> None:
    content = b"\n".join([json.dumps(GOOD).encode(), *lines])
    with TemporaryDirectory() as folder:
        dump, home = Path(folder, "dump"), Warehouse.at(Path(folder, "home"))
        dump.write_bytes(gzip.compress(content) if packed else content)
        records = [row for batch in open_dump(dump, format="jsonl") for row in batch.to_pylist()]
        how = DumpSettings(format="jsonl", speakers="person", max_quarantine=1.0)
        try:
            land(str(dump), str(home.root), how)
        except SsremError as error:
            assert str(error).isprintable() and home.partitions() == []
            assert not list(home.lake.glob("*")) and not list(home.staging.glob("*"))
            return
        ((read, landed, quarantined, stored, stored_apart),) = home.query(
            "SELECT messages_read, utterances, quarantined, (SELECT count(*) FROM utterances), "
            "(SELECT count(*) FROM quarantine WHERE record = 'message') FROM corpora"
        )
        rows = home.query("SELECT conversation_id, speaker, text FROM utterances")
    assert read == landed + quarantined == sum(row["record"] == "message" for row in records)
    assert (stored, stored_apart) == (landed, quarantined)
    said = [(row["conversation_id"], row["speaker"], row["text"]) for row in records if not row["problem"]]
    for row in rows:
        said.remove(row)


def test_a_dump_that_ends_in_damage_publishes_nothing(home: Warehouse, tmp_path: Path) -> None:
    rows = [{**GOOD, "id": str(number), "text": str(number * 7919)} for number in range(5_000)]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (tmp_path / "dump").write_bytes(packed[: len(packed) * 4 // 5])
    with pytest.raises(SsremError, match="damaged or cut off"):
        land(str(tmp_path / "dump"), str(home.root))
    assert home.partitions() == [] and not list(home.staging.glob("*"))
