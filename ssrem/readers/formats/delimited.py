"""CSV and TSV with a header."""

from __future__ import annotations

import csv
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.errors import DumpError
from ssrem.readers.base import BATCH_BYTES, Reader, Record, problem
from ssrem.readers.fields import ALIASES, check_columns, normalise
from ssrem.readers.rows import raw_batch
from ssrem.readers.streams import LONGEST_ROW, head, is_utf8, shown
from ssrem.readers.times import NotVectorisableError, Times

#: A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file.
_MOST_LINES_A_ROW = 1_000

#: Most bytes of the name of a column; what is longer is text.
_LONGEST_NAME = 30

#: Most bytes of the lines of a quoted cell, for the same reason.
_MOST_BYTES_A_ROW = LONGEST_ROW

#: (first physical line, its bytes if it is a problem, cells, reason code)
_Row = tuple[int, bytes, list[str], str | None]


class _RunawayQuoteError(Exception):
    pass


class DelimitedReader(Reader):
    """Rows of cells. An empty cell is null; columns that no field uses go to the metadata.

    A row with too few or too many cells, or with an unclosed quote, is 'malformed_row': its first line is reported, and
    reading continues with its second. Bytes that are not UTF-8 make the row 'undecodable'.
    """

    takes_mapping: ClassVar[bool] = True
    block_bytes: ClassVar[int] = 4 << 20
    delimiter: ClassVar[str]

    @classmethod
    def delimiter_of(cls, header: bytes) -> str:
        """The delimiter of a file whose first line is `header`."""
        return cls.delimiter

    @classmethod
    def sniff(cls, path: Path) -> bool:
        start = head(path)
        first = next((line for line in start.split(b"\n") if line.strip()), b"")
        if start.startswith(b"PAR1") or b"\0" in first or first.lstrip()[:1] in (b"", b"{", b"[", b"<"):
            return False
        try:
            header = next(csv.reader([first.decode("utf-8")], delimiter=cls.delimiter_of(first)))
        except (UnicodeDecodeError, csv.Error, StopIteration):
            return False
        return len(header) > 1 and len(set(header)) == len(header)

    @classmethod
    def missed(cls, path: Path) -> str | None:
        start = head(path)
        number, line = next(
            ((n, line) for n, line in enumerate(start.split(b"\n"), 1) if line.strip()), (1, b"")
        )
        names = line.split(cls.delimiter.encode())
        if b"\0" in line or len(names) < 2 or line.lstrip()[:1] in (b"{", b"[", b"<"):
            return None
        if any(len(name) > _LONGEST_NAME for name in names):
            return None  # text, not a header
        fault = (
            "holds a column twice" if is_utf8(line) else "is not UTF-8 (give its encoding with --encoding)"
        )
        return f"line {number}, the header, {fault}: {shown(line)}"

    def check(self) -> None:
        self._header(self._rows())
        self.bytes_read = 0

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        source = self._rows()
        header = self._header(source)
        row = next(source, None)
        if row is None:
            raise DumpError(
                f"{self.path}: there is a header but no row; give a file with conversations in it"
            )
        while row is not None:
            rows: list[_Row] = []
            size = 0
            while row is not None and len(rows) < self.batch_rows and size < BATCH_BYTES:
                rows.append(row)
                size += len(row[1])
                row = next(source, None)
            yield from self._records(rows, header)

    def _rows(self) -> Iterator[_Row]:
        first = next((line for line in head(self.path).split(b"\n") if line.strip()), b"")
        lines = (line + b"\n" for _, line in self.lines(self.path))
        return rows_of_cells(lines, self.delimiter_of(first))

    def _header(self, source: Iterator[_Row]) -> list[str]:
        _, raw, header, reason = next(source, (1, b"", [], "malformed_row"))
        if reason is not None:
            fault = "is not UTF-8" if reason == "undecodable" else "cannot be read"
            raise DumpError(
                f"{self.path}: line 1, the header, {fault}; give its encoding with --encoding, such as cp1251, or save "
                "the file as UTF-8 with one header line"
            )
        if any(not cell or (len(cell) > 9 and Times().parse(cell)) for cell in header) and not self.mapping:
            names = self.delimiter_of(raw).join(("time", "speaker", "addressee", "text"))
            raise DumpError(
                f"{self.path}: line 1 is a row, not a header: {shown(raw)}; add a line before it that names the "
                f"columns, such as {names!r}"
            )
        check_columns(self.path, header, self.layout)
        return header

    def _records(self, rows: list[_Row], header: list[str]) -> Iterator[Record | pa.RecordBatch]:
        if all(reason is None and len(cells) == len(header) for _, _, cells, reason in rows):
            try:
                yield self._vectorised(rows, header)
                return
            except NotVectorisableError:
                pass
        for line, raw, cells, reason in rows:
            if reason is None and len(cells) == len(header):
                row = {name: cell or None for name, cell in zip(header, cells, strict=True)}
                yield self.message(self.file, line, row)
            else:
                yield problem(reason or "malformed_row", self.file, line, raw.removesuffix(b"\n"))

    def _vectorised(self, rows: list[_Row], header: list[str]) -> pa.RecordBatch:
        columns = {}
        for name, cells in zip(header, zip(*(cells for _, _, cells, _ in rows), strict=True), strict=True):
            column = pa.array(cells, pa.string())
            columns[name] = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        lines = pa.array(np.array([line for line, *_ in rows], np.int64))
        return raw_batch(columns, self.layout, self.file, lines)


