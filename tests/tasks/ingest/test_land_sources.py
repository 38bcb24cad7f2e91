"""Several files as one corpus: ids that repeat across them, where a quarantined row is from, and its repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.tasks.ingest.land import land
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.warehouse.home import Warehouse


def _write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _row(conversation: str, speaker: str, text: str, **more: object) -> dict[str, object]:
    return {"conversation_id": conversation, "speaker": speaker, "text": text, **more}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two files whose conversations both begin at 1, the second with a row that cannot land."""
    for name in ("may", "june"):
        rows = [_row("1", name, "hello"), _row("2", name, "bye")]
        _write(tmp_path / "logs" / f"{name}.jsonl", rows + ([7] if name == "may" else []))
    return tmp_path / "logs"


def _ids(home: Warehouse) -> list[tuple[Any, ...]]:
    return home.query("SELECT conversation_id, conversation_no, speaker FROM utterances ORDER BY ALL")


def test_conversations_that_repeat_across_files_are_scoped_to_their_file(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Warehouse.at(tmp_path / "home")
    assert land(f"{logs}/*.jsonl", str(home.root), max_quarantine=0.5) == ("logs", True)
    assert _ids(home) == [
        ("june.jsonl/1", 0, "june"),
        ("june.jsonl/2", 1, "june"),
        ("may.jsonl/1", 2, "may"),
        ("may.jsonl/2", 3, "may"),
    ]
    assert home.query("SELECT file, line, reason, raw FROM quarantine") == [
        ("may.jsonl", 3, "broken_json", b"7")
    ]
    assert (
        "ids of conversations repeat across files ('1' in 2); each conversation was scoped"
        in capsys.readouterr().err
    )
    files = [str(logs / "may.jsonl"), str(logs / "june.jsonl")]
    assert land(files, str(home.root), max_quarantine=0.5) == ("logs", False)
    assert land(str(logs), str(home.root), max_quarantine=0.5) == ("logs", False)


def test_the_last_conversation_of_a_file_does_not_go_on_in_the_next(tmp_path: Path) -> None:
    for name in "ab":
        _write(tmp_path / "logs" / f"{name}.jsonl", [_row("1", name, "hello")])
    home = Warehouse.at(tmp_path / "home")
    land(str(tmp_path / "logs"), str(home.root))
    assert _ids(home) == [("a.jsonl/1", 0, "a"), ("b.jsonl/1", 1, "b")]


def test_a_conversation_whose_messages_have_ids_goes_on_in_the_next_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path / "logs" / "a.jsonl", [_row("1", "a", "hello", id="m1")])
    _write(
        tmp_path / "logs" / "b.jsonl",
        [_row("1", "b", "hi", id="m2", reply_to="m1"), _row("2", "b", "x", id="m3")],
    )
    home = Warehouse.at(tmp_path / "home")
    land(str(tmp_path / "logs"), str(home.root))
    assert _ids(home) == [("1", 0, "a"), ("1", 0, "b"), ("2", 1, "b")]
    assert home.query("SELECT addressee FROM utterances WHERE utterance_id = 'm2'") == [("a",)]
    assert "scoped" not in capsys.readouterr().err


def test_ids_of_messages_that_repeat_in_the_conversations_of_two_files(tmp_path: Path) -> None:
    for name in "ab":
        _write(
            tmp_path / "logs" / f"{name}.jsonl",
            [_row("1", name, "hello", id="0"), _row("1", "c", "hi", id="1")],
        )
    home = Warehouse.at(tmp_path / "home")
    land(str(tmp_path / "logs"), str(home.root))
    ids = home.query("SELECT utterance_id FROM utterances ORDER BY ALL")
    assert ids == [("a.jsonl/1/0",), ("a.jsonl/1/1",), ("b.jsonl/1/0",), ("b.jsonl/1/1",)]


def test_pseudonyms_hide_the_names_of_files(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "0123456789abcdef" * 4)
    home = Warehouse.at(tmp_path / "home")
    land(str(logs), str(home.root), pseudonymise=True, max_quarantine=0.5)
    ids = [id for id, *_ in _ids(home)]
    assert len(set(ids)) == 4 and not any("may" in id or "june" in id for id in ids)


def test_a_corpus_of_several_files_is_repaired_from_them(logs: Path, tmp_path: Path) -> None:
    home = Warehouse.at(tmp_path / "home")
    files = [str(logs / "may.jsonl"), str(logs / "june.jsonl")]
    land(files, str(home.root), name="both", time_format="%d.%m.%Y", encoding="latin-1", max_quarantine=0.5)
    before = _ids(home)
    (damaged,) = [p for p in home.partitions() if p.table == "utterances"]
    (home.root / damaged.path).write_bytes(b"damaged")
    repair(str(home.root))
    assert _ids(home) == before
    assert land(files, str(home.root), name="both", encoding="latin-1") == ("both", False)


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_dump_that_lists_the_newest_first_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], newest_first: bool
) -> None:
    rows = [
        _row(f"c{conversation}", f"s{minute % 2}", f"text {minute}", time=f"2024-01-01T10:0{minute}:00")
        for conversation in range(3)
        for minute in sorted(range(4), reverse=newest_first)
    ]
    land(str(_write(tmp_path / "dump.jsonl", rows)), str(tmp_path / "home"))
    said = "9 of 9 messages are older than one before them in their conversation"
    assert (said in capsys.readouterr().err) == newest_first


@pytest.mark.parametrize("suffix", ["", "-x"])
def test_replies_to_what_has_not_landed_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    rows = [
        _row("c", "ab"[n % 2], f"{n}", id=str(n), reply_to=f"{n - 1}{suffix}" if n else None)
        for n in range(4)
    ]
    land(str(_write(tmp_path / "replies.jsonl", rows)), str(tmp_path / "home"))
    said = "3 of 3 replies are to messages that have not landed, such as '0-x', and so answer nothing"
    assert (said in capsys.readouterr().err) == bool(suffix)


def test_replies_where_no_message_has_an_id_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [_row("c", "ab"[n % 2], f"{n}", number=n, reply_to=n - 1 if n else None) for n in range(4)]
    land(str(_write(tmp_path / "replies.jsonl", rows)), str(tmp_path / "home"))
    said = "and so answer nothing; no column is taken for the id of a message; name it with --map id=COLUMN"
    assert said in capsys.readouterr().err


def test_sources_without_a_name_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="has no name; name the corpus with --name"):
        land("-", str(tmp_path / "home"))
