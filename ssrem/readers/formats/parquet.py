"""Parquet, read by Arrow in batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ssrem.errors import DumpError
from ssrem.readers.base import BATCH_BYTES, SAMPLE_ROWS, Reader, Record, problem
from ssrem.readers.fields import check_columns
from ssrem.readers.files.streams import LONGEST_ROW, is_utf8, too_long
from ssrem.readers.metadata import python_values
from ssrem.readers.rows import raw_batch
from ssrem.readers.times import NotVectorisableError

# The exceptions of Arrow for damaged bytes; ValueError is raised for names that are not UTF-8.
_DAMAGE = (OSError, pa.ArrowException, ValueError, OverflowError)

_PLAIN = {"PLAIN", "RLE", "BIT_PACKED"}
"""Encodings of values one after another; RLE and BIT_PACKED are those of nulls and lists."""
_DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}

_MOST_BYTES = 1 << 30
"""Most bytes that a batch of values may take whose length the file does not show."""


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

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        with self._open() as file, suppress(*_DAMAGE):  # whoever reads on says where
            for batch in islice(file.iter_batches(min(SAMPLE_ROWS, self._rows_at_once(file))), 1):
                yield from ((None, row) for row in _rows(batch))

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.check()
        with self._open() as file:
            done, rows = 0, file.metadata.num_rows
            try:
                for read in file.iter_batches(self._rows_at_once(file)):
                    for batch in self._slices(read, done + 1):
                        self.bytes_read = self.total_bytes * min(done + batch.num_rows, rows) // rows
                        yield from self._records(batch, done + 1)
                        done += batch.num_rows
            except (MemoryError, pa.ArrowCapacityError) as error:
                raise DumpError(
                    f"{self.path}: the rows after row {done:,} do not fit into memory; split the file"
                ) from error
            except _DAMAGE as error:
                raise DumpError(f"{self.path}: damaged after row {done:,}; fetch the file again") from error
            if done != rows:
                raise DumpError(
                    f"{self.path}: its header says {rows:,} rows, but it has {done:,}; fetch the file again"
                )

    def _rows_at_once(self, file: pyarrow.parquet.ParquetFile) -> int:
        """Rows of a batch that takes about BATCH_BYTES of memory before `_slices` decodes it.

        DumpError if rows are longer than LONGEST_ROW on average.
        """
        about = file.metadata
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        width, most = 1, self.batch_rows
        for group in groups:
            chunks = [group.column(number) for number in range(about.num_columns)]
            values = sum(
                chunk.num_values * max(8, about.schema.column(number).length)
                for number, chunk in enumerate(chunks)
            )
            width = max(width, (group.total_byte_size + values) // max(group.num_rows, 1))
            # A value of such a chunk may be as long as the whole chunk, since bytes that values share are stored once.
            shared = [
                c.total_uncompressed_size
                for c in chunks
                if _shares(c) and c.path_in_schema not in self._encoded
            ]
            most = min(most, max(1, _MOST_BYTES // max(shared, default=1)))
        if width > LONGEST_ROW:
            raise too_long(self.path, "a row")
        return max(1, min(most, BATCH_BYTES // width))

    def _open(self) -> pyarrow.parquet.ParquetFile:
        """The file, with dictionaries of text left as they are: decoded, a few bytes may become many gigabytes."""
        try:
            file = pyarrow.parquet.ParquetFile(self._stored())
            self._encoded = _dictionaries(file)
            return pyarrow.parquet.ParquetFile(self._stored(), read_dictionary=self._encoded)
        except _DAMAGE as error:
            raise DumpError(f"{self.path}: not a whole Parquet file; fetch the file again") from error

    def _stored(self) -> pa.OSFile:
        return pa.OSFile(os.fsencode(self.path), "rb")

    def _slices(self, batch: pa.RecordBatch, first: int) -> Iterator[pa.RecordBatch]:
        """The batch in slices which take, decoded, about BATCH_BYTES; first: the number of its first row.

        DumpError if a row is longer than LONGEST_ROW.
        """
        sizes = np.zeros(batch.num_rows, np.int64)
        for column in batch.columns:
            if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
                lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False)
                rows = column.indices.is_valid().to_numpy(zero_copy_only=False)
                sizes[rows] += lengths[column.indices.drop_null().to_numpy(zero_copy_only=False)]
        if len(sizes) and sizes.max() > LONGEST_ROW:
            raise too_long(self.path, f"row {first + int(sizes.argmax()):,}")
        filled = np.cumsum(sizes) // BATCH_BYTES
        edges = [0, *(np.flatnonzero(np.diff(filled)) + 1).tolist(), batch.num_rows]
        for start, stop in pairwise(edges):
            yield batch.slice(start, stop - start)

    def _records(self, batch: pa.RecordBatch, first: int) -> Iterator[Record | pa.RecordBatch]:
        columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
        lines = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        try:
            valid = {name: _valid(column) for name, column in columns.items()}
            yield raw_batch(valid, self.layout, self.file, lines, optional=False)
            return
        except NotVectorisableError:
            pass
        for line, row in enumerate(_rows(batch), first):
            broken = next((value for value in row.values() if isinstance(value, bytes)), None)
            if broken is not None:
                yield problem("undecodable", self.file, line, broken)
            else:
                yield self.message(self.file, line, row, repr(row).encode())


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """The rows of a batch; strings that are not UTF-8 as bytes."""
    names = batch.schema.names
    for values in zip(*(_python(_plain(batch.column(name))) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def _dictionaries(file: pyarrow.parquet.ParquetFile) -> list[str]:
    """The columns of text that are stored as a dictionary, at least in part."""
    about = file.metadata
    encodings: dict[str, set[str]] = {}
    for group in map(about.row_group, range(about.num_row_groups)):
        for chunk in map(group.column, range(about.num_columns)):
            if chunk.physical_type == "BYTE_ARRAY":
                encodings.setdefault(chunk.path_in_schema, set()).update(chunk.encodings)
    return [
        name
        # Columns alone, not values within lists.
        for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types, strict=True)
        if _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
        and _DICTIONARY & encodings.get(name, set())
        and encodings[name] <= _DICTIONARY | _PLAIN
    ]


def _shares(chunk: pyarrow.parquet.ColumnChunkMetaData) -> bool:
    """Whether bytes that several values of the chunk share are stored once."""
    return chunk.physical_type == "BYTE_ARRAY" and not _PLAIN.issuperset(chunk.encodings)


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


def _is_text(kind: pa.DataType) -> bool:
    """Whether it is a type of strings or bytes, but for views."""
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _valid(column: pa.Array) -> pa.Array:
    """The column with its strings validated as UTF-8, which Arrow does not do when it reads a file."""
    try:
        if _is_text(column.type):
            column = column.cast(pa.string())
        if _is_text(column.type) or pa.types.is_nested(column.type):
            column.validate(full=True)
    except pa.ArrowInvalid:
        raise NotVectorisableError from None
    return column


def _python(column: pa.Array) -> list[object]:
    """The column's values; strings that are not UTF-8 as bytes."""
    if not _is_text(column.type):
        return python_values(column)
    values = column.cast(pa.binary()).to_pylist()
    return [value.decode() if value is not None and is_utf8(value) else value for value in values]