class CsvReader(DelimitedReader):
    format: ClassVar[str] = "csv"
    describes: ClassVar[str] = "values separated by commas, semicolons or | with a header"
    delimiter: ClassVar[str] = ","

    @classmethod
    def delimiter_of(cls, header: bytes) -> str:
        """The one of `,` and `;` that is more frequent; `|` where a column next to it has a well-known name."""
        names = {normalise(name) for name in header.decode("utf-8", "replace").split("|")}
        known = {alias for aliases in ALIASES.values() for alias in aliases}
        signs = (",", ";", "|") if len(names) > 1 and names & known else (",", ";")
        return max(signs, key=lambda sign: header.count(sign.encode()))


class TsvReader(DelimitedReader):
    format: ClassVar[str] = "tsv"
    describes: ClassVar[str] = "tab-separated values with a header"
    delimiter: ClassVar[str] = "\t"


def rows_of_cells(lines: Iterator[bytes], delimiter: str) -> Iterator[_Row]:
    """Parse lines into rows with their bytes; blank lines are skipped."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    again: deque[bytes] = deque()  # lines to parse again, after the row they were part of proved malformed
    taken: list[bytes] = []
    size = 0
    undecodable = False

    def feed() -> Iterator[str]:
        nonlocal undecodable, size
        while (line := again.popleft() if again else next(lines, None)) is not None:
            taken.append(line)
            size += len(line)
            if len(taken) > _MOST_LINES_A_ROW or (size > _MOST_BYTES_A_ROW and len(taken) > 1):
                raise _RunawayQuoteError
            undecodable |= not is_utf8(line)
            yield line.decode("utf-8", "surrogateescape")

    number = 1
    parser = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        malformed = False
        try:
            cells = next(parser)
        except StopIteration:
            return
        except (csv.Error, _RunawayQuoteError):
            again.extendleft(reversed(taken[1:]))
            del taken[1:]
            cells, malformed, undecodable = [], True, not is_utf8(taken[0])
            parser = csv.reader(feed(), delimiter=delimiter, strict=True)
        raw = b"".join(taken)
        reason = "undecodable" if undecodable else "malformed_row" if malformed else None
        blank = len(cells) == 1 and not raw.strip()
        if (cells or reason) and not blank:
            yield number, raw, cells, reason
        number += len(taken)
        taken.clear()
        size = 0
        undecodable = False
