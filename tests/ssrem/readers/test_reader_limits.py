"""What is too long, too deep, out of range or out of place: one record or one line, and memory that stays small."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ssrem.errors import DumpError
from ssrem.readers import base, cells, open_dump
from ssrem.readers.files import streams
from ssrem.readers.formats import tables as parquet
from ssrem.readers.formats.jsonl import JsonlReader
from ssrem.readers.json_values import DEEPEST, too_deep
from support.reader_rows import reader_of, rows_of

ROW = {"conversation_id": "c", "speaker": "a", "text": "x"}
PLAIN = json.dumps(ROW).encode() + b"\n"

Write = Callable[..., Path]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def text(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(content: bytes, name: str = "dump") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    return writer


def says(path: Path | str, **options: Any) -> str:
    """What the reader says that keeps it from reading the dump, in one line."""
    with pytest.raises(DumpError) as error:
        rows_of(open_dump(path, **options))
    assert str(error.value).isprintable()
    return str(error.value)


def problems(path: Path) -> list[str | None]:
    return [row.get("problem") for row in rows_of(open_dump(path))]


# Depth


def test_depth_is_counted_without_recursion() -> None:
    assert not too_deep(nested(DEEPEST))
    assert too_deep(nested(DEEPEST + 1))
    assert too_deep([[nested(DEEPEST - 1)]])
    assert too_deep(nested(20_000))
    assert not too_deep("x")


def test_only_a_line_that_nests_too_deep_is_a_problem(write: Write) -> None:
    for levels in (DEEPEST + 1, 400, 900, 100_000):
        deep = f'{{"conversation_id":"c","speaker":"a","text":"x","m":{text(levels)}}}\n'.encode()
        in_a_list = f'{{"id":"c","utterances":[{{"text":"x"}},{{"m":{text(levels)}}}]}}\n'.encode()
        found = problems(write(PLAIN + deep + PLAIN + in_a_list))
        assert found == [None, "broken_json", None, "broken_json"], levels
    rows = rows_of(open_dump(write(json.dumps({**ROW, "m": nested(DEEPEST - 1)}).encode() + b"\n" + PLAIN)))
    assert json.loads(rows[0]["metadata"]) == {"m": nested(DEEPEST - 1)}


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 500_000 + b"]" * 500_000,
        b"[" * 900_000,
        b'{"a":' * 300_000,
        f'[{{"speaker":"a","text":"x","m":{text(DEEPEST + 1)}}}]'.encode(),
        f'{{"c":{{"messages":[{{"sender":"a","text":"x","m":{text(DEEPEST)}}}]}}}}'.encode(),
    ],
)
def test_a_value_that_nests_too_deep_is_refused_in_little_memory(write: Write, content: bytes) -> None:
    tracemalloc.start()
    assert "the JSON nests more than 100 levels" in says(write(content))
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


# Length


def test_a_line_without_an_end_is_one_line(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_ROW", 1 << 20)
    monkeypatch.setattr(streams, "BLOCK", 1 << 16)
    endless = b" " * (3 << 20)
    assert "line 3 is longer than 1 MB" in says(write(PLAIN + PLAIN + endless + PLAIN))
    packed = gzip.compress(PLAIN + PLAIN + endless + PLAIN)
    assert len(packed) < 10_000
    assert "line 3 is longer than 1 MB" in says(write(packed))
    head = b"conversation_id,speaker,text\nc,a,x\n"
    assert "line 3 is longer than 1 MB" in says(write(head + b"c,a," + endless.replace(b" ", b"y")))


def test_a_value_that_would_take_the_memory_is_refused_with_a_way_out(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LARGEST_JSON", 1 << 20)
    row = {**ROW, "text": "x" * 1000}
    assert len(rows_of(open_dump(write(json.dumps([row] * 900).encode())))) == 900
    assert "more than 1 MB, which would have to be in memory; write its rows one a line" in says(
        write(json.dumps([row] * 2000).encode())
    )


def test_a_stray_quote_before_long_lines_does_not_hold_them(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "LONGEST_ROW", 50_000)
    monkeypatch.setattr(streams, "BLOCK", 30_000)
    rows = b'c,a,"stray\n' + (b"c,a," + b"x" * 10_000 + b"\n") * 20
    path = write(b"conversation_id,speaker,text\n" + rows)
    assert problems(path) == ["malformed_row"] + [None] * 20


def _dumps_of_long_texts(folder: Path, many: int, size: int) -> Iterable[Path]:
    """A dump of every format with so many texts of this size, of one giant conversation."""
    words = "x" * (size - 8)
    said = [{**ROW, "text": f"{words}{i:08}"} for i in range(many)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*said, {"text": ["exact"]}]))
    (folder / "b.jsonl").write_text(json.dumps({"id": "c", "utterances": said}) + "\n")
    cells = "".join(f"c,a,{r['text']}\n" for r in said)
    (folder / "c.csv").write_text(f"conversation_id,speaker,text\n{cells}")
    messages = [[{"sender": "a", "text": row["text"]}] for row in said]
    (folder / "d.json").write_text(json.dumps({"c": {"messages": messages}}))
    table = pa.table({name: [row[name] for row in said] for name in ROW})
    pyarrow.parquet.write_table(table, folder / "e.parquet", use_dictionary=False)
    (folder / "f").mkdir()
    lines = (f"L{i} +++$+++ u0 +++$+++ m +++$+++ A +++$+++ {r['text']}\n" for i, r in enumerate(said))
    (folder / "f" / "movie_lines.txt").write_text("".join(lines))
    ids = str([f"L{i}" for i in range(many)])
    (folder / "f" / "movie_conversations.txt").write_text(f"u0 +++$+++ u1 +++$+++ m +++$+++ {ids}\n")
    return sorted(folder.iterdir())


def test_few_long_texts_fill_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, size = 40_000, 2_000
    for module in (base, parquet):
        monkeypatch.setattr(module, "BATCH_BYTES", limit)
    monkeypatch.setattr(streams, "BLOCK", limit)
    for dump in _dumps_of_long_texts(tmp_path, 80, size):
        texts: list[str] = []
        for batch in open_dump(dump):
            assert sum(len(t or "") for t in batch.column("text").to_pylist()) <= limit + size, dump
            texts += (t for t in batch.column("text").to_pylist() if t)
        assert [int(t[-8:]) for t in texts] == list(range(80)), dump


def test_keys_that_are_data_do_not_fill_the_memory(write: Write) -> None:
    lines = [json.dumps({**ROW, "m": {f"k{i}": i, f"j{i}": "x"}}) for i in range(500)]
    reader = reader_of(JsonlReader, write("\n".join(lines).encode()))
    assert len(rows_of(reader)) == 500
    assert str(reader._type).count(":") <= 256


# Range


def test_an_offset_out_of_the_years_is_no_time(write: Write) -> None:
    for written in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        (row,) = rows_of(open_dump(write(json.dumps({**ROW, "time": written}).encode() + b"\n")))
        assert "time" not in row and json.loads(row["metadata"]) == {"time": written}


def test_parquet_times_out_of_the_years_stay_in_the_metadata(tmp_path: Path) -> None:
    times = pa.array([2**62, 0, None], pa.timestamp("us"))
    table = pa.table({**{name: [value] * 3 for name, value in ROW.items()}, "time": times, "seen": times})
    pyarrow.parquet.write_table(table, tmp_path / "dump")
    first, second, third = rows_of(open_dump(tmp_path / "dump"))
    assert json.loads(first["metadata"]) == {"time": 2**62, "seen": 2**62} and "time" not in first
    assert second["time"] == datetime(1970, 1, 1) and "time" not in third
    lists = pa.array([[2**62]] * 3, pa.list_(pa.timestamp("us")))
    pyarrow.parquet.write_table(table.append_column("lists", lists), tmp_path / "dump")
    assert "cannot be read" in says(tmp_path / "dump")


# Place


def test_names_that_are_no_text_are_read_and_shown_escaped(write: Write) -> None:
    for name in (b"a\xffb.jsonl", b"a\nb"):
        (row,) = rows_of(open_dump(write(PLAIN, os.fsdecode(name))))
        assert row["file"] == name.decode("utf-8", "backslashreplace")
    assert "a\\nb\\x1b[31m: there is no such file" in says(Path("a\nb\x1b[31m"))
    assert "the columns are a\\x1b[31m, b" in says(write(b"a\x1b[31m,b\nc,a\n"))


@pytest.mark.parametrize("source", ["x" * 5_000, "a\0b", "/proc/self/mem", "/dev/zero", "/dev/null"])
def test_what_is_no_file_is_one_line(source: str) -> None:
    if source.startswith("/") and not Path(source).exists():
        pytest.skip(f"there is no {source} here")
    assert len(says(source)) <= 2_100


def test_links_that_lead_nowhere_are_one_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "no such file" in says(loop)
    (tmp_path / "utterances.jsonl").write_bytes(PLAIN)
    conversations = tmp_path / "conversations.json"
    conversations.symlink_to(conversations)
    assert "conversations.json: is not a file" in says(tmp_path)
    conversations.unlink()
    conversations.mkdir()
    assert "conversations.json: is not a file" in says(tmp_path)


def test_a_packed_file_that_ends_with_nothing_is_read_to_its_end(write: Write) -> None:
    reader = open_dump(write(gzip.compress(PLAIN) + gzip.compress(b"") * 20))
    assert len(rows_of(reader)) == 1
    assert reader.bytes_read == reader.total_bytes


def parquet_of_equal_texts(path: Path, text: str, rows: int) -> Path:
    """A Parquet file in which every row has the same text, which is stored once."""
    same = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    table = pa.table({"conversation_id": ["c"] * rows, "speaker": ["a"] * rows, "text": same})
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False)
    return path


def test_rows_of_parquet_that_share_their_text_become_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 kB becomes 13 MB: many gigabytes would become so with more rows."""
    for module in (base, parquet):
        monkeypatch.setattr(module, "BATCH_BYTES", 2 << 20)
    path = parquet_of_equal_texts(tmp_path / "dump.parquet", "x" * (1 << 16), 200)
    assert path.stat().st_size < 2_000
    batches = list(open_dump(path))
    assert sum(batch.num_rows for batch in batches) == 200
    assert max(batch.nbytes for batch in batches) < (2 << 20) + (2 << 16)


def test_parquet_that_does_not_fit_into_memory_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 1 failed")

    path = parquet_of_equal_texts(tmp_path / "dump.parquet", "x", 3)
    monkeypatch.setattr(parquet.ParquetReader, "_records_of", exhausted)
    assert "the rows after row 0 cannot be read (malloc" in says(path)
