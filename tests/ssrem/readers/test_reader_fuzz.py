"""Whatever the bytes: every reader gives valid batches, or one line that says why not; nothing is lost or made up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssrem.errors import SsremError
from ssrem.readers import FORMATS, open_dump, reader_class
from ssrem.readers.base import Reader
from ssrem.readers.files.streams import DumpFile, files_of
from support.exports import EXPORTS, Files, write_dump
from support.random_examples import TIMES
from support.reader_rows import rows_of
from support.sound_dumps import DUMPS, NASTY, UTTERANCES

SOUND = DUMPS | EXPORTS
assert SOUND.keys() == FORMATS.keys()

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "utf-16": lambda content: content.decode("latin-1").encode("utf-16"),
}


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with some of it cut out, doubled, replaced or followed by something else."""
    for _ in range(draw(st.integers(0, 3))):
        at, size = draw(st.integers(0, len(content))), draw(st.integers(0, 40))
        piece = draw(st.sampled_from(NASTY) | st.binary(max_size=8) | st.just(content[at : at + size]))
        how = draw(st.sampled_from(["insert", "replace", "cut", "end here"]))
        rest = {"insert": content[at:], "replace": content[at + len(piece) :], "cut": content[at + size :]}
        content = content[:at] + (piece if how in ("insert", "replace") else b"") + rest.get(how, b"")
    return content


@st.composite
def dumps(draw: st.DrawFn, format: str) -> Files:
    """A dump that was sound once, packed or not, before or after it was damaged."""
    files = draw(st.sampled_from(SOUND[format]))
    if draw(st.integers(0, 9)) == 0:
        files = {name: draw(st.binary(max_size=200)) for name in files}
    result = {}
    for name, content in files.items():
        packed = PACK[draw(st.sampled_from(sorted(PACK)))]
        result[name] = draw(damaged(packed(draw(damaged(content)))))
    return result


def written(files: Files, folder: str) -> Path:
    return write_dump(files, Path(folder, "dump"))


def outcome(make: Callable[[], Reader]) -> list[dict[str, Any]] | None:
    """The rows of the reader, twice the same, with all its bytes read; None where it said in one line why not."""
    try:
        reader = make()
        rows = rows_of(reader)
    except SsremError as error:
        assert str(error) and len(str(error).splitlines()) == 1
        return None
    assert reader.bytes_read == reader.total_bytes
    for row in rows:
        assert row["record"] in ("message", "conversation")
        assert row["line"] >= 1
        assert row.get("problem") in (None, "broken_json", "undecodable", "malformed_row")
        assert ("problem" in row) == ("raw" in row)
        assert "metadata" not in row or isinstance(json.loads(row["metadata"]), dict)
    assert rows_of(reader) == rows
    return rows


@pytest.mark.hypothesis
@pytest.mark.parametrize("format", FORMATS)
def test_whatever_the_bytes_there_are_rows_or_one_line(format: str) -> None:
    @settings(max_examples=20 * TIMES, suppress_health_check=list(HealthCheck))
    @given(dumps(format))
    def check(files: Files) -> None:
        with TemporaryDirectory() as folder:
            path = written(files, folder)
            outcome(partial(open_dump, path, batch_rows=2))
            outcome(lambda: _unasked(format, path))

    check()


def _unasked(format: str, path: Path) -> Reader:
    """The reader of a format, whatever the content looks like."""
    kind = reader_class(format)
    reader = kind([DumpFile(file) for file in (files_of(path) if kind.joins_files else [path])])
    reader.open()
    return reader


_any_text = st.text(st.characters(exclude_categories=[]), max_size=5)  # halves of surrogate pairs, too
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | _any_text
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_entries = st.dictionaries(st.sampled_from(["id", "speaker", "text", "time", "x"]), _values) | _values


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


