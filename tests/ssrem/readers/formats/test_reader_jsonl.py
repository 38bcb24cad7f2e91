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
from ssrem.readers.files.streams import _window
from ssrem.readers.formats.jsonl import JsonlReader
from support.random_examples import TIMES
from support.reader_rows import reader_of, rows_of

Write = Callable[..., Path]


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


def read(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows as the reader itself chooses the path."""
    return rows_of(reader_of(JsonlReader, path, **options))


def said(source: Any, **options: Any) -> list[tuple[str | None, ...]]:
    """Conversation, speaker and text of the messages of a dump."""
    rows = [row for row in rows_of(open_dump(source, **options)) if row["record"] == "message"]
    return [(row.get("conversation_id"), row.get("speaker"), row.get("text")) for row in rows]


def _refuse(*_: Any) -> Any:
    raise AssertionError("a plain block left the fast path")


@pytest.fixture
def write(tmp_path: Path) -> Write:
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
}
HELLO |= {"text": 'Hello – 😀 "you"\n', "time": "2018-05-02T19:38:15Z"}
PLACE = {"record": "message", "file": "dump.jsonl", "line": 1}
HELLO_ROW = {**HELLO, **PLACE, "time": datetime(2018, 5, 2, 19, 38, 15)}


def test_an_utterance_a_line(write: Write) -> None:
    said = {"id": 7, "conversation_id": 1, "text": "hi", "mood": "glad", "likes": 3, "at": {"x": True}}
    row = {**PLACE, "conversation_id": "1", "utterance_id": "7", "text": "hi"}
    row["metadata"] = '{"at":{"x":true},"likes":3,"mood":"glad"}'
    # Mixed kinds of ids need the exact path; alone each kind goes fast.
    mixed = write(HELLO, {**said, "speaker": None})
    assert read(mixed) == exact(mixed) == [HELLO_ROW, {**row, "line": 2}]
    assert fast(write(HELLO)) == [HELLO_ROW]
    assert fast(write(said)) == [row]


def test_a_time_that_cannot_be_read_stays_in_the_metadata(write: Write) -> None:
    first, second = read(write(HELLO, {**HELLO, "time": "soon", "mood": "x"}))
    assert first["time"] == HELLO_ROW["time"]
    assert "time" not in second
    assert second["metadata"] == '{"mood":"x","time":"soon"}'


def test_a_conversation_a_line(write: Write) -> None:
    utterances = [{"speaker": "A", "text": "x", "mood": 1}, {"id": "u2", "speaker": 2, "text": None}]
    row = {"conversation_id": "c1", "topic": {"name": "tea", "none": None}, "utterances": utterances}
    place = {**PLACE, "conversation_id": "c1"}
    assert read(write(row, {"id": 5, "utterances": []})) == [
        {**place, "record": "conversation", "metadata": '{"topic":{"name":"tea"}}'},
        {**place, "speaker": "A", "text": "x", "metadata": '{"mood":1}'},
        {**place, "utterance_id": "u2", "speaker": "2"},
        {"record": "conversation", "file": "dump.jsonl", "line": 2, "conversation_id": "5"},
    ]


def test_a_bad_entry_is_reported_and_the_rest_of_its_conversation_read(write: Write) -> None:
    path = write(
        {"id": "c", "utterances": [{"speaker": "A", "text": "x"}, "oops", {"speaker": ["A"], "text": "y"}]},
        {"id": "d", "utterances": "oops"},
    )
    assert [(r["record"], r.get("problem"), r.get("raw"), r.get("conversation_id")) for r in read(path)] == [
        ("conversation", None, None, "c"),
        ("message", None, None, "c"),
        ("message", "malformed_row", b'"oops"', "c"),
        ("message", "malformed_row", b'{"speaker":["A"],"text":"y"}', "c"),
        ("message", "malformed_row", b'{"id": "d", "utterances": "oops"}', None),
    ]


def test_lines_that_cannot_be_read_keep_their_bytes_and_number(write: Write) -> None:
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
    rows = read(write(HELLO, b"", *broken, b" \t ", HELLO))
    assert rows[0] == HELLO_ROW
    assert [(row["raw"], row["problem"]) for row in rows[1:-1]] == list(broken.items())
    assert [row["line"] for row in rows] == [1, *range(3, 3 + len(broken)), 4 + len(broken)]


def test_a_conversation_about_which_something_is_no_text_is_quarantined_whole(write: Write) -> None:
    said = {"id": "e", "topic": "\ud800", "utterances": [{"speaker": "a", "text": "x"}]}
    (row,) = read(write(json.dumps(said).encode()))
    assert row["problem"] == "undecodable" and json.loads(row["raw"]) == {"e": said}


def test_values_that_are_not_json_are_no_values(write: Write) -> None:
    path = write(b'{"speaker": "a", "text": "x", "time": NaN, "score": -Infinity}')
    assert read(path) == [{**PLACE, "speaker": "a", "text": "x"}]


def test_objects_that_are_not_one_a_line_are_not_taken_for_it(write: Write) -> None:
    a, b = b'{"speaker":"a"}', b'{"speaker":"b"}'
    pairs = [(a + b, b""), (a + b[:11], b[11:]), (a[:11], a[11:] + b), (a + b, b"{}x")]
    for pair in (*pairs, (b'{"speaker":"a","speaker":"b"}', b"{}")):
        path = write({"speaker": "z"}, *pair, {"speaker": "z"})
        assert read(path) == exact(path), pair


def test_whole_numbers_that_are_floats_are_ids_as_integers(write: Write) -> None:
    row = {"conversation_id": 7.0, "id": 2**53 + 1, "speaker": 1.0, "reply_to": 2.0, "text": 3.0, "time": 4.0}
    path = write(row, {**row, "id": 2.0}, {"id": 8.0, "utterances": [row | {"conversation_id": None}]})
    rows = [row for row in read(path) if row["record"] == "message"]
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20 * TIMES)
@given(st.lists(_utterance, min_size=1, max_size=8), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
def test_both_paths_give_the_same_rows(
    tmp_path: Path, utterances: list[dict[str, Any]], escaped: bool, newline: bytes
) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_bytes(newline.join(json.dumps(u, ensure_ascii=escaped).encode() for u in utterances))
    assert read(path) == exact(path)


_plain = st.fixed_dictionaries(dict.fromkeys(("conversation_id", "speaker", "text", "mood"), _texts))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15 * TIMES)
@given(st.lists(_plain, min_size=1))
def test_plain_rows_stay_on_the_fast_path(tmp_path: Path, utterances: list[dict[str, str]]) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text("".join(json.dumps(u) + "\n" for u in utterances))
    fields = ("conversation_id", "speaker", "text")
    assert [[*(row[k] for k in fields), json.loads(row["metadata"])] for row in fast(path)] == [
        [*(u[k] for k in fields), {"mood": u["mood"]}] for u in utterances
    ]


def test_fractions_and_lists_are_columns_and_whole_numbers_lose_their_fraction(write: Write) -> None:
    said = {**HELLO, "score": 0.5, "by": [{"name": "bob", "n": 1}], "none": [], "nulls": [None]}
    path = write(said, {**said, "score": 1.0, "by": []})
    rows = fast(path)
    assert rows == exact(path)
    assert rows[0]["metadata"] == '{"by":[{"n":1,"name":"bob"}],"none":[],"nulls":[null],"score":0.5}'
    mixed = write(said, {**said, "score": 1})
    assert json.loads(read(mixed)[1]["metadata"])["score"] == 1
    assert read(mixed) == exact(mixed)


_json_bytes = st.sampled_from(
    [b'{"text":"x"}', b"{", b"}", b'"', b"{}", b"[]", b"\r", b" ", b"\xff", b"\\", b"1", b":"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30 * TIMES)
@given(st.lists(st.binary(max_size=20) | st.lists(_json_bytes, max_size=5).map(b"".join), max_size=30))
def test_whatever_the_bytes_every_line_is_accounted_for(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "dump.jsonl"
    content = b"\n".join([b'{"text":"x"}', *lines])
    path.write_bytes(content)
    wanted = [line for line in content.split(b"\n") if line.strip()]
    rows = read(path)
    assert len(rows) == len(wanted)
    assert all(row["raw"] == line for row, line in zip(rows, wanted, strict=True) if "problem" in row)


@pytest.mark.parametrize("block_bytes", [1, 50, 1000])
def test_blocks_do_not_show(write: Write, monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    lines = [{**HELLO, "utterance_id": f"u{i}", "text": "x" * (i * 37 % 300)} for i in range(20)]
    path = write(*lines, b"{", *lines)
    whole = read(path)
    monkeypatch.setattr("ssrem.readers.files.streams.BLOCK", block_bytes)
    assert read(path, batch_rows=7) == whole
    assert len(whole) == 41


def test_only_lines_around_an_unusual_one_are_read_one_by_one(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.readers.formats.jsonl._FEW_ROWS", 50)
    lines = [{**HELLO, "utterance_id": f"u{i}"} for i in range(400)]
    path = write(*lines, {**HELLO, "time": "soon"}, b"{", b"", *lines)
    alone = []

    class Counting(JsonlReader):
        def _row_by_row(self, lines: Any, file: str, first: int) -> Any:
            alone.append(len(lines))
            return super()._row_by_row(lines, file, first)

    assert rows_of(reader_of(Counting, path)) == exact(path)
    assert 3 <= sum(alone) <= 200


def test_packed_dumps_read_as_plain_ones_and_progress_counts_stored_bytes(write: Write) -> None:
    path = write(*[{**HELLO, "utterance_id": f"u{i}"} for i in range(100)])
    content, expected = path.read_bytes(), rows_of(open_dump(path))
    zstd, half = zstandard.ZstdCompressor().compress, len(content) // 2
    for size in (9, 999, 99_999):
        head = zstd(bytes(size))[:18]
        assert _window(head) == zstandard.get_frame_parameters(head).window_size == size
    packed = [pack(content) for pack in (gzip.compress, zstd)]
    packed += [pack(content[:half]) + pack(content[half:]) for pack in (gzip.compress, zstd)]
    for stored in (*packed, b"\xef\xbb\xbf" + content):
        path.write_bytes(stored)
        reader = open_dump(path)
        assert reader.format == "jsonl"
        assert rows_of(reader) == expected
        assert reader.bytes_read == reader.total_bytes == len(stored)


def test_keys_are_renamed_by_a_mapping_on_both_paths(write: Write) -> None:
    lines = [{"show": "x", "n": i, "who": "ann", "said": "hey", "text": "other", "id": "k"} for i in range(3)]
    mapping = {"conversation": ("show", "n"), "speaker": ("who",), "text": ("said",)}
    path = write(*lines)
    rows = fast(path, mapping=mapping)
    assert rows == exact(path, mapping=mapping)
    third = {"conversation_id": "x:2", "utterance_id": "k", "speaker": "ann", "text": "hey"}
    assert rows[2] == {**PLACE, "line": 3, **third, "metadata": '{"text":"other"}'}
    assert "conversation_id" not in read(write({**lines[0], "n": None}), mapping=mapping)[0]


def test_a_mapped_key_may_be_rare(write: Write) -> None:
    path = write(*[HELLO] * 1100, {**HELLO, "answers": "u9"})
    rows = rows_of(open_dump(path, mapping={"reply_to": "answers"}))
    assert [row.get("reply_to") for row in rows] == [None] * 1100 + ["u9"]


def test_memory_does_not_grow_with_the_dump(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.readers.files.streams.BLOCK", 1 << 15)
    path = write(*[{**HELLO, "utterance_id": f"u{i}"} for i in range(16_000)], b"{")
    list(reader_of(JsonlReader, write(HELLO, name="small.jsonl")))  # imports and caches

    def peak() -> int:
        arrow, most = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        for _ in reader_of(JsonlReader, path, batch_rows=500):
            most = max(most, pa.total_allocated_bytes() - arrow)
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most + python

    assert path.stat().st_size > 2_400_000
    assert peak() < 1_000_000


def test_the_entries_of_one_array_are_rows(write: Write, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("speakers", [["ann", "bob"], ["ann", "bob", "ann", "bob"]])
def test_a_list_of_speakers_that_does_not_name_each_is_a_problem(write: Write, speakers: list[Any]) -> None:
    row = {"id": "x", "dialog": ["hi", "yo", "ok"], "speakers": speakers}
    objects = {"dialog": [{"speaker": "ann", "text": "hi"}], "speakers": speakers}
    bad, *good = read(write(row, objects))
    assert (bad["record"], bad["problem"], json.loads(bad["raw"])) == ("message", "speaker_count", row)
    assert [row.get("problem") for row in good] == [None, None]


_SAID = [{"speaker": "ann", "text": "hi"}, {"speaker": "bob", "text": "ho"}]
_LONG = [{**message, "text": "x" * 70_000} for message in _SAID]
_PAIRS = [["ann", "hi"], ["bob", "ho"]]
_OF_C, _OF_1, _OF_2, _OF_D = ([(id, "ann", "hi"), (id, "bob", "ho")] for id in "c12d")
_SEATS_1, _SEATS = ([(id, "A", "hi"), (id, "B", "ho")] for id in "12")
_TEXTS = {"dialogue": ["hi", "ho"]}
_COLUMNS = {"speaker": [0, 1], "utterance": ["hi", "ho"], "act": [[], ["x"]]}
_OF_COLUMNS = [("c", "0", "hi"), ("c", "1", "ho")]
_FRAME = {"columns": ["conversation_id", "speaker", "text"], "index": [0, 1], "data": _OF_C}


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        *(([{"id": "c", key: _SAID}], _OF_C) for key in ("turns", "talk", "conversation")),
        *(([{key: _SAID}, {key: _SAID}], _OF_1 + _OF_2) for key in ("messages", "turns", "utterances")),
        ([{"turns": _SAID}, {"turns": [_SAID[0] | {"conversation_id": "c"}]}], [*_OF_1, _OF_C[0]]),
        ([_SAID, _PAIRS], _OF_1 + _OF_2),
        ([_LONG, _LONG], [(id, who, "x" * 70_000) for id, who, _ in _OF_1 + _OF_2]),
        ([{"id": "c", "messages": [{"speaker": "eve"}, *_SAID]}], [("c", "eve", None), *_OF_C]),
        ([{"id": "2", "dialog": ["hi", "ho", "hi"]}], [*_SEATS, _SEATS[0]]),
        ([_TEXTS, {"conversation_id": "c", **_SAID[0], "turns": ["x"]}], [*_SEATS_1, _OF_C[0]]),
        ([{**_TEXTS, "speakers": ["ann", "bob"]}, {**_TEXTS, "speakers": []}], _OF_1 + _SEATS),
        ([{**_TEXTS, "speakers": [2.0, None]}], [("1", "2", "hi"), ("1", None, "ho")]),
        *(([{"id": "c", key: _COLUMNS}], _OF_COLUMNS) for key in ("turns", "dialog", "utterances")),
        ([{"data": [{"id": "c", "turns": _SAID}], "version": 1}], _OF_C),
        ([{"train": [{"id": "c", "turns": _SAID}], "test": [{"id": "d", "turns": _SAID}]}], _OF_C + _OF_D),
        ([{"data": [{**said, "chat_id": "c"} for said in _SAID], "users": [{"id": 1}]}], _OF_C),
        ([{"title": "x", "id": "c", "people": [{"name": "ann"}], "messages": _SAID}], _OF_C),
        ([{"c": {"goal": {}, "log": _SAID}, "d": {"goal": {}, "log": _SAID}}], _OF_C + _OF_D),
        ([{"c": _SAID, "d": _SAID}], _OF_C + _OF_D),
        ([{"c": _PAIRS, "d": _PAIRS}], _OF_C + _OF_D),
        ([{"id": "c", "personas": [["a"]], "dialog": _PAIRS}], _OF_C),
        ([_FRAME], _OF_C),  # as pandas splits a data frame
    ],
)
def test_conversations_in_the_forms_of_many_corpora(
    write: Write, rows: list[Any], messages: list[tuple[str | None, ...]]
) -> None:
    """In lines and in one value, indented or not."""
    values = [json.dumps(rows[0] if len(rows) == 1 else rows, indent=indent) for indent in (None, 2)]
    for content in (rows, *([value.encode()] for value in values)):
        path = write(*content)
        assert open_dump(path).format == "jsonl"
        assert said(path) == messages


def test_rows_of_parquet_may_be_conversations(tmp_path: Path) -> None:
    path = tmp_path / "dump.parquet"
    texts = {**_TEXTS, "act": [1, 2]}
    for rows, messages in (
        ([texts, texts], _SEATS_1 + _SEATS),
        ([{"dialogue_id": "c", "dialog": _COLUMNS}], _OF_COLUMNS),
    ):
        pq.write_table(pa.Table.from_pylist(rows), path)
        assert open_dump(path).format == "jsonl"
        assert said(path) == messages
    pq.write_table(pa.Table.from_pylist([{**texts, "text": "Hi!"}]), path)
    with pytest.raises(DumpError, match="no column is known as conversation or speaker"):
        open_dump(path)  # a row an utterance


def test_a_conversation_without_messages_is_one_whatever_its_list_is_called(write: Write) -> None:
    chats = [[{"who": "a", "text": "hi"}, {"who": "b", "text": "yo"}], [], None]
    reader = open_dump(
        write(*({"name": "x", "chat_log": chat} for chat in chats)), mapping={"speaker": "who"}
    )
    rows = rows_of(reader)
    assert [row["conversation_id"] for row in rows if row["record"] == "conversation"] == ["1", "2", "3"]
    assert not any("problem" in row for row in rows) and "chat_log" not in reader.columns


@pytest.mark.parametrize("page", [{"count": 2, "results": _SAID}, {"data": _SAID}])
def test_a_page_of_messages_is_no_conversation(write: Write, page: dict[str, Any]) -> None:
    with pytest.raises(DumpError, match="no key is known as conversation"):
        open_dump(write(page))


def test_conversations_whose_messages_name_no_speaker_are_refused(write: Write) -> None:
    one = {f"SNG{n}.json": {"log": [{"text": "I need a hotel"}]} for n in range(20)}
    with pytest.raises(DumpError, match="no key is known as speaker") as raised:
        open_dump(write(one))
    assert "SNG15" not in str(raised.value)


def test_a_speaker_that_is_an_object_is_named_by_its_id(write: Write) -> None:
    users = {"id_str": "5", "id": 5, "name": "Ann"}, {"username": "bob"}, {"age": 7}
    rows = rows_of(open_dump(write(*({"thread_id": "c", "user": user, "text": "x"} for user in users))))
    assert [row.get("speaker") for row in rows] == ["5", "bob", None]
    assert rows[0]["metadata"] == '{"user":{"id":5,"id_str":"5","name":"Ann"}}'
    assert rows[2]["problem"] == "malformed_row"


def test_a_person_that_is_an_object_is_named_by_its_id(write: Write) -> None:
    turns = [{"sender": "user", "text": "hi"}, {"sender": "assistant", "text": "yes?"}]
    path = write({"uuid": "c1", "account": {"uuid": "p1", "plan": None}, "messages": turns})
    mapping = {"conversation": "uuid", "person": "account"}
    assert said(path, mapping=mapping) == [("c1", "p1", "hi"), ("c1", "c1/assistant", "yes?")]


def test_lists_are_not_taken_for_addressees(write: Write) -> None:
    row = {"conversation_id": "c", "speaker": "ann", "text": "hello", "to": ["everyone"], "in_reply_to": []}
    path = write(row, {**row, "text": "good night"})
    assert said(path) == [("c", "ann", "hello"), ("c", "ann", "good night")]


def test_a_file_may_be_one_conversation(write: Write, tmp_path: Path) -> None:
    path = write(*_SAID)
    mapping = {"conversation": "@file"}
    assert {row["conversation_id"] for row in rows_of(open_dump(path, mapping=mapping))} == {path.name}
    table = "channel_id,User,Message\n7,ann,hi\n7,bob,ho\n"
    for folder in ("a", "b"):
        (tmp_path / "chats" / folder).mkdir(parents=True)
        (tmp_path / "chats" / folder / "chat.csv").write_text(table)
    of_one = [("a/chat.csv", "ann", "hi"), ("a/chat.csv", "bob", "ho")]
    messages = said(sorted((tmp_path / "chats").glob("*/*.csv")), mapping=mapping)
    assert messages == of_one + [("b/chat.csv", *rest) for _, *rest in of_one]


def test_a_tree_of_replies_is_a_conversation(write: Write) -> None:
    leaf = {"message_id": "m3", "user_id": "ann", "text": "thanks", "replies": []}
    answer = {"message_id": "m2", "user_id": "bob", "text": "yes", "replies": [leaf]}
    answers = [answer, {"message_id": "m4", "user_id": "eve", "text": "no"}, "oops"]
    prompt = {"message_id": "m1", "user_id": "ann", "text": "so?", "replies": answers}
    rows = rows_of(open_dump(write({"message_tree_id": "t", "tree_state": "ready", "prompt": prompt})))
    assert rows[0]["metadata"] == '{"tree_state":"ready"}'
    replies = [("m1", "ann", None), ("m2", "bob", "m1"), ("m3", "ann", "m2"), ("m4", "eve", "m1")]
    assert [(r["utterance_id"], r["speaker"], r.get("reply_to")) for r in rows[1:-1]] == replies
    assert {row["conversation_id"] for row in rows} == {"t"} and rows[-1]["problem"] == "malformed_row"


def test_replies_below_a_dotted_speaker_make_conversations(write: Write) -> None:
    posts: list[dict[str, Any]] = [{"id": str(n), "content": "x", "by": {"name": "a"}} for n in range(4)]
    mapping = {"conversation": "@replies", "speaker": "by.name"}
    path = write(*({**post, "in_reply_to_id": [None, "0", None, "2"][n]} for n, post in enumerate(posts)))
    assert [conversation for conversation, *_ in said(path, mapping=mapping)] == ["0", "0", "2", "2"]
    with pytest.raises(DumpError, match="no key is known as reply_to"):
        open_dump(write(*posts), mapping=mapping)


def test_a_row_can_be_a_conversation(write: Write) -> None:
    path = write(*({"question": question, "answer": "so"} for question in ("why?", "who?")))
    texts = [("1", "why?"), ("1", "so"), ("2", "who?"), ("2", "so")]
    messages = said(path, mapping={"text": "question+answer", "conversation": "@row"})
    assert [(id, text) for id, _, text in messages] == [(f"dump.jsonl {n}", text) for n, text in texts]


def test_what_a_user_should_know_of_the_content_is_noted(write: Write) -> None:
    times = [{"arrival": f"2024-01-0{n}T10:00:00", "conversation_id": "c"} for n in range(1, 7)]
    rows = [{**row, "speaker": "ab"[n % 2], "text": "cafÃ©"} for n, row in enumerate(times)]
    notes = " ".join(open_dump(write(*rows)).all_notes())
    assert "no time is read, but 'arrival' looks like one" in notes and "read as Latin-1" in notes
    path = write(*({**row, "text": "café"} for row in rows))
    assert open_dump(path, mapping={"time": "arrival"}).all_notes() == []
    asked = {"conversation_id": "c", "speaker": "ann", "message": "why?", "response": "so"}
    (note,) = open_dump(write(asked)).all_notes()
    assert (
        "'response' is not read; if it holds what another side said, --map text=message+response reads"
        in note
    )
