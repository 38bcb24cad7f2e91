"""Parquet, through Arrow, a row group's worth of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, RowBuilder
from ssrem.readers.layout import Layout, Plan
from ssrem.readers.rows import MalformedRowError, raw_batch, row_values
from ssrem.readers.tabular import check_columns
from ssrem.readers.times import NotVectorisableError

_MAGIC = b"PAR1"


class ParquetReader(Reader):
    """One row, one utterance; `line` is the row's ordinal. Columns that no field uses go to the metadata.

    A row whose text is not UTF-8 is 'undecodable', with the cell's bytes as `raw`, since a column store has
    no rows of bytes; one with a list or struct for a field is 'malformed_row', with the row's text.
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
                for batch in file.iter_batches(self.batch_rows):
                    self.bytes_read = self.total_bytes * (first - 1 + batch.num_rows) // rows
                    yield from self._raw(batch, plan, layout, first)
                    first += batch.num_rows
            except (OSError, pa.ArrowInvalid) as error:
                raise DumpError(
                    f"{self.path}: damaged after row {first - 1:,}; fetch the file again"
                ) from error

    def _open(self) -> pyarrow.parquet.ParquetFile:
        try:
            return pyarrow.parquet.ParquetFile(self.path, memory_map=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise DumpError(f"{self.path}: not a whole Parquet file; fetch the file again") from error

    def _raw(self, batch: pa.RecordBatch, plan: Plan, layout: Layout, first: int) -> Iterator[pa.RecordBatch]:
        columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
        lines = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        try:
            yield raw_batch(
                {name: _valid(column) for name, column in columns.items()},
                plan,
                layout,
                self.path.name,
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
                builder.add_problem("undecodable", self.path.name, line, broken)
                continue
            try:
                builder.add("message", self.path.name, line, row_values(row, plan, layout))
            except MalformedRowError:
                builder.add_problem("malformed_row", self.path.name, line, repr(row).encode())
        yield from builder.batches()


def _plain(column: pa.Array) -> pa.Array:
    """Dictionary, large and view strings as strings, all bytes as one type of bytes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column.cast(pa.binary())
    return column


def _valid(column: pa.Array) -> pa.Array:
    """The column with its strings checked; Arrow itself does not check what a file calls UTF-8."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return column
    try:
        text = column.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raise NotVectorisableError from None
    return text


def _python(column: pa.Array) -> list[object]:
    """The column's values; a string that is not UTF-8 as its bytes."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        values: list[object] = column.to_pylist()
        return values
    return [value if value is None else _decoded(value) for value in column.cast(pa.binary()).to_pylist()]


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
