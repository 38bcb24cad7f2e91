"""What the tests of all readers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ssrem.readers.base import Reader
from ssrem.readers.files.streams import DumpFile
from ssrem.readers.rows import RAW_SCHEMA


def rows_of(reader: Reader) -> list[dict[str, Any]]:
    """Every row, without its nulls, in the dump's order; each batch is checked against the schema."""
    rows: list[dict[str, Any]] = []
    for batch in reader:
        assert batch.schema == RAW_SCHEMA
        assert 0 < batch.num_rows <= reader.batch_rows
        batch.validate(full=True)
        rows += ({k: v for k, v in row.items() if v is not None} for row in batch.to_pylist())
    return rows


def reader_of(kind: type[Reader], path: Path, **options: Any) -> Reader:
    """A reader of this kind, whatever the content looks like."""
    return kind([DumpFile(path)], **options)
