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
from ssrem.readers.arrow_types import python_values
from ssrem.readers.base import BATCH_BYTES, Reader, RowBuilder
from ssrem.readers.layout import Layout, Plan, check_columns
from ssrem.readers.rows import MalformedRowError, raw_batch, row_values
from ssrem.readers.streams import text_name
from ssrem.readers.times import NotVectorisableError

_MAGIC = b"PAR1"
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
            return file.read(4) == _MAGIC

    def check(self) -> None:
        with self._open() as file:
            check_columns(self.path, file.schema_arrow.names, self.mapping)
            if not file.metadata.num_rows:
                raise DumpError(
                    f"{self.path}: there are columns but no row; give a file with conversations in it"
                )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        self.check()
        layout = Layout(self.mapping)
        with self._open() as file:
            names = file.schema_arrow.names
            plan = layout.plan(tuple(names))
            first, rows = 1, file.metadata.num_rows
            try:
                for batch in file.iter_batches(self._rows_at_once(file.metadata)):
                    last = min(first - 1 + batch.num_rows, rows)
                    self.bytes_read = self.total_bytes * last // rows
                    yield from self._raw(batch, plan, layout, first)
                    first += batch.num_rows
            except _DAMAGE as error:
                raise DumpError(
                    f"{self.path}: damaged after row {first - 1:,}; fetch the file again"
                ) from error
            if first - 1 != rows:
                raise DumpError(
                    f"{self.path}: its header says {rows:,} rows, but it has {first - 1:,}; fetch the file again"
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

    def _raw(self, batch: pa.RecordBatch, plan: Plan, layout: Layout, first: int) -> Iterator[pa.RecordBatch]:
        columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
        file = text_name(self.path)
        lines = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        try:
            yield raw_batch(
                {name: _valid(column) for name, column in columns.items()},
                plan,
                layout,
                file,
                lines,
            )
            return
        except NotVectorisableError:
            pass
        builder = RowBuilder(self.batch_rows)
        cells = [_python(column) for column in columns.values()]
        for line, values in enumerate(zip(*cells, strict=True), first):
            row = dict(zip(columns, values, strict=True))
            broken = next((value for value in values if isinstance(value, bytes)), None)
            if broken is not None:
                builder.add_problem("undecodable", file, line, broken)
                continue
            try:
                builder.add("message", file, line, row_values(row, plan, layout))
            except MalformedRowError:
                builder.add_problem("malformed_row", file, line, repr(row).encode())
        yield from builder.batches()


def _plain(column: pa.Array) -> pa.Array:
    """The column with dictionary, large and view strings as strings, and all kinds of bytes as one."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    return column


def _valid(column: pa.Array) -> pa.Array:
    """The column with its strings validated as UTF-8, which Arrow does not do when it reads a file."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        if pa.types.is_nested(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                raise NotVectorisableError from None
        return column
    try:
        text = column.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raise NotVectorisableError from None
    return text


def _python(column: pa.Array) -> list[object]:
    """The column's values; strings that are not UTF-8 as bytes."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return python_values(column)
    return [value if value is None else _decoded(value) for value in column.cast(pa.binary()).to_pylist()]


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
