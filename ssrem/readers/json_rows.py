"""Rows of JSON: one object a line, or the entries of one array; or rows of Parquet that hold lists of objects."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.json_members import parse_json
from ssrem.readers.streams import head, is_parquet


def is_array(path: Path) -> bool:
    """Whether the file starts like an array of objects."""
    start = head(path).lstrip()
    return start.startswith(b"[") and start[1:].lstrip().startswith(b"{")


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file that has a column of lists of objects or of texts; none of other files. DumpError if
    the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            entries = [
                kind.value_type
                for kind in file.schema_arrow.types
                if pa.types.is_list(kind) or pa.types.is_large_list(kind)
            ]
            if any(map(pa.types.is_struct, entries)) or {pa.string(), pa.large_string()} & {*entries}:
                for batch in file.iter_batches(256):
                    yield from batch.to_pylist()
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise DumpError(f"{path}: not a whole Parquet file; fetch the file again") from error


def first_objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects at the head of a file of rows; the last one may be cut off."""
    if is_parquet(path):
        with suppress(DumpError):
            return list(islice(parquet_rows(path), 8))
        return []
    start = head(path)
    rows = [] if is_array(path) else [parse_json(line) for line in start.split(b"\n")]
    if not any(isinstance(row, dict) for row in rows):
        begun = _begun(start)
        rows = begun if isinstance(begun, list) else [begun]
    return [row for row in rows if isinstance(row, dict)]


def _begun(start: bytes) -> Any:
    """The first JSON value of a text that may be cut off."""
    import ijson
    from ijson.backends import python

    builder = ijson.ObjectBuilder()
    with suppress(ijson.JSONError, ValueError):
        for event, value in python.basic_parse(io.BytesIO(start), use_float=True):
            builder.event(event, value)
    return builder.value
