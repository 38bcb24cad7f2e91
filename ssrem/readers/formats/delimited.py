"""CSV and TSV with a header.

Arrow reads blocks of rows as whole columns. Rows with anything unusual are read by Python's parser, which gives the
same rows, and the exact bytes of those that cannot be read.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.blocks import FEW_ROWS, NEWLINE, RETURN, Block, BlockReader
from ssrem.readers.fields import ALIASES, check_columns, normalise
from ssrem.readers.rows import raw_batch, table_batch
from ssrem.readers.streams import LONGEST_ROW, UTF8_BOM, excerpt, head, is_utf8
from ssrem.readers.times import NotVectorisableError, Times

_MOST_LINES_A_ROW = 1_000
"""A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file."""

_LONGEST_NAME = 30
"""Most bytes of the name of a column; what is longer is text."""

_MOST_BYTES_A_ROW = LONGEST_ROW
"""Most bytes of the lines of a quoted cell, for the same reason."""

_FEW_BYTES = 1 << 16
"""Bytes that are read row by row where a quote is out of place; then twice as many, until a block has no such quote."""

_Row = tuple[int, bytes, list[str], str | None]
"""(first physical line, its bytes if it is a problem, cells, reason code)"""


def names_delimiter(cells: Sequence[str]) -> bool:
    """Whether the cells are the line `sep=;` that spreadsheets read and write before the header."""
    return [cell.lower() for cell in cells] == ["sep=", ""]


class _RunawayQuoteError(Exception):
    pass


class DelimitedReader(Reader):
    """Rows of cells. An empty cell is null; columns that no field uses go to the metadata.

    A row with too few or too many cells, or with an unclosed quote, is 'malformed_row': its first line is reported, and
    reading continues with its second. Bytes that are not UTF-8 make the row 'undecodable'.
    """

    takes_mapping: ClassVar[bool] = True
    parse_bytes: ClassVar[int] = 2 << 20
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
    def near_miss(cls, path: Path) -> str | None:
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
        return f"line {number}, the header, {fault}: {excerpt(line)}"

    def check(self) -> None:
        self._header(rows_of_cells(Lines(self.blocks(self.path)), self._delimiter()))
        self.bytes_read = 0

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        lines, delimiter = Lines(self.blocks(self.path)), self._delimiter()
        header = self._header(rows_of_cells(lines, delimiter))
        reader: BlockReader[Record | pa.RecordBatch] = BlockReader(
            lambda block: self._vectorised(block, header, delimiter),
            lambda block: self._records(list(_rows_of(block, delimiter)), header),
        )
        empty, few = True, _FEW_BYTES
        while rest := lines.rest():
            block = whole_rows(rest, lines.number, delimiter)
            if len(block) > FEW_ROWS or len(block.content) == len(rest):
                lines.skip(block.content)
                records, few = reader.records(block), _FEW_BYTES
            else:  # a quote follows soon that does not belong to these rows
                rows = self._next_rows(lines, delimiter, min(few, len(rest)))
                records, few = self._records(rows, header), 2 * few
            for record in records:
                empty = False
                yield record
        if empty:
            raise DumpError(
                f"{self.path}: there is a header but no row; give a file with conversations in it"
            )

    def _delimiter(self) -> str:
        return self.delimiter_of(next((line for line in head(self.path).split(b"\n") if line.strip()), b""))

    def _next_rows(self, lines: Lines, delimiter: str, size: int) -> list[_Row]:
        """The next rows, of this many bytes together, parsed one by one."""
        rows = []
        end = lines.position + size
        for row in rows_of_cells(lines, delimiter):
            rows.append(row)
            if lines.position >= end or len(rows) == self.batch_rows:
                break
        return rows

    def _header(self, source: Iterator[_Row]) -> list[str]:
        absent: _Row = (1, b"", [], "malformed_row")
        _, raw, header, reason = next(source, absent)
        if names_delimiter(header):
            _, raw, header, reason = next(source, absent)
        if reason is not None:
            fault = "is not UTF-8" if reason == "undecodable" else "cannot be read"
            raise DumpError(
                f"{self.path}: line 1, the header, {fault}; give its encoding with --encoding, such as cp1251, or save "
                "the file as UTF-8 with one header line"
            )
        if any(not cell or (len(cell) > 9 and Times().parse(cell)) for cell in header) and not self.mapping:
            names = self.delimiter_of(raw).join(("time", "speaker", "addressee", "text"))
            raise DumpError(
                f"{self.path}: line 1 is a row, not a header: {excerpt(raw)}; add a line before it that names the "
                f"columns, such as {names!r}"
            )
        check_columns(self.path, header, self.layout)
        return header

    def _vectorised(self, block: Block, header: list[str], delimiter: str) -> pa.RecordBatch | None:
        """The block read as whole columns, or None if that might differ from reading it row by row."""
        content = block.content
        if len(header) < 2 or content.startswith(UTF8_BOM) or b"\0" in content or not is_utf8(content):
            return None
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(content),
                pyarrow.csv.ReadOptions(column_names=header, block_size=self.parse_bytes),
                pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(header, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    check_utf8=False,
                ),
            )
            return table_batch(table, block, self.layout, self.file, optional=False)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _records(self, rows: list[_Row], header: list[str]) -> Iterator[Record | pa.RecordBatch]:
        """The records of parsed rows."""
        if rows and all(reason is None and len(cells) == len(header) for _, _, cells, reason in rows):
            with suppress(NotVectorisableError):
                yield self._columns(rows, header)
                return
        for line, raw, cells, reason in rows:
            if reason is None and len(cells) == len(header):
                row = {name: cell or None for name, cell in zip(header, cells, strict=True)}
                yield self.message(self.file, line, row)
            else:
                yield problem(reason or "malformed_row", self.file, line, raw.removesuffix(b"\n"))

    def _columns(self, rows: list[_Row], header: list[str]) -> pa.RecordBatch:
        columns = {}
        for name, cells in zip(header, zip(*(cells for _, _, cells, _ in rows), strict=True), strict=True):
            column = pa.array(cells, pa.string())
            columns[name] = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        lines = pa.array(np.array([line for line, *_ in rows], np.int64))
        return raw_batch(columns, self.layout, self.file, lines, optional=False)


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


class Lines:
    """The lines of a file, each with its newline: the next one, or all that are left of a block.

    blocks: of whole lines. number: of the next line. position: bytes before it.
    """

    def __init__(self, blocks: Iterable[bytes], number: int = 1) -> None:
        self.number, self.position = number, 0
        self._blocks = iter(blocks)
        self._block, self._at = b"", 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._at == len(self._block) and not self.rest():
            raise StopIteration
        line = self._block[self._at : self._block.index(b"\n", self._at) + 1]
        self._move(len(line), 1)
        return line

    def rest(self) -> bytes:
        """The lines that are left of the block, or of the next one; none at the end of the file."""
        if self._at == len(self._block):
            block = next(self._blocks, b"")
            self._block, self._at = block + b"\n" if block and not block.endswith(b"\n") else block, 0
        return self._block[self._at :]

    def skip(self, lines: bytes) -> None:
        """Go on after these lines, with which the rest begins."""
        self._move(len(lines), lines.count(b"\n"))

    def rewind(self, lines: Sequence[bytes]) -> None:
        """Go back to these lines, the last ones that were read."""
        size = sum(map(len, lines))
        if size > self._at:
            self._block, self._at = b"".join(lines) + self._block[self._at :], size
        self._move(-size, -len(lines))

    def _move(self, size: int, lines: int) -> None:
        self._at += size
        self.position += size
        self.number += lines


def whole_rows(content: bytes, first: int, delimiter: str) -> Block:
    """The whole rows at the start of `content`, up to the first quote or carriage return that only a parser can
    interpret; blank lines belong to the row that follows.

    first: the number of the first line. Before that quote, each quote opens a cell, closes it, or is doubled within it,
    so that a newline after an even number of quotes ends a row.
    """
    block = Block.of_lines(content, first)
    quotes = returns = np.empty(0, np.int64)
    signs = np.frombuffer(content, np.uint8)
    if b'"' in content:
        quotes = np.flatnonzero(signs == ord('"'))
    if content.count(b"\r") != content.count(b"\r\n"):
        returns = np.flatnonzero(signs[:-1] == RETURN)
        returns = returns[(signs[returns + 1] != NEWLINE) & (np.searchsorted(quotes, returns) % 2 == 0)]
    opens, closes = quotes[::2], quotes[1::2]
    before, after = signs[opens - 1], signs[closes + 1]
    at_start = (opens == 0) | (before == NEWLINE) | (before == ord(delimiter))
    at_start[1:] |= opens[1:] == closes[: len(opens) - 1] + 1
    at_end = (after == NEWLINE) | (after == ord(delimiter))
    at_end |= (after == RETURN) & (signs[np.minimum(closes + 2, len(signs) - 1)] == NEWLINE)
    at_end[: len(opens) - 1] |= closes[: len(opens) - 1] + 1 == opens[1:]
    odd = np.concatenate([opens[~at_start], closes[~at_end], returns])
    last = np.flatnonzero(np.searchsorted(quotes, block.ends) % 2 == 0)  # the last line of each row
    if len(odd):
        last = last[block.ends[last] <= odd.min()]
    lines = np.diff(last, prepend=-1)
    if len(long := np.flatnonzero(lines > _MOST_LINES_A_ROW)):
        last, lines = last[: long[0]], lines[: long[0]]
    ends = block.ends[last]
    starts = np.append(0, ends)[:-1]
    filled = ~np.isin(signs[starts], (NEWLINE, RETURN))
    size = int(ends[-1]) if len(ends) else 0
    return Block(content[:size], ends[filled], block.lines[last - lines + 1][filled])


def _rows_of(block: Block, delimiter: str) -> Iterator[_Row]:
    content = block.content.lstrip(b"\r\n")  # blank lines
    return rows_of_cells(Lines([content], int(block.lines[0])), delimiter)


def rows_of_cells(lines: Lines, delimiter: str) -> Iterator[_Row]:
    """Parse lines into rows with their bytes; blank lines are skipped."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    taken: list[bytes] = []
    size = 0
    undecodable = False

    def feed() -> Iterator[str]:
        nonlocal undecodable, size
        for line in lines:
            taken.append(line)
            size += len(line)
            if len(taken) > _MOST_LINES_A_ROW or (size > _MOST_BYTES_A_ROW and len(taken) > 1):
                raise _RunawayQuoteError
            undecodable |= not is_utf8(line)
            yield line.decode("utf-8", "surrogateescape")

    parser = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        malformed = False
        number = lines.number
        try:
            cells = next(parser)
        except StopIteration:
            return
        except (csv.Error, _RunawayQuoteError):
            lines.rewind(taken[1:])  # to be parsed on their own, since the row they were part of is malformed
            del taken[1:]
            cells, malformed, undecodable = [], True, not is_utf8(taken[0])
            parser = csv.reader(feed(), delimiter=delimiter, strict=True)
        raw = b"".join(taken)
        reason = "undecodable" if undecodable else "malformed_row" if malformed else None
        blank = len(cells) == 1 and not raw.strip()
        taken.clear()
        size = 0
        undecodable = False
        if (cells or reason) and not blank:
            yield number, raw, cells, reason