@settings(max_examples=10 * TIMES)
@given(
    st.lists(st.fixed_dictionaries({"id": _values, "utterances": st.lists(_entries, max_size=4)}) | _entries),
    st.sampled_from(["plain", "gzip", "zstd"]),
    st.sampled_from([b"\n", b"\r\n", b"\n \n"]),
)
def test_each_line_and_each_utterance_in_it_is_a_record(lines: list[Any], pack: str, newline: bytes) -> None:
    expected: list[str] = ["message"]
    for line in lines:
        entries = line.get("utterances") if isinstance(line, dict) and _is_id(line.get("id")) else None
        entries = line if isinstance(line, list) and line and _is_message(line[0]) else entries
        expected += ["message"] if entries is None else ["conversation"] + ["message"] * len(entries)
    # Sound messages come first, so that lists in place of texts do not make `text` another column.
    expected += ["message"] * 20
    sound = [{**UTTERANCES[0], "id": f"sound {number}"} for number in range(21)]
    content = newline.join(map(_dumped, [*sound, *lines]))
    with TemporaryDirectory() as folder:
        path = written({"": PACK[pack](content)}, folder)
        rows = outcome(partial(open_dump, path, format="jsonl", batch_rows=3))
    assert rows is not None
    assert sorted(row["record"] for row in rows) == sorted(expected)
    assert [row["record"] for row in rows][21:] == expected[1:-20]


def _is_message(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and isinstance(value[1], str)
    return isinstance(value, dict) or (is_pair and isinstance(value[0], str | int))


def _is_id(value: Any) -> bool:
    return not isinstance(value, bool | list | dict)


_ILL_FORMED = [None, *pa.array([b"\xff", b"ok", b"\xc3"], pa.binary()).buffers()[1:]]
_NASTY_COLUMNS: list[pa.Array] = [
    pa.array([2**62, None, -(2**62)], pa.timestamp("us")), pa.array([2**52, 1, 0], pa.timestamp("s")),
    pa.array([1, 2**62, 123456789], pa.timestamp("ns")), pa.array([1, 2, 3], pa.timestamp("ms", tz="No/Where")),
    pa.array([2**62, 2, 3], pa.timestamp("us", tz="Europe/Berlin")), pa.array([2**30, None, -(2**30)], pa.date32()),
    pa.array([86_400_000 * 2**31, 0, 0], pa.date64()), pa.array([1, 2, 3], pa.time64("ns")),
    pa.array([2**62, 1, 0], pa.duration("s")), pa.array([{"a": b"\xff"}, {"a": None}, None]),
    pa.array([1.5, float("nan"), float("inf")]), pa.array([1.5, 2, None], pa.float16()),
    pa.array([1, 2, None], pa.decimal128(38, 4)), pa.array([2**64 - 1, 0, None], pa.uint64()),
    pa.array([True, None, False]), pa.array([b"\xff\xfe", b"x", None], pa.binary()),
    pa.array([b"\xff\xfe", b"x", None], pa.binary_view()), pa.array([b"ab", b"\xff1", None], pa.binary(2)),
    pa.array([b"a" * 16, b"\xff" * 16, None], pa.uuid()), pa.array(["x", None, "\0"], pa.string_view()),
    pa.array(["x", "x", None]).dictionary_encode(), pa.array([b"x", b"\xff", None]).dictionary_encode(),
    pa.array(["x", "", " "], pa.large_string()), pa.nulls(3), pa.array([["a"], [None], None]),
    pa.Array.from_buffers(pa.string(), 3, _ILL_FORMED),
]  # fmt: skip


_names = st.sampled_from(
    ["speaker", "text", "time", "id", "conversation_id", "x", "y", "", "\x1b[31m\n", "é"]
)


@settings(max_examples=20 * TIMES, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(_names, st.integers(0, len(_NASTY_COLUMNS) - 1), min_size=3))
def test_each_row_of_a_parquet_file_is_a_record_whatever_its_types(columns: dict[str, int]) -> None:
    plain = dict.fromkeys(("conversation_id", "speaker", "text"), pa.array(["a", "b", "c"]))
    table = pa.table({**plain, **{name: _NASTY_COLUMNS[number] for name, number in columns.items()}})
    with TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(table, Path(folder, "dump"))
        rows = outcome(partial(open_dump, Path(folder, "dump"), batch_rows=2))
    assert rows is not None
    assert [row["line"] for row in rows] == [1, 2, 3]
