"""Rows of files that people give: the same rows of every format, and what is said of those that cannot be read."""

from __future__ import annotations

import bz2
import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssrem.errors import AnnotationError
from ssrem.readers.table_rows import TableFile, TableRows

ROWS = [{"context": "Is it öpen?", "response": "Yes, till six"}, {"context": "Why?", "response": "No idea"}]
HEADER = list(ROWS[0])


def table(tmp_path: Path, content: bytes, format: str | None = None) -> TableRows:
    (tmp_path / "file").write_bytes(content)
    return TableFile(tmp_path / "file").table(format)


def cells(delimiter: str) -> str:
    return "\n".join(
        delimiter.join(f'"{cell}"' for cell in row) for row in [HEADER, *(r.values() for r in ROWS)]
    )


def parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (json.dumps(ROWS).encode(), "json"),
        (json.dumps({"version": 1, "data": ROWS}, indent=1).encode(), "json"),
        ("\n".join(map(json.dumps, ROWS)).encode(), "jsonl"),
        (bz2.compress("\n".join(map(json.dumps, ROWS)).encode()), "jsonl"),
        (cells(",").encode(), "csv"),
        (cells(";").replace("\n", "\r").encode("utf-16"), "csv"),
        (f"SEP=|\r\n{cells('|')}\r\n".encode(), "csv"),
        (cells("\t").encode(), "tsv"),
        (parquet(), "parquet"),
    ],
)
def test_every_format_has_the_same_rows(tmp_path: Path, content: bytes, format: str) -> None:
    read = table(tmp_path, content)
    assert TableFile(tmp_path / "file").format == format
    assert [row.values for row in read.rows] == ROWS
    assert list(read.header) == HEADER


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (
            "context\tscore\n1\ta\t3\n2\tb\t4\n",
            ["", "context", "score"],
        ),  # R writes no cell above the names of rows
        ("context,score\na,3,\nb,4,\n", ["context", "score", ""]),  # a delimiter at the end of each row
        (",context,score,\n0,a,3,\n1,b,4,\n", ["", "context", "score", ""]),
    ],
)
def test_columns_without_a_name_are_left_out(tmp_path: Path, content: str, header: list[str]) -> None:
    read = table(tmp_path, content.encode())
    assert list(read.header) == header
    assert [row.values for row in read.rows] == [
        {"context": "a", "score": "3"},
        {"context": "b", "score": "4"},
    ]


def test_the_index_of_a_data_frame_is_no_column(tmp_path: Path) -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"context": ["a"], "__index_level_0__": [7]}), stream)
    assert table(tmp_path, stream.getvalue()).header == ["context"]


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_deep_nesting_is_a_fault_and_leaves_the_limits_alone(tmp_path: Path, format: str) -> None:
    row = f'{{"context": "a", "more": {DEEP}}}'
    limit = sys.getrecursionlimit()
    if format == "jsonl":
        deep, whole = table(tmp_path, f'{row}\n{{"context": "b"}}\n'.encode(), "jsonl").rows
        assert (deep.values, whole.values) == ({}, {"context": "b"})
        assert "nests more than 100 levels" in deep.fault
    else:
        for content in (f"[{row}]", DEEP, '{"a":' * 5_000 + "1" + "}" * 5_000):
            with pytest.raises(AnnotationError, match="nests more than 100 levels"):
                table(tmp_path, content.encode(), "json")
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (
            '{"a": 1}\n[2]\nnull\n{"a": \n',
            ["", "not a JSON object", "not a JSON object", "not JSON (Expecting value)"],
        ),
        ('[{"a": 1}, 2, "x"]', ["", "not a JSON object", "not a JSON object"]),
        (
            'a,b\n1,2\n1\n"1,2\n',
            ["", "1 cells, the header has 2", "a quote that is not closed, or out of place"],
        ),
    ],
)
def test_rows_that_cannot_be_read(tmp_path: Path, content: str, faults: list[str]) -> None:
    assert [row.fault for row in table(tmp_path, content.encode()).rows] == faults


def test_of_a_broken_list_the_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="file: line 2: not JSON"):
        table(tmp_path, b'[{"a": 1},\n{"a": ]')


@pytest.mark.parametrize("content", [b"one word\n", b"<html>,</html>", b"a\0b,c\n"])
def test_what_is_no_table(tmp_path: Path, content: Any) -> None:
    (tmp_path / "file").write_bytes(content)
    assert TableFile(tmp_path / "file").format is None
