"""Parquet, read by Arrow in batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ssrem.errors import DumpError, one_line
from ssrem.readers.base import BATCH_BYTES, SAMPLE_ROWS, Reader, Record, problem
from ssrem.readers.fields import check_columns
from ssrem.readers.files.streams import LONGEST_ROW, is_parquet, is_utf8, too_long
from ssrem.readers.rows import python_values, raw_batch
from ssrem.readers.times import NotVectorisableError

# The exceptions of Arrow for damaged bytes; ValueError is raised for names that are not UTF-8.
_DAMAGE = (OSError, pa.ArrowException, ValueError, ArithmeticError, LookupError)

_TEXTS = {pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()}

_PLAIN = {"PLAIN", "RLE", "BIT_PACKED"}
"""Encodings of values one after another; RLE and BIT_PACKED are those of nulls and lists."""
_DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}

_MOST_BYTES = 256 << 20
"""Most bytes that a batch may take where values share bytes that are stored once."""


class ParquetReader(Reader):
    """An utterance a row; `line` is the row's ordinal. Columns that no field uses go to the metadata.

    A row whose text is not UTF-8 is 'undecodable', with the cell's bytes as `raw`, since a column store does not hold
    rows as bytes; a row with a list or struct in a field is 'malformed_row', with the row as text.
    """

    format: ClassVar[str] = "parquet"
    describes: ClassVar[str] = "Parquet, a row an utterance"
    takes_mapping: ClassVar[bool] = True
    is_text: ClassVar[bool] = False

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return is_parquet(path)

    def check(self) -> None:
        with self._open() as file:
            check_columns(self.path, file.schema_arrow.names, self.layout)
            if not file.metadata.num_rows:
                raise DumpError(
                    f"{self.path}: there are columns but no row; give a file with conversations in it"
                )

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        with self._open() as file, suppress(*_DAMAGE):  # whoever reads on says where
            for batch in islice(self._read(file, SAMPLE_ROWS), 1):
                yield from ((None, row) for row in _rows(batch))

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.check()
        with self._open() as file:
            done, rows = 0, file.metadata.num_rows
            try:
                for batch in self._read(file, self.batch_rows):
                    self.bytes_read = self.total_bytes * min(done + len(batch), rows) // rows
                    yield from self._records(batch, done + 1)
                    done += len(batch)
            except (*_DAMAGE, MemoryError) as error:
                raise DumpError(
                    f"{self.path}: the rows after row {done:,} cannot be read ({one_line(error)}); fetch the file "
                    "again, leave that column out, or split the file if it does not fit into memory"
                ) from error

    def _open(self, dictionaries: list[str] | None = None) -> pyarrow.parquet.ParquetFile:
        try:
            return pyarrow.parquet.ParquetFile(
                pa.OSFile(os.fsencode(self.path), "rb"), read_dictionary=dictionaries
            )
        except _DAMAGE as error:
            raise DumpError(f"{self.path}: not a whole Parquet file; fetch the file again") from error

    def _read(self, file: pyarrow.parquet.ParquetFile, most: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most so many, which take about BATCH_BYTES."""
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(min(most, self._rows_at_once(file, group)), row_groups=[group]):
                columns = [_plain(column) for column in batch.columns]
                yield from _small(pa.RecordBatch.from_arrays(columns, batch.schema.names))

    def _rows_at_once(self, file: pyarrow.parquet.ParquetFile, group: int) -> int:
        """Rows of a batch that takes at most _MOST_BYTES, although a few stored bytes may become many gigabytes.

        DumpError if rows are longer than LONGEST_ROW.
        """
        about = file.metadata.row_group(group)
        chunks = [about.column(number) for number in range(about.num_columns)]
        plain = [field.name for field in file.schema_arrow if not pa.types.is_decimal(field.type)]
        values = shared = 0
        dictionaries = []
        for number, chunk in enumerate(chunks):
            values += chunk.num_values * max(8, file.schema.column(number).length)
            name, encodings = chunk.path_in_schema, set(chunk.encodings)
            if chunk.physical_type != "BYTE_ARRAY" or encodings <= _PLAIN:
                continue
            if encodings <= _PLAIN | _DICTIONARY and name in plain:  # no member of a list
                dictionaries.append(name)
            else:  # a value may be as long as the chunk
                shared = max(shared, chunk.total_uncompressed_size)
        width = (about.total_byte_size + values) // max(about.num_rows, 1)
        if dictionaries:
            with self._open(dictionaries) as encoded:
                first = next(encoded.iter_batches(1, row_groups=[group], columns=dictionaries))
            # Their longest values; a dictionary is read whole with the first row.
            width += sum(pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in first.columns)
        if width > LONGEST_ROW:
            raise too_long(self.path, "a row")
        return int(max(1, _MOST_BYTES // max(width, shared, 1)))

    def _records(self, batch: pa.RecordBatch, first: int) -> Iterator[Record | pa.RecordBatch]:
        lines = np.arange(first, first + len(batch))
        try:
            table = pa.table([_text(column) for column in batch.columns], batch.schema.names)
            yield raw_batch(table, lines, self.layout, self.file, optional=False)
            return
        except NotVectorisableError:
            pass
        for line, row in enumerate(_rows(batch), first):
            broken = next((value for value in row.values() if isinstance(value, bytes)), None)
            if broken is not None:
                yield problem("undecodable", self.file, line, broken)
            else:
                yield self.message(self.file, line, row, repr(row).encode())


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch halved until the parts take about BATCH_BYTES."""
    if batch.nbytes <= BATCH_BYTES or len(batch) < 2:
        yield batch
        return
    middle = len(batch) // 2
    for part in (batch.slice(0, middle), batch.slice(middle)):
        yield from _small(part)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """The rows of a batch; strings that are not UTF-8 as bytes."""
    for values in zip(*map(_python, batch.columns), strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))


def _plain(column: pa.Array) -> pa.Array:
    """The column with texts of all kinds as bytes, since Arrow does not validate them when it reads a file."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.binary()) if column.type in _TEXTS else column


def _text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string()) if column.type == pa.binary() else column
    except pa.ArrowInvalid:
        raise NotVectorisableError from None


def _python(column: pa.Array) -> list[object]:
    """The column's values; strings that are not UTF-8 as bytes."""
    values = python_values(column)
    if column.type != pa.binary():
        return values
    return [value.decode() if value is not None and is_utf8(value) else value for value in values]
