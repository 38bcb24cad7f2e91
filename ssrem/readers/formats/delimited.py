"""CSV and TSV with a header.

Arrow reads blocks without quotes as whole columns. Python's parser gives the same rows of all other blocks, and the
exact bytes of those that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ssrem.errors import DumpError
from ssrem.readers.base import SAMPLE_ROWS, Reader, Record, problem
from ssrem.readers.cells import OPEN, Row, cells_of, delimiter_of, first_line, names_delimiter, rows_of_cells
from ssrem.readers.fields import check_header, unknown_columns
from ssrem.readers.files.streams import UTF8_BOM, excerpt, head, is_utf8
from ssrem.readers.paths import Paths
from ssrem.readers.rows import Integers, raw_batch
from ssrem.readers.times import NotVectorisableError, Times

_LONGEST_NAME = 30
"""Most bytes of the name of a column; what is longer is text."""

_FEW_ROWS = 4_096
"""Rows that are read together where a block is not read as columns."""


_MUCH = 1 << 16
"""Bytes of plain rows that are worth reading as columns."""


@cache
def _plain_rows(delimiter: str) -> re.Pattern[bytes]:
    """Whole rows of one line each, all of whose quotes are in place."""
    sign = re.escape(delimiter.encode())
    cell = rb'(?:"[^"\r\n]*+(?:""[^"\r\n]*+)*+"|[^"%b\r\n]*+)' % sign
    return re.compile(rb"(?:%b(?:%b%b)*+\r?\n)*+" % (cell, sign, cell))


class DelimitedReader(Reader):
    """Rows of cells. An empty cell is null; columns that no field uses go to the metadata.

    A row with too few or too many cells, or with an unclosed quote, is 'malformed_row': its first line is reported, and
    reading continues with its second. Bytes that are not UTF-8 make the row 'undecodable'.
    """

    takes_mapping: ClassVar[bool] = True
    delimiter: ClassVar[str] = ""
    """The delimiter of the format, or empty for that of the header."""
    _paths: Paths | None = None

    @classmethod
    def delimiter_of(cls, header: bytes) -> str:
        return cls.delimiter or delimiter_of(header)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        start = head(path)
        _, first = first_line(start)
        if start.startswith(b"PAR1") or b"\0" in first or first.lstrip()[:1] in (b"", b"{", b"[", b"<"):
            return False
        header = cells_of(first, cls.delimiter_of(first))
        return len(header) > 1 and len(set(header)) == len(header)

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        number, line = first_line(head(path))
        names = line.split(cls.delimiter_of(line).encode())
        if b"\0" in line or len(names) < 2 or line.lstrip()[:1] in (b"{", b"[", b"<"):
            return None
        if b"\r" in line.rstrip(b"\r"):
            return "its lines end with carriage returns alone; save it with newlines"
        if any(len(name) > _LONGEST_NAME for name in names):
            return None  # text, not a header
        fault = (
            "holds a column twice" if is_utf8(line) else "is not UTF-8 (give its encoding with --encoding)"
        )
        return f"line {number}, the header, {fault}: {excerpt(line)}"

    def check(self) -> None:
        _, content, blocks = self._body()
        if not any(map(bytes.strip, chain((content,), blocks))):
            raise DumpError(
                f"{self.path}: there is a header but no row; give a file with conversations in it"
            )
        self.bytes_read = 0

    def _body(self) -> tuple[int, bytes, Iterator[bytes]]:
        """Sets the delimiter and the header; the number of the line after it, the rest of the first block, and the
        other blocks."""
        blocks = self.blocks(self.path)
        block = next(blocks, b"")
        self._delimiter = self.delimiter_of(first_line(block)[1])
        rows = (row for row in rows_of_cells(block, self._delimiter) if not names_delimiter(row[2]))
        number, raw, header, reason = next(rows, (1, b"", [], "malformed_row"))
        if reason is not None:
            fault = "is not UTF-8" if reason == "undecodable" else "cannot be read"
            raise DumpError(
                f"{self.path}: line 1, the header, {fault}; give its encoding with --encoding, such as cp1251, or save "
                "the file as UTF-8 with one header line"
            )
        self._check_header(header, raw)
        self._header = header
        number += raw.count(b"\n")
        return number, b"".join(block.split(b"\n", number - 1)[number - 1 :]), blocks

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        number, content, _ = self._body()
        for row in islice(rows_of_cells(content, self._delimiter, number, whole=False), SAMPLE_ROWS):
            if self._is_whole(row):
                yield from ((None, message) for message in self._messages(row[2]))

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        number, content, blocks = self._body()
        plain = _plain_rows(self._delimiter)
        for block in chain(blocks, (b"",)):
            at, rest, quoted = 0, b"", b'"' in content
            while at < len(content):
                found = plain.match(content, at) if quoted else None
                end = found.end() if found else len(content)
                whole = end - at > _MUCH or end == len(content)
                if whole and (batch := self._columns(content[at:end], number)) is not None:
                    yield batch
                else:
                    rows = rows_of_cells(content[at:], self._delimiter, number, whole=not block)
                    part, end = list(islice(rows, _FEW_ROWS)), at
                    for row in part:
                        end = content.index(row[1], end) + len(row[1])
                    if part and part[-1][3] == OPEN:
                        rest = part.pop()[1]
                    yield from self._rows(part)
                    end = end if part else len(content)  # blank lines are left
                number += content.count(b"\n", at, end)
                at = end
            number -= rest.count(b"\n")
            content = rest + block

    def _check_header(self, header: list[str], raw: bytes) -> None:
        check_header(self.path, header, self.mapping, DumpError)
        columns = tuple(header)
        self._paths = Paths.of(self.mapping, header)
        if self._paths is not None:
            self.layout.map(self._paths.keys)
            (message, *_) = self._paths.messages(dict.fromkeys(header, "x"))[1] or ({},)
            columns = tuple(message)
        # The first column of a data frame, its index, has no name.
        fields, named = self.layout.plan(columns).sources, header[header[:1] == [""] :]
        known = {*self.layout.needed} <= fields.keys() or self.mapping
        if not known and any(not cell or (len(cell) > 9 and Times().parse(cell)) for cell in named):
            names = self._delimiter.join(("time", "speaker", "addressee", "text"))
            raise DumpError(
                f"{self.path}: line 1 is a row, not a header: {excerpt(raw)}; add a line before it that names the "
                f"columns, such as {names!r}"
            )
        if missing := [field for field in self.layout.needed if field not in fields]:
            raise unknown_columns(self.path, header, missing, DumpError)

    def _columns(self, content: bytes, number: int) -> pa.RecordBatch | None:
        """Plain rows read as whole columns, or None if that might differ from reading them row by row."""
        if self._paths or b"\0" in content or content.startswith(UTF8_BOM):
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
            return self._batch(table, np.arange(number, number + lines))
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _batch(self, table: pa.Table, lines: Integers) -> pa.RecordBatch:
        return raw_batch(table, lines, self.layout, self.file, optional=False)

    def _is_whole(self, row: Row) -> bool:
        return row[3] is None and len(row[2]) == len(self._header)

    def _rows(self, rows: list[Row]) -> Iterator[Record | pa.RecordBatch]:
        """The records of rows, as columns where all of them are whole."""
        if rows and not self._paths and all(map(self._is_whole, rows)):
            columns = zip(*(cells for _, _, cells, _ in rows), strict=True)
            arrays = [pa.array([cell or None for cell in cells], pa.string()) for cells in columns]
            with suppress(NotVectorisableError):
                lines = np.array([number for number, *_ in rows])
                yield self._batch(pa.table(arrays, self._header), lines)
                return
        for row in rows:
            line, raw, cells, reason = row
            if not self._is_whole(row):
                yield problem(reason or "malformed_row", self.file, line, raw.removesuffix(b"\n"))
            else:
                for message in self._messages(cells):
                    yield self.message(self.file, line, message)

    def _messages(self, cells: list[str]) -> list[Any]:
        row = {name: cell or None for name, cell in zip(self._header, cells, strict=True)}
        return [row] if self._paths is None else self._paths.messages(row)[1] or []


class CsvReader(DelimitedReader):
    """Cells between commas, semicolons or |."""

    format: ClassVar[str] = "csv"
    describes: ClassVar[str] = "values separated by commas, semicolons or | with a header"


class TsvReader(DelimitedReader):
    """Cells between tabs."""

    format: ClassVar[str] = "tsv"
    describes: ClassVar[str] = "tab-separated values with a header"
    delimiter: ClassVar[str] = "\t"
