"""Tables with a message in each row: CSV and TSV with a header, and Parquet. Unused columns go to the metadata.

Arrow reads whole columns. Python's module csv reads all blocks that Arrow might read otherwise; it gives the same rows,
and the exact bytes of those that cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ssrem.errors import DumpError, EmptyFileError, one_line, short_repr
from ssrem.readers.base import BATCH_BYTES, Reader, Record, problem
from ssrem.readers.cells import (
    BACKSLASHES,
    OF_CHAT,
    OPEN,
    Row,
    cells_of,
    delimiter_of,
    first_line,
    names_delimiter,
    rows_of_cells,
)
from ssrem.readers.fields import check_header
from ssrem.readers.files.streams import SAMPLE_ROWS, UTF8_BOM, DumpFile, is_utf8
from ssrem.readers.paths import Paths
from ssrem.readers.rows import Integers, python_values, raw_batch
from ssrem.readers.times import NotVectorisableError, Times

_FEW_ROWS = 4_096
"""Rows that are read together where a block is not read as columns."""
_MUCH = 1 << 16
"""Fewest bytes of plain rows that are worth reading as columns."""


@cache
def _plain_rows(delimiter: str) -> re.Pattern[bytes]:
    """Pattern of whole rows of one line each, in which all quotes are in place."""
    sign = re.escape(delimiter.encode())
    cell = rb'(?:"[^"\r\n]*+(?:""[^"\r\n]*+)*+"|[^"%b\r\n]*+)' % sign
    return re.compile(rb"(?:%b(?:%b%b)*+\r?\n)*+" % (cell, sign, cell))


class CsvReader(Reader):
    """Rows of cells. An empty cell is null.

    A row with too few or too many cells, or with an unclosed quote, is 'malformed_row': its first line is reported, and
    reading continues with its second. Bytes that are not UTF-8 make the row 'undecodable'.
    """

    format: ClassVar[str] = "csv"
    describes: ClassVar[str] = "values separated by commas, semicolons or | with a header"
    takes_mapping: ClassVar[bool] = True
    delimiter: ClassVar[str] = ""
    """The delimiter of the format; empty if the header shows it."""
    _paths: Paths | None = None

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        first = first_line(file.head)
        if file.is_parquet or b"\0" in first or first.lstrip()[:1] in (b"", b"{", b"[", b"<"):
            return False
        if OF_CHAT.match(first.decode("utf-8", "replace")):
            return False
        # `check` refuses a header that is not UTF-8, and lines that end with carriage returns alone.
        text = first.replace(b"\r", b" ").decode("utf-8", "replace").encode()
        return len(cells_of(text, cls.delimiter or delimiter_of(first))) > 1

    def check(self, file: DumpFile) -> None:
        _, content, blocks = self._body(file)
        if not any(block.strip() for block in chain((content,), blocks)):
            raise EmptyFileError(
                f"{file.path}: there is a header but no row; give a file with conversations in it"
            )

    def _body(self, file: DumpFile) -> tuple[int, bytes, Iterator[bytes]]:
        """Read and keep the delimiter and the header; return the number of the line after the header, the rest of the
        first block, and the other blocks."""
        blocks = file.blocks()
        block = next(blocks, b"")
        first = first_line(block)
        self._delimiter = self.delimiter or delimiter_of(first)
        if b"\r" in first.rstrip(b"\r"):
            raise DumpError(f"{file.path}: its lines end with carriage returns alone; save it with newlines")
        rows = (row for row in rows_of_cells(block, self._delimiter) if not names_delimiter(row[2]))
        number, raw, header, reason = next(rows, (1, b"", [], "malformed_row"))
        if reason is not None:
            fault = "is not UTF-8" if reason == "undecodable" else "cannot be read"
            raise DumpError(
                f"{file.path}: line {number}, the header, {fault}; give its encoding with --encoding, such as cp1251, "
                "or save the file as UTF-8 with one header line"
            )
        self._check_header(file, header, raw)
        self._header = header
        number += raw.count(b"\n")
        return number, b"".join(block.split(b"\n", number - 1)[number - 1 :]), blocks

    def _check_header(self, file: DumpFile, header: list[str], raw: bytes) -> None:
        # A cell may hold JSON, into which a dotted name reaches.
        whole = {
            field: [name for name in names if name in header or name.split(".")[0] not in header]
            for field, names in self.mapping.items()
        }
        check_header(file.path, header, whole, DumpError)
        columns = tuple(header)
        self._paths = Paths.of(self.mapping, header)
        self.layout.map(self.mapping if self._paths is None else self._paths.keys)
        if self._paths is not None:
            about, messages = self._paths.messages(dict.fromkeys(header, "x"))
            columns = tuple(about | (messages or [{}])[0])
        # The first column may be the index of a data frame, which has no name.
        fields, named = self.layout.plan(columns).sources, header[header[:1] == [""] :]
        known = {*self.layout.needed} <= fields.keys() or self.mapping
        if not known and any(not cell or (len(cell) > 9 and Times().parse(cell)) for cell in named):
            names = ["time", "speaker", "addressee", "text"]
            such_as = f", such as {self._delimiter.join(names)!r}" if len(header) == len(names) else ""
            line = short_repr(raw.strip().decode("utf-8", "backslashreplace"))
            raise DumpError(
                f"{file.path}: line 1 is a row, not a header: {line}; add a line before it that names the "
                f"{len(header)} columns{such_as}"
            )

    def sample(self, file: DumpFile) -> Iterator[tuple[object, Mapping[str, Any]]]:
        number, content, _ = self._body(file)
        for row in islice(rows_of_cells(content, self._delimiter, number, whole=False), SAMPLE_ROWS):
            if self._is_whole(row):
                yield from ((None, message) for message in self._messages(row[2]))

    def records(self, file: DumpFile) -> Iterator[Record | pa.RecordBatch]:
        number, content, blocks = self._body(file)
        plain = _plain_rows(self._delimiter)
        for block in chain(blocks, (b"",)):
            at, rest, quoted = 0, b"", b'"' in content
            while at < len(content):
                found = plain.match(content, at) if quoted else None
                end = found.end() if found else len(content)
                whole = end - at > _MUCH or end == len(content)
                if whole and (batch := self._columns(file, content[at:end], number)) is not None:
                    yield batch
                else:
                    rows = rows_of_cells(content[at:], self._delimiter, number, whole=not block)
                    part, end = list(islice(rows, _FEW_ROWS)), at
                    for row in part:
                        end = content.index(row[1], end) + len(row[1])
                    if part and part[-1][3] == OPEN:
                        rest = part.pop()[1]
                    yield from self._rows(file, part)
                    end = end if part else len(content)  # only blank lines remain
                number += content.count(b"\n", at, end)
                at = end
            number -= rest.count(b"\n")
            content = rest + block

    def _columns(self, file: DumpFile, content: bytes, number: int) -> pa.RecordBatch | None:
        """Plain rows read as whole columns, or None if that might differ from reading them row by row."""
        if self._paths or b"\0" in content or b'\\"' in content or content.startswith(UTF8_BOM):
            return None
        if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
            return None
        lines = np.count_nonzero(np.frombuffer(content, np.uint8) == ord("\n"))
        lines += not content.endswith(b"\n")
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(content),
                pyarrow.csv.ReadOptions(column_names=self._header),
                pyarrow.csv.ParseOptions(delimiter=self._delimiter),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(self._header, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            return self._batch(file, table, np.arange(number, number + lines))
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _batch(self, file: DumpFile, table: pa.Table, lines: Integers) -> pa.RecordBatch:
        return raw_batch(table, lines, self.layout, file.name, optional=False)

    def _is_whole(self, row: Row) -> bool:
        return row[3] is None and len(row[2]) == len(self._header)

    def _rows(self, file: DumpFile, rows: list[Row]) -> Iterator[Record | pa.RecordBatch]:
        """Yield the records of rows, in one batch if all of them are whole."""
        if rows and not self._paths and all(map(self._is_whole, rows)):
            columns = zip(*(cells for _, _, cells, _ in rows), strict=True)
            arrays = [pa.array([cell or None for cell in cells], pa.string()) for cells in columns]
            with suppress(NotVectorisableError):
                lines = np.array([number for number, *_ in rows])
                yield self._batch(file, pa.table(arrays, self._header), lines)
                return
        for row in rows:
            line, raw, cells, reason = row
            if reason == BACKSLASHES:
                raise DumpError(
                    f'{file.path}: line {line}: quotes within texts seem to be written as \\"; write them doubled, as '
                    "pandas does with doublequote=True and Spark with the option escape set to a quote"
                )
            if not self._is_whole(row):
                yield problem(reason or "malformed_row", file.name, line, raw.removesuffix(b"\n"))
            else:
                for message in self._messages(cells):
                    yield self.message(file.name, line, message)

    def _messages(self, cells: list[str]) -> list[Any]:
        row = {name: cell or None for name, cell in zip(self._header, cells, strict=True)}
        if self._paths is None:
            return [row]
        about, messages = self._paths.messages(row)  # `about`: the columns beside a cell with messages
        return [about | message for message in messages or ()]


class TsvReader(CsvReader):
    """Cells between tabs."""

    format: ClassVar[str] = "tsv"
    describes: ClassVar[str] = "tab-separated values with a header"
    delimiter: ClassVar[str] = "\t"


# The exceptions of Arrow for damaged bytes; ValueError is raised for names that are not UTF-8.
_DAMAGE = (OSError, pa.ArrowException, ValueError, ArithmeticError, LookupError)

_TEXTS = {pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()}


class ParquetReader(Reader):
    """A message a row; `line` is the row's ordinal.

    A row whose text is not UTF-8 is 'undecodable', with the cell's bytes as `raw`, since a column store does not hold
    rows as bytes; a row with a list or struct in a field is 'malformed_row', with the row as text.
    """

    format: ClassVar[str] = "parquet"
    describes: ClassVar[str] = "Parquet, a row an utterance"
    takes_mapping: ClassVar[bool] = True
    is_text: ClassVar[bool] = False

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return file.is_parquet

    def check(self, file: DumpFile) -> None:
        with _opened(file) as parquet:
            columns = parquet.schema_arrow.names
            check_header(file.path, columns, self.mapping, DumpError)
            if not parquet.metadata.num_rows:
                raise EmptyFileError(
                    f"{file.path}: there are columns but no row; give a file with conversations in it"
                )

    def sample(self, file: DumpFile) -> Iterator[tuple[object, Mapping[str, Any]]]:
        with _opened(file) as parquet, suppress(*_DAMAGE):  # `records` says where the file is damaged
            for batch in islice(_batches(parquet, SAMPLE_ROWS), 1):
                yield from ((None, row) for row in _rows(batch))

    def records(self, file: DumpFile) -> Iterator[Record | pa.RecordBatch]:
        self.check(file)
        before, size = self.meter.read, file.path.stat().st_size
        with _opened(file) as parquet:
            done, rows = 0, parquet.metadata.num_rows
            try:
                for batch in _batches(parquet, self.batch_rows):
                    self.meter.read = before + size * min(done + len(batch), rows) // rows
                    yield from self._records_of(file, batch, done + 1)
                    done += len(batch)
            except (*_DAMAGE, MemoryError) as error:
                raise DumpError(
                    f"{file.path}: the rows after row {done:,} cannot be read ({one_line(error)}); fetch the file "
                    "again, leave that column out, or split the file if it does not fit into memory"
                ) from error

    def _records_of(
        self, file: DumpFile, batch: pa.RecordBatch, first: int
    ) -> Iterator[Record | pa.RecordBatch]:
        lines, names = np.arange(first, first + len(batch)), batch.schema.names
        used = set(chain.from_iterable(self.layout.plan(tuple(names)).sources.values()))
        texts = {name: _text(column) for name, column in zip(names, batch.columns, strict=True)}
        # A column of bytes that are no text, such as an embedding, is left out unless a field is read from it.
        kept = [name for name in names if name in used or texts[name] is not None]
        if all(texts[name] is not None for name in kept):
            with suppress(NotVectorisableError):
                table = pa.table({name: texts[name] for name in kept})
                yield raw_batch(table, lines, self.layout, file.name, optional=False)
                return
        for line, row in enumerate(_rows(batch.select(kept)), first):
            broken = next((value for value in row.values() if isinstance(value, bytes)), None)
            if broken is not None:
                yield problem("undecodable", file.name, line, broken)
            else:
                yield self.message(file.name, line, row, repr(row).encode())


def _opened(file: DumpFile) -> pyarrow.parquet.ParquetFile:
    try:
        return pyarrow.parquet.ParquetFile(pa.OSFile(os.fsencode(file.path), "rb"))
    except _DAMAGE as error:
        raise DumpError(f"{file.path}: not a whole Parquet file; fetch the file again") from error


def _batches(parquet: pyarrow.parquet.ParquetFile, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of at most `most` rows, which take about BATCH_BYTES."""
    for group in range(parquet.num_row_groups):
        about = parquet.metadata.row_group(group)
        fitting = 8 * BATCH_BYTES * about.num_rows // max(about.total_byte_size, 1)
        for batch in parquet.iter_batches(max(1, min(most, fitting)), row_groups=[group]):
            columns = [_plain(column) for column in batch.columns]
            yield from _small(pa.RecordBatch.from_arrays(columns, batch.schema.names))


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch, halved until each part takes at most BATCH_BYTES or is one row."""
    if batch.nbytes <= BATCH_BYTES or len(batch) < 2:
        yield batch
        return
    middle = len(batch) // 2
    for part in (batch.slice(0, middle), batch.slice(middle)):
        yield from _small(part)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Yield the rows of a batch; texts that are not UTF-8 are bytes."""
    columns = []
    for column in batch.columns:
        values = python_values(column)
        if column.type == pa.binary():
            values = [value.decode() if value is not None and is_utf8(value) else value for value in values]
        columns.append(values)
    for row in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, row, strict=True))


def _plain(column: pa.Array) -> pa.Array:
    """The column, but texts of any type as bytes, since Arrow does not validate texts when it reads a file."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.binary()) if column.type in _TEXTS else column


def _text(column: pa.Array) -> pa.Array | None:
    """The column, bytes as text; None if they are not UTF-8."""
    try:
        return column.cast(pa.string()) if column.type == pa.binary() else column
    except pa.ArrowInvalid:
        return None
