"""Tables that people give: what is no column, no table, or nests too deep; test_responses.py reads every format."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssrem.errors import AnnotationError
from ssrem.readers.table_rows import TableFile, TableRows


def table(tmp_path: Path, content: bytes, format: str | None = None) -> TableRows:
    (tmp_path / "file").write_bytes(content)
    return TableFile(tmp_path / "file").table(format)


@pytest.mark.parametrize(
    ("content", "header"),
    [
        # R writes no cell above the names of rows.
        ("context\tscore\n1\ta\t3\n2\tb\t4\n", ["", "context", "score"]),
        ("context,score\na,3,\nb,4,\n", ["context", "score", ""]),  # a delimiter at the end of each row
        (",context,score,\n0,a,3,\n1,b,4,\n", ["", "context", "score", ""]),
    ],
)
def test_columns_without_a_name_are_left_out(tmp_path: Path, content: str, header: list[str]) -> None:
    read = table(tmp_path, content.encode())
    assert list(read.header) == header
    assert [row.values for row in read.rows] == [{"context": a, "score": b} for a, b in ("a3", "b4")]


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


@pytest.mark.parametrize("content", [b"one word\n", b"<html>,</html>", b"a\0b,c\n"])
def test_what_is_no_table(tmp_path: Path, content: Any) -> None:
    (tmp_path / "file").write_bytes(content)
    assert TableFile(tmp_path / "file").format is None
