"""Parquet, read by Arrow in batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from ssrem.errors import DumpError
from ssrem.readers.base import BATCH_BYTES, Reader, Record, problem
from ssrem.readers.fields import check_columns
from ssrem.readers.metadata import python_values
from ssrem.readers.rows import raw_batch
from ssrem.readers.streams import is_utf8
from ssrem.readers.times import NotVectorisableError

# The exceptions of Arrow for damaged bytes; ValueError is raised for names that are not UTF-8.
_DAMAGE = (OSError, pa.ArrowException, ValueError, OverflowError)


class ParquetReader(Reader):
    """An utterance a row; `line` is the row's ordinal. Columns that no field uses go to the metadata.

    A row whose text is not UTF-8 is 'undecodable', with the cell's bytes as `raw`, since column stores have no bytes
    of rows; a row with a list or struct in a field is 'malformed_row', with the row as text.
    """

    format: ClassVar[str] = "parquet"
    describes: ClassVar[str] = "Parquet, a row an utterance"
    takes_mapping: ClassVar[bool] = True

    @classmethod
    def sniff(cls, path: Path) -> bool:
        if path.is_dir():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"

    def check(self) -> None:
        with self._open() as file:
            check_columns(self.path, file.schema_arrow.names, self.layout)
            if not file.metadata.num_rows:
                raise DumpError(
                    f"{self.path}: there are columns but no row; give a file with conversations in it"
                )

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.check()
        with self._open() as file:
            done, rows = 0, file.metadata.num_rows
            try:
                for batch in file.iter_batches(self._rows_at_once(file.metadata)):
                    self.bytes_read = self.total_bytes * min(done + batch.num_rows, rows) // rows
                    yield from self._records(batch, done + 1)
                    done += batch.num_rows
            except _DAMAGE as error:
                raise DumpError(f"{self.path}: damaged after row {done:,}; fetch the file again") from error
            if done != rows:
                raise DumpError(
                    f"{self.path}: its header says {rows:,} rows, but it has {done:,}; fetch the file again"
                )

    def _rows_at_once(self, about: pyarrow.parquet.FileMetaData) -> int:
        """Number of rows for batches of at most about BATCH_BYTES, estimated from the sizes in the file's metadata."""
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
        return max(1, min(self.batch_rows, BATCH_BYTES // max(widest, 1)))

    def _open(self) -> pyarrow.parquet.ParquetFile:
        try:
            file = pyarrow.parquet.ParquetFile(pa.OSFile(os.fsencode(self.path), "rb"))
            _ = file.schema_arrow.names
        except _DAMAGE as error:
            raise DumpError(f"{self.path}: not a whole Parquet file; fetch the file again") from error
        return file

    def _records(self, batch: pa.RecordBatch, first: int) -> Iterator[Record | pa.RecordBatch]:
        columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
        lines = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        try:
            valid = {name: _valid(column) for name, column in columns.items()}
            yield raw_batch(valid, self.layout, self.file, lines)
            return
        except NotVectorisableError:
            pass
        cells = [_python(column) for column in columns.values()]
        for line, values in enumerate(zip(*cells, strict=True), first):
            row = dict(zip(columns, values, strict=True))
            broken = next((value for value in values if isinstance(value, bytes)), None)
            if broken is not None:
                yield problem("undecodable", self.file, line, broken)
            else:
                yield self.message(self.file, line, row, repr(row).encode())


def _plain(column: pa.Array) -> pa.Array:
    """The column with dictionary, large and view strings as strings, and all kinds of bytes as one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    return column


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_binary(column.type))


def _valid(column: pa.Array) -> pa.Array:
    """The column with its strings validated as UTF-8, which Arrow does not do when it reads a file."""
    try:
        if _is_text(column):
            column = column.cast(pa.string())
        if _is_text(column) or pa.types.is_nested(column.type):
            column.validate(full=True)
    except pa.ArrowInvalid:
        raise NotVectorisableError from None
    return column


def _python(column: pa.Array) -> list[object]:
    """The column's values; strings that are not UTF-8 as bytes."""
    if not _is_text(column):
        return python_values(column)
    values = column.cast(pa.binary()).to_pylist()
    return [value.decode() if value is not None and is_utf8(value) else value for value in values]
