"""Parquet: columns of every usual type, a batch at a time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.formats.tables import ParquetReader
from ssrem.readers.times import NotVectorisableError
from support.reader_rows import reader_of, rows_of

MOMENT = datetime(2018, 5, 2, 19, 38, 15)


def _write(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = tmp_path / "dump.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, **options)
    return path


def test_rows_with_a_mapping_and_metadata(tmp_path: Path) -> None:
    columns = {
        "show": ["x", "x"],
        "part": pa.array([1, None], pa.int32()),
        "Speaker": pa.array(["ann", "bob"]).dictionary_encode(),
        "line": pa.array([b"hi", b"you"]),
        "timestamp": pa.array([MOMENT, None], pa.timestamp("ns", "UTC")),
        "score": [0.5, float("nan")],
        "likes": [3, None],
        "tags": [["a"], None],
    }
    path = _write(tmp_path, columns)
    message = {"record": "message", "file": "dump.parquet"}
    first = {"line": 1, "conversation_id": "x:1", "speaker": "ann", "text": "hi", "time": MOMENT}
    assert rows_of(open_dump(path, mapping={"conversation": "show+part", "text": "line"})) == [
        {**message, **first, "metadata": '{"likes":3,"score":0.5,"tags":["a"]}'},
        {**message, "line": 2, "speaker": "bob", "text": "you"},
    ]


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    columns = {"conversation": ["a"] * 3, "speaker": [1.5, 2, 3], "time": ["soon", "", None]}
    rows = rows_of(open_dump(_write(tmp_path, {**columns, "text": pa.array([b"x", b"\xff", b"y"])})))
    assert [(r.get("problem"), r.get("raw"), r.get("speaker")) for r in rows] == [
        (None, None, "1.5"),
        ("undecodable", b"\xff", None),
        (None, None, "3"),
    ]
    assert rows[0]["metadata"] == '{"time":"soon"}'
    columns |= {"text": ["x", "y", "z"], "embedding": pa.array([b"\xff", None, b"a"])}
    rows = rows_of(open_dump(_write(tmp_path, columns)))
    assert [(row["text"], row.get("metadata")) for row in rows] == [
        ("x", '{"time":"soon"}'),
        ("y", None),
        ("z", None),
    ]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("by_row", [False, True])
def test_whole_numbers_in_columns_of_floats_are_ids_as_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, by_row: bool
) -> None:
    numbers = pa.array([1, None, float("nan"), 16_777_216], kind)
    columns = {
        "conversation": numbers,
        "id": pa.array([2**53 + 1, 2, 3, 4]),
        "speaker": numbers,
        "addressee": pa.array([-0.0, 2, 3, 4], kind),
        "reply_to": numbers,
        "text": ["1.0", "b", "c", "d"],
        "score": [1.0, 2, 3, 4],
    }
    if by_row:
        monkeypatch.setattr("ssrem.readers.formats.tables.raw_batch", _not_vectorised)
    else:
        monkeypatch.setattr(ParquetReader, "message", _not_vectorised)
    rows = rows_of(open_dump(_write(tmp_path, columns)))
    for name in ("conversation_id", "speaker", "reply_to"):
        assert [row.get(name) for row in rows] == ["1", None, None, "16777216"], name
    assert [row["utterance_id"] for row in rows] == [str(2**53 + 1), "2", "3", "4"]
    assert [row["addressee"] for row in rows] == ["0", "2", "3", "4"]
    assert (rows[0]["text"], rows[0]["metadata"]) == ("1.0", '{"score":1}')


def _not_vectorised(*_: Any, **__: Any) -> Any:
    raise NotVectorisableError


def test_a_list_is_no_text(tmp_path: Path) -> None:
    (row,) = rows_of(open_dump(_write(tmp_path, {"conversation": ["a"], "speaker": ["b"], "text": [["c"]]})))
    assert row["problem"] == "malformed_row"
    assert b"'text': ['c']" in row["raw"]


THOUSAND = {"conversation": ["a"] * 1000, "speaker": ["b"] * 1000, "text": [str(i) for i in range(1000)]}


def test_batches_come_as_they_are_taken(tmp_path: Path) -> None:
    reader = reader_of(ParquetReader, _write(tmp_path, THOUSAND, row_group_size=300), batch_rows=64)
    batches = iter(reader)
    next(batches)
    assert 0 < reader.bytes_read < reader.total_bytes / 10
    rows = rows_of(reader)
    assert [row["text"] for row in rows] == THOUSAND["text"]
    assert [row["line"] for row in rows] == list(range(1, 1001))


def test_files_that_will_not_do(tmp_path: Path) -> None:
    says = "no column is known as conversation or speaker or text; the columns are a"
    with pytest.raises(DumpError, match=says):
        open_dump(_write(tmp_path, {"a": [1]}))
    with pytest.raises(DumpError, match="'when', which is not there"):
        open_dump(_write(tmp_path, THOUSAND), mapping={"time": "when"})
    with pytest.raises(DumpError, match="no row"):
        open_dump(_write(tmp_path, {name: pa.array([], pa.string()) for name in THOUSAND}))


def test_mapping_into_cells_and_to_several_texts(tmp_path: Path) -> None:
    path = _write(tmp_path, {"c": ["1"], "user.name": ["ann"], "msg": ['{"content": "hi"}']})
    mapping = {"conversation": "c", "speaker": "user.name", "text": "msg.content"}
    (row,) = rows_of(open_dump(path, mapping=mapping))
    assert (row["speaker"], row["text"]) == ("ann", "hi")
    path = _write(tmp_path, {"question": ["where?"], "answer": ["here"]})
    rows = rows_of(open_dump(path, mapping={"text": "question+answer", "conversation": "@row"}))
    assert [row["text"] for row in rows] == ["where?", "here"]


def test_a_file_damaged_inside_is_one_line(tmp_path: Path) -> None:
    path = _write(tmp_path, THOUSAND, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[30:200] = b"\xff" * 170
    path.write_bytes(content)
    with pytest.raises(DumpError, match="the rows after row 0 cannot be read"):
        rows_of(open_dump(path))
