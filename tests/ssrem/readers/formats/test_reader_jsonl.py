"""JSON lines: rows in, rows out; the two paths alike; nothing lost, whatever the bytes."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.formats.jsonl import JsonlReader
from support.random_examples import TIMES
from support.reader_rows import reader_of, rows_of


def exact(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows by the row by row path alone."""
    reader = reader_of(JsonlReader, path, **options)
    reader._columns = lambda *_: None  # type: ignore[method-assign]
    return rows_of(reader)


def fast(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows by the whole-column path alone."""
    reader = reader_of(JsonlReader, path, **options)
    reader._row_by_row = _refuse  # type: ignore[method-assign, assignment]
    return rows_of(reader)


def _refuse(*_: Any) -> Any:
    raise AssertionError("a plain block left the fast path")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def writer(*lines: Any, name: str = "dump.jsonl") -> Path:
        path = tmp_path / name
        encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path.write_bytes(b"\n".join(encoded) + b"\n")
        return path

    return writer


HELLO = {
    "conversation_id": "c1",
    "utterance_id": "u1",
    "speaker": "ann",
    "addressee": "bob",
    "reply_to": "u0",
    "text": 'Hello – 😀 "you"\n',
    "time": "2018-05-02T19:38:15Z",
}
HELLO_ROW = {
    **HELLO,
    "record": "message",
    "file": "dump.jsonl",
    "line": 1,
    "time": datetime(2018, 5, 2, 19, 38, 15),
}


@pytest.mark.parametrize("read", [fast, exact])
def test_an_utterance_a_line(write: Callable[..., Path], read: Callable[..., Any]) -> None:
    path = write(
        HELLO,
        {
            "id": 7,
            "conversation_id": 1,
            "speaker": None,
            "text": "hi",
            "mood": "glad",
            "likes": 3,
            "at": {"x": True},
        },
    )
    hi = {"record": "message", "file": "dump.jsonl", "line": 2, "conversation_id": "1", "utterance_id": "7"}
    hi |= {"text": "hi", "metadata": '{"at":{"x":true},"likes":3,"mood":"glad"}'}
    if read is exact:
        assert read(path) == [HELLO_ROW, hi]
    else:
        # Mixed kinds of ids need the exact path; alone each kind goes fast.
        assert rows_of(reader_of(JsonlReader, path)) == [HELLO_ROW, hi]
        assert fast(write(HELLO)) == [HELLO_ROW]
        assert fast(
            write(
                {"id": 7, "conversation_id": 1, "text": "hi", "mood": "glad", "likes": 3, "at": {"x": True}}
            )
        ) == [{**hi, "line": 1}]


def test_a_time_that_cannot_be_read_stays_in_the_metadata(write: Callable[..., Path]) -> None:
    first, second = rows_of(reader_of(JsonlReader, write(HELLO, {**HELLO, "time": "soon", "mood": "x"})))
    assert first["time"] == HELLO_ROW["time"]
    assert "time" not in second
    assert second["metadata"] == '{"mood":"x","time":"soon"}'


def test_a_conversation_a_line(write: Callable[..., Path]) -> None:
    path = write(
        {
            "conversation_id": "c1",
            "topic": {"name": "tea", "none": None},
            "utterances": [
                {"speaker": "A", "text": "x", "mood": 1},
                {"id": "u2", "speaker": 2, "text": None},
            ],
        },
        {"id": 5, "utterances": []},
    )
    place = {"file": "dump.jsonl", "line": 1, "conversation_id": "c1"}
    assert rows_of(reader_of(JsonlReader, path)) == [
        {"record": "conversation", **place, "metadata": '{"topic":{"name":"tea"}}'},
        {"record": "message", **place, "speaker": "A", "text": "x", "metadata": '{"mood":1}'},
        {"record": "message", **place, "utterance_id": "u2", "speaker": "2"},
        {"record": "conversation", "file": "dump.jsonl", "line": 2, "conversation_id": "5"},
    ]


@pytest.mark.parametrize("key", ["turns", "talk", "conversation"])
def test_a_list_of_messages_may_have_any_name(write: Callable[..., Path], key: str) -> None:
    path = write({"id": "c", key: [{"speaker": "A", "text": "x"}, {"speaker": "B", "text": "y"}]})
    assert [row.get("text") for row in rows_of(reader_of(JsonlReader, path))] == [None, "x", "y"]


def test_rows_that_are_lists_may_be_long_or_few(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    for text in ("x", "x" * 70_000):
        rows = [[{"speaker": name, "text": text} for name in "AB"] for _ in range(2)]
        path.write_text("\n".join(map(json.dumps, rows)))
        assert len(rows_of(reader_of(JsonlReader, path))) == 6


def test_a_first_message_may_lack_its_text(tmp_path: Path) -> None:
    path = tmp_path / "c1.json"
    path.write_text(json.dumps({"id": "c1", "messages": [{"speaker": "A"}, {"speaker": "B", "text": "x"}]}))
    assert {row["conversation_id"] for row in rows_of(open_dump(path))} == {"c1"}


def test_a_bad_entry_is_reported_and_the_rest_of_its_conversation_read(write: Callable[..., Path]) -> None:
    path = write(
        {"id": "c", "utterances": [{"speaker": "A", "text": "x"}, "oops", {"speaker": ["A"], "text": "y"}]},
        {"id": "d", "utterances": "oops"},
    )
    rows = rows_of(reader_of(JsonlReader, path))
    assert [(r["record"], r.get("problem"), r.get("raw"), r.get("conversation_id")) for r in rows] == [
        ("conversation", None, None, "c"),
        ("message", None, None, "c"),
        ("message", "malformed_row", b'"oops"', "c"),
        ("message", "malformed_row", b'{"speaker":["A"],"text":"y"}', "c"),
        ("message", "malformed_row", b'{"id": "d", "utterances": "oops"}', None),
    ]


def test_lines_that_cannot_be_read_keep_their_bytes_and_number(write: Callable[..., Path]) -> None:
    broken = {
        b'{"speaker": "a", "text": "x"': "broken_json",
        b'{"speaker": "a"} {"speaker": "b"}': "broken_json",
        b"[1, 2]": "broken_json",
        b"7": "broken_json",
        b"null": "broken_json",
        b'  {"a":}\r': "broken_json",
        b'{"text": "\xff\xfe"}': "undecodable",
        b'{"text": "\\ud800"}': "undecodable",
        b'{"text": ["x"]}': "malformed_row",
        b'{"text": "x", "speaker": true}': "malformed_row",
        b"[" * 100_000: "broken_json",
        b'{"a": ' + b"9" * 5000 + b"}": "broken_json",
    }
    rows = rows_of(reader_of(JsonlReader, write(HELLO, b"", *broken, b" \t ", HELLO)))
    assert rows[0] == HELLO_ROW
    assert [(row["raw"], row["problem"]) for row in rows[1:-1]] == list(broken.items())
    assert [row["line"] for row in rows] == [1, *range(3, 3 + len(broken)), 4 + len(broken)]


def test_values_that_are_not_json_are_no_values(write: Callable[..., Path]) -> None:
    (row,) = rows_of(
        reader_of(JsonlReader, write(b'{"speaker": "a", "text": "x", "time": NaN, "score": -Infinity}'))
    )
    assert row == {"record": "message", "file": "dump.jsonl", "line": 1, "speaker": "a", "text": "x"}


@pytest.mark.parametrize(
    "pair",
    [
        (b'{"speaker":"a"}{"speaker":"b"}', b""),
        (b'{"speaker":"a"}{"speaker":', b'"b"}'),
        (b'{"speaker":', b'"a"}{"speaker":"b"}'),
        (b'{"speaker":"a"}{"speaker":"b"}', b"{}x"),
        (b'{"speaker":"a","speaker":"b"}', b"{}"),
    ],
)
def test_objects_that_are_not_one_a_line_are_not_taken_for_it(
    write: Callable[..., Path], pair: tuple[bytes, ...]
) -> None:
    path = write({"speaker": "z"}, *pair, {"speaker": "z"})
    assert rows_of(reader_of(JsonlReader, path)) == exact(path)


def test_whole_numbers_that_are_floats_are_ids_as_integers(write: Callable[..., Path]) -> None:
    row = {"conversation_id": 7.0, "id": 2**53 + 1, "speaker": 1.0, "reply_to": 2.0, "text": 3.0, "time": 4.0}
    path = write(row, {**row, "id": 2.0}, {"id": 8.0, "utterances": [row | {"conversation_id": None}]})
    rows = [row for row in rows_of(reader_of(JsonlReader, path)) if row["record"] == "message"]
    ids = [(row["conversation_id"], row["utterance_id"]) for row in rows]
    assert ids == [("7", str(2**53 + 1)), ("7", "2"), ("8", str(2**53 + 1))]
    assert {(row["speaker"], row["reply_to"], row["text"]) for row in rows} == {("1", "2", "3.0")}
    assert {row["time"] for row in rows} == {datetime(1970, 1, 1, 0, 0, 4)}


_texts = st.text(st.characters(exclude_categories=["Cs"]))
_field = st.none() | _texts
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_utterance = st.fixed_dictionaries(
    {"conversation_id": _field, "speaker": _field, "text": _field},
    optional={
        "utterance_id": st.none() | _texts | st.integers(),
        "reply_to": st.none() | st.integers(-3, 3) | st.integers(-3, 3).map(float) | st.floats(),
        "time": st.none() | st.datetimes().map(str) | st.floats() | st.integers() | st.just("soon"),
        "mood": _field,
        "likes": st.integers(-9, 9) | st.none(),
        "tags": st.lists(_texts, max_size=2),
        "meta": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3) | st.none()),
        "any": _values,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100 * TIMES)
@given(st.lists(_utterance, min_size=1, max_size=8), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
def test_both_paths_give_the_same_rows(
    tmp_path: Path, utterances: list[dict[str, Any]], escaped: bool, newline: bytes
) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_bytes(newline.join(json.dumps(u, ensure_ascii=escaped).encode() for u in utterances))
    assert rows_of(reader_of(JsonlReader, path)) == exact(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(dict.fromkeys(("conversation_id", "speaker", "text", "mood"), _texts)),
        min_size=1,
    )
)
def test_plain_rows_stay_on_the_fast_path(tmp_path: Path, utterances: list[dict[str, str]]) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text("".join(json.dumps(u) + "\n" for u in utterances))
    rows = fast(path)
    assert [{k: row[k] for k in ("conversation_id", "speaker", "text")} for row in rows] == [
        {k: u[k] for k in ("conversation_id", "speaker", "text")} for u in utterances
    ]
    assert [json.loads(row["metadata"]) for row in rows] == [{"mood": u["mood"]} for u in utterances]


def test_fractions_and_lists_are_columns_and_whole_numbers_lose_their_fraction(
    write: Callable[..., Path],
) -> None:
    said = {**HELLO, "score": 0.5, "by": [{"name": "bob", "n": 1}], "none": [], "nulls": [None]}
    path = write(said, {**said, "score": 1.0, "by": []})
    rows = fast(path)
    assert rows == exact(path)
    assert rows[0]["metadata"] == '{"by":[{"n":1,"name":"bob"}],"none":[],"nulls":[null],"score":0.5}'
    mixed = write(said, {**said, "score": 1})
    assert json.loads(rows_of(reader_of(JsonlReader, mixed))[1]["metadata"])["score"] == 1
    assert rows_of(reader_of(JsonlReader, mixed)) == exact(mixed)


_json_bytes = st.sampled_from(
    [b'{"text":"x"}', b"{", b"}", b'"', b"{}", b"[]", b"\r", b" ", b"\xff", b"\\", b"1", b":"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20) | st.lists(_json_bytes, max_size=5).map(b"".join), max_size=30))
def test_whatever_the_bytes_every_line_is_accounted_for(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "dump.jsonl"
    content = b"\n".join([b'{"text":"x"}', *lines])
    path.write_bytes(content)
    wanted = [line for line in content.split(b"\n") if line.strip()]
    rows = rows_of(reader_of(JsonlReader, path))
    assert len(rows) == len(wanted)
    assert all(row["raw"] == line for row, line in zip(rows, wanted, strict=True) if "problem" in row)


@pytest.mark.parametrize("block_bytes", [1, 50, 1000])
def test_blocks_do_not_show(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    lines = [{**HELLO, "utterance_id": f"u{i}", "text": "x" * (i * 7 % 300)} for i in range(100)]
    path = write(*lines, b"{", *lines)
    whole = rows_of(reader_of(JsonlReader, path))
    monkeypatch.setattr("ssrem.readers.files.streams.BLOCK", block_bytes)
    assert rows_of(reader_of(JsonlReader, path, batch_rows=7)) == whole
    assert len(whole) == 201


def test_only_lines_around_an_unusual_one_are_read_one_by_one(write: Callable[..., Path]) -> None:
    lines = [{**HELLO, "utterance_id": f"u{i}"} for i in range(5_000)]
    path = write(*lines, {**HELLO, "time": "soon"}, b"{", b"", *lines)
    alone = []

    class Counting(JsonlReader):
        def _row_by_row(self, lines: Any, file: str, first: int) -> Any:
            alone.append(len(lines))
            return super()._row_by_row(lines, file, first)

    assert rows_of(reader_of(Counting, path)) == exact(path)
    assert 3 <= sum(alone) <= 2_000


def test_packed_dumps_read_as_plain_ones_and_progress_counts_stored_bytes(write: Callable[..., Path]) -> None:
    plain = write(*[{**HELLO, "utterance_id": f"u{i}"} for i in range(500)])
    packer = zstandard.ZstdCompressor()
    half = len(plain.read_bytes()) // 2
    for name, content in {
        "a.bin": gzip.compress(plain.read_bytes()),
        "b.bin": packer.compress(plain.read_bytes()),
        "c.bin": packer.compress(plain.read_bytes()[:half]) + packer.compress(plain.read_bytes()[half:]),
        "d.bin": gzip.compress(plain.read_bytes()[:half]) + gzip.compress(plain.read_bytes()[half:]),
        "e.bin": b"\xef\xbb\xbf" + plain.read_bytes(),
    }.items():
        packed = plain.with_name(name)
        packed.write_bytes(content)
        reader = open_dump(packed)
        assert reader.format == "jsonl"
        assert [{**row, "file": "dump.jsonl"} for row in rows_of(reader)] == rows_of(open_dump(plain))
        assert reader.bytes_read == reader.total_bytes == len(content)


def test_keys_are_renamed_by_a_mapping_on_both_paths(write: Callable[..., Path]) -> None:
    lines = [{"show": "x", "n": i, "who": "ann", "said": "hey", "text": "other", "id": "k"} for i in range(3)]
    mapping = {"conversation": ("show", "n"), "speaker": ("who",), "text": ("said",)}
    path = write(*lines)
    rows = fast(path, mapping=mapping)
    assert rows == exact(path, mapping=mapping)
    assert rows[2] == {
        "record": "message",
        "file": "dump.jsonl",
        "line": 3,
        "conversation_id": "x:2",
        "utterance_id": "k",
        "speaker": "ann",
        "text": "hey",
        "metadata": '{"text":"other"}',
    }
    assert (
        "conversation_id"
        not in rows_of(reader_of(JsonlReader, write({**lines[0], "n": None}), mapping=mapping))[0]
    )


def test_a_mapped_key_may_be_rare(write: Callable[..., Path]) -> None:
    path = write(*[HELLO] * 3000, {**HELLO, "answers": "u9"})
    rows = rows_of(open_dump(path, mapping={"reply_to": "answers"}))
    assert [row.get("reply_to") for row in rows] == [None] * 3000 + ["u9"]


def test_memory_does_not_grow_with_the_dump(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.readers.files.streams.BLOCK", 1 << 16)
    path = write(*[{**HELLO, "utterance_id": f"u{i}"} for i in range(40_000)], b"{")
    list(reader_of(JsonlReader, write(HELLO, name="small.jsonl")))  # imports and caches

    def peak() -> int:
        arrow, most = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        for _ in reader_of(JsonlReader, path, batch_rows=500):
            most = max(most, pa.total_allocated_bytes() - arrow)
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most + python

    assert path.stat().st_size > 6_000_000
    assert peak() < 2_500_000


def test_the_entries_of_one_array_are_rows(write: Callable[..., Path], tmp_path: Path) -> None:
    rows = [HELLO, {"id": "c2", "utterances": [{"speaker": "a", "text": "x"}]}, 7]
    path = tmp_path / "dump.json"
    for indent in (None, 2):
        path.write_text(json.dumps(rows, indent=indent))
        of_array, of_lines = rows_of(open_dump(path)), rows_of(open_dump(write(*rows)))
        for one in (*of_array, *of_lines):
            del one["file"]
        assert of_array == of_lines
    reader = open_dump(path)
    assert sum(batch.num_rows for batch in reader) == 4 and reader.bytes_read == reader.total_bytes


def test_turns_that_are_texts_are_said_by_two_seats(write: Callable[..., Path]) -> None:
    rows = rows_of(
        open_dump(write({"dialog": ["hi", "ho", "hi"], "act": [1, 2, 1]}, {"id": "d", "turns": ["x"]}))
    )
    assert rows[0]["metadata"] == '{"act":[1,2,1]}'
    said = [(r["conversation_id"], r["speaker"], r["text"]) for r in rows if r["record"] == "message"]
    assert said == [("1", "A", "hi"), ("1", "B", "ho"), ("1", "A", "hi"), ("d", "A", "x")]
    (message,) = rows_of(open_dump(write({**HELLO, "turns": ["x"]})))  # a message that has such a key
    assert message["text"] == HELLO["text"]


def test_a_list_of_speakers_names_who_said_the_texts(write: Callable[..., Path]) -> None:
    named = {"dialogue": ["Hi!", "Ho.", "Bye."], "speakers": ["Ann", "Ben", "Ann"]}
    numbered = {**named, "speakers": [1, 2.0, None]}
    rows = rows_of(reader_of(JsonlReader, write(named, numbered, {**named, "speakers": []})))
    speakers = [row.get("speaker") for row in rows if row["record"] == "message"]
    assert speakers == ["Ann", "Ben", "Ann", "1", "2", None, "A", "B", "A"]


@pytest.mark.parametrize("speakers", [["ann", "bob"], ["ann", "bob", "ann", "bob"]])
def test_a_list_of_speakers_that_does_not_name_each_is_a_problem(
    write: Callable[..., Path], speakers: list[Any]
) -> None:
    row = {"id": "x", "dialog": ["hi", "yo", "ok"], "speakers": speakers}
    objects = {"dialog": [{"speaker": "ann", "text": "hi"}], "speakers": speakers}
    (bad, *good) = rows_of(reader_of(JsonlReader, write(row, objects)))
    assert (bad["record"], bad["problem"], json.loads(bad["raw"])) == ("message", "speaker_count", row)
    assert [row.get("problem") for row in good] == [None, None]


@pytest.mark.parametrize("key", ["messages", "turns", "utterances"])
def test_a_conversation_without_an_id_has_the_number_of_its_line(
    write: Callable[..., Path], key: str
) -> None:
    line = {key: [{"speaker": "Ann", "text": "Hi!"}, {"speaker": "Ben", "text": "Ho."}]}
    own = {key: [{"speaker": "Ann", "text": "Hi!", "conversation_id": "own"}]}
    rows = rows_of(reader_of(JsonlReader, write(line, own)))
    assert [row["conversation_id"] for row in rows if row["record"] == "message"] == ["1", "1", "own"]


def test_rows_of_parquet_may_be_conversations(tmp_path: Path) -> None:
    path = tmp_path / "dump.parquet"
    pq.write_table(pa.table({"dialog": [["Hi!", "Ho."], ["Hey."]], "act": [[1, 2], [1]]}), path)
    reader = open_dump(path)
    assert reader.format == "jsonl"
    messages = [row for row in rows_of(reader) if row["record"] == "message"]
    assert [(row["conversation_id"], row["speaker"], row["text"]) for row in messages] == [
        ("1", "A", "Hi!"),
        ("1", "B", "Ho."),
        ("2", "A", "Hey."),
    ]
    pq.write_table(pa.table({"text": ["Hi!"], "dialog": [["Hi!", "Ho."]]}), path)
    with pytest.raises(DumpError, match="no column is known as conversation or speaker"):
        open_dump(path)  # a row an utterance


_SAID = [{"speaker": "ann", "text": "hi"}, {"speaker": "bob", "text": "ho"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ({"data": [{"id": "c", "turns": _SAID}], "version": 1}, ["c"]),
        ({"train": [{"id": "c", "turns": _SAID}], "test": [{"id": "d", "turns": _SAID}]}, ["c", "d"]),
        ({"data": [{**said, "chat_id": "c"} for said in _SAID], "users": [{"id": 1}]}, ["c"]),
        ({"title": "x", "id": "c", "people": [{"name": "ann"}], "messages": _SAID}, ["c"]),
        ({"c": {"goal": {}, "log": _SAID}, "d": {"goal": {}, "log": _SAID}}, ["c", "d"]),
        ({"c": _SAID, "d": _SAID}, ["c", "d"]),
        ({"c": [["ann", "hi"], ["bob", "ho"]], "d": [["ann", "hi"], ["bob", "ho"]]}, ["c", "d"]),
        ([_SAID, [["ann", "hi"], ["bob", "ho"]]], ["1", "2"]),
        ({"id": "c", "personas": [["a"]], "dialog": [["ann", "hi"], ["bob", "ho"]]}, ["c"]),
    ],
)
def test_rows_are_found_in_one_value(tmp_path: Path, value: Any, ids: list[str], indent: int | None) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(value, indent=indent))
    reader = open_dump(path)
    said = [row for row in rows_of(reader) if row["record"] == "message"]
    assert reader.format == "jsonl"
    assert [(row["conversation_id"], row["speaker"], row["text"]) for row in said] == [
        (id, speaker, text) for id in ids for speaker, text in (("ann", "hi"), ("bob", "ho"))
    ]


def test_conversations_whose_messages_name_no_speaker_are_refused(write: Callable[..., Path]) -> None:
    one = {f"SNG{n}.json": {"log": [{"text": "I need a hotel"}]} for n in range(20)}
    with pytest.raises(DumpError, match="no key is known as speaker") as raised:
        open_dump(write(one))
    assert "SNG15" not in str(raised.value)


@pytest.mark.parametrize("key", ["turns", "dialog", "utterances"])
def test_lists_of_speakers_and_of_texts_are_messages(
    write: Callable[..., Path], tmp_path: Path, key: str
) -> None:
    row = {"dialogue_id": "c", key: {"speaker": [0, 1], "utterance": ["hi", "ho"], "act": [[], ["x"]]}}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    for path in (write(row, row), tmp_path / "rows.parquet"):
        said = [row for row in rows_of(open_dump(path)) if row["record"] == "message"][:2]
        assert [(row["conversation_id"], row["speaker"], row["text"]) for row in said] == [
            ("c", "0", "hi"),
            ("c", "1", "ho"),
        ]


def test_a_speaker_that_is_an_object_is_named_by_its_id(write: Callable[..., Path]) -> None:
    users = {"id_str": "5", "id": 5, "name": "Ann"}, {"username": "bob"}, {"age": 7}
    rows = rows_of(open_dump(write(*({"thread_id": "c", "user": user, "text": "x"} for user in users))))
    assert [row.get("speaker") for row in rows] == ["5", "bob", None]
    assert rows[0]["metadata"] == '{"user":{"id":5,"id_str":"5","name":"Ann"}}'
    assert rows[2]["problem"] == "malformed_row"


def test_a_file_may_be_one_conversation(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(*_SAID)
    mapping = {"conversation": "@file"}
    assert {row["conversation_id"] for row in rows_of(open_dump(path, mapping=mapping))} == {path.name}
    table = "channel_id,User,Message\n7,ann,hi\n7,bob,ho\n"
    for folder in ("a", "b"):
        (tmp_path / "chats" / folder).mkdir(parents=True)
        (tmp_path / "chats" / folder / "chat.csv").write_text(table)
    rows = rows_of(open_dump(sorted((tmp_path / "chats").glob("*/*.csv")), mapping=mapping))
    assert [(row["conversation_id"], row["text"]) for row in rows] == [
        (f"{folder}/chat.csv", text) for folder in ("a", "b") for text in ("hi", "ho")
    ]


def test_a_tree_of_replies_is_a_conversation(write: Callable[..., Path]) -> None:
    leaf = {"message_id": "m3", "user_id": "ann", "text": "thanks", "replies": []}
    answers = [
        {"message_id": "m2", "user_id": "bob", "text": "yes", "replies": [leaf]},
        {"message_id": "m4", "user_id": "eve", "text": "no"},
        "oops",
    ]
    prompt = {"message_id": "m1", "user_id": "ann", "text": "so?", "replies": answers}
    rows = rows_of(open_dump(write({"message_tree_id": "t", "tree_state": "ready", "prompt": prompt})))
    assert rows[0]["metadata"] == '{"tree_state":"ready"}'
    assert [(r["utterance_id"], r["speaker"], r.get("reply_to")) for r in rows[1:-1]] == [
        ("m1", "ann", None),
        ("m2", "bob", "m1"),
        ("m3", "ann", "m2"),
        ("m4", "eve", "m1"),
    ]
    assert {row["conversation_id"] for row in rows} == {"t"} and rows[-1]["problem"] == "malformed_row"


def test_rows_in_an_object_are_those_of_a_list(tmp_path: Path) -> None:
    rows = [{"id": str(n), "speaker": "ab"[n % 2], "text": f"text {n}"} for n in range(4)]
    path = tmp_path / "page.json"
    for page in ({"count": 4, "results": rows}, {"data": rows}):
        path.write_text(json.dumps(page))
        with pytest.raises(DumpError, match="no key is known as conversation"):
            open_dump(path)
    path.write_text(json.dumps({"id": "c", "turns": rows}))  # of one conversation
    assert {row["conversation_id"] for row in rows_of(open_dump(path))} == {"c"}


def test_a_data_frame_that_pandas_split(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    cells = [["c", "ann", "hi"], ["c", "bob", "hello"]]
    frame = {"columns": ["conversation_id", "speaker", "text"], "index": [0, 1], "data": cells}
    path.write_text(json.dumps(frame))
    fields = ("conversation_id", "speaker", "text")
    assert [[row[field] for field in fields] for row in rows_of(open_dump(path))] == cells


def test_replies_below_a_dotted_speaker_make_conversations(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    posts = [
        {
            "id": str(n),
            "in_reply_to_id": None if n % 2 == 0 else str(n - 1),
            "content": "x",
            "by": {"name": "a"},
        }
        for n in range(4)
    ]
    path.write_text("".join(json.dumps(post) + "\n" for post in posts))
    mapping = {"conversation": "@replies", "speaker": "by.name"}
    assert [row["conversation_id"] for row in rows_of(open_dump(path, mapping=mapping))] == [
        "0",
        "0",
        "2",
        "2",
    ]
    path.write_text("".join(json.dumps({**post, "in_reply_to_id": 0} | {"x": 1}) + "\n" for post in posts))
    for post in posts:
        del post["in_reply_to_id"]
    path.write_text("".join(json.dumps(post) + "\n" for post in posts))
    with pytest.raises(DumpError, match="no key is known as reply_to"):
        open_dump(path, mapping=mapping)


def test_a_row_can_be_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"question": "why?", "answer": "so"}\n{"question": "who?", "answer": "we"}\n')
    rows = rows_of(open_dump(path, mapping={"text": "question+answer", "conversation": "@row"}))
    ids = [(row["conversation_id"], row["text"]) for row in rows]
    one, two = "pairs.jsonl 1", "pairs.jsonl 2"
    assert ids == [(one, "why?"), (one, "so"), (two, "who?"), (two, "we")]


def test_what_a_user_should_know_of_the_content_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    rows = [
        {
            "conversation_id": "c",
            "speaker": "ab"[n % 2],
            "text": "cafÃ©",
            "arrival": f"2024-01-0{n + 1}T10:00:00",
        }
        for n in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    notes = " ".join(open_dump(path).all_notes())
    assert "no time is read, but 'arrival' looks like one" in notes and "read as Latin-1" in notes
    path.write_text("".join(json.dumps({**row, "text": "café"}) + "\n" for row in rows), encoding="utf-8")
    reader = open_dump(path, mapping={"time": "arrival"})
    assert reader.all_notes() == []
