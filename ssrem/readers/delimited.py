"""CSV and TSV with a header, in UTF-8."""

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
from ssrem.readers.base import BATCH_BYTES, Reader, RowBuilder
from ssrem.readers.layout import Layout, Plan, check_columns
from ssrem.readers.rows import raw_batch, row_values
from ssrem.readers.streams import LONGEST_ROW, blocks, head, head_lines, text_name
from ssrem.readers.times import NotVectorisableError

#: A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file.
_MOST_LINES_A_ROW = 1_000
_BLOCK = 4 << 20

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
    delimiter: ClassVar[str]

    @classmethod
    def sniff(cls, path: Path) -> bool:
        if path.is_dir() or head(path, 4) == b"PAR1":
            return False
        lines = head_lines(path)
        if not lines or lines[0].lstrip()[:1] in (b"{", b"[", b"<"):
            return False
        try:
            header = next(csv.reader([lines[0].decode("utf-8")], delimiter=cls.delimiter))
        except (UnicodeDecodeError, csv.Error, StopIteration):
            return False
        return len(header) > 1 and len(set(header)) == len(header)

    def check(self) -> None:
        self._header(_rows(self._physical_lines(), self.delimiter))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        source = _rows(self._physical_lines(), self.delimiter)
        header = self._header(source)
        layout = Layout(self.mapping)
        plan = layout.plan(tuple(header))
        rows: list[_Row] = []
        held = 0
        empty = True
        for row in source:
            rows.append(row)
            held += len(row[1])
            if len(rows) == self.batch_rows or held >= BATCH_BYTES:
                empty = False
                yield from self._batches(rows, header, plan, layout)
                rows, held = [], 0
        if not rows and empty:
            raise DumpError(
                f"{self.path}: there is a header but no row; give a file with conversations in it"
            )
        yield from self._batches(rows, header, plan, layout)

    def _header(self, source: Iterator[_Row]) -> list[str]:
        first = next(source, None)
        if first is None or first[3] is not None:
            reason = "is not UTF-8" if first and first[3] == "undecodable" else "cannot be read"
            raise DumpError(
                f"{self.path}: line 1, the header, {reason}; save the file as UTF-8 with one header line"
            )
        header = first[2]
        check_columns(self.path, header, self.mapping)
        return header

    def _physical_lines(self) -> Iterator[bytes]:
        for block in blocks(self.path, _BLOCK, self._advance):
            lines = block.split(b"\n")
            last = lines.pop()
            for line in lines:
                yield line + b"\n"
            if last:
                yield last

    def _batches(
        self, rows: list[_Row], header: list[str], plan: Plan, layout: Layout
    ) -> Iterator[pa.RecordBatch]:
        width, file = len(header), text_name(self.path)
        if all(row[3] is None and len(row[2]) == width for row in rows) and rows:
            try:
                yield _vectorised(rows, header, plan, layout, file)
                return
            except NotVectorisableError:
                pass
        builder = RowBuilder(self.batch_rows)
        for line, raw, cells, reason in rows:
            problem = reason or (None if len(cells) == width else "malformed_row")
            if problem is not None:
                builder.add_problem(problem, file, line, raw.removesuffix(b"\n"))
                continue
            row = {name: cell or None for name, cell in zip(header, cells, strict=True)}
            builder.add("message", file, line, row_values(row, plan, layout))
        yield from builder.batches()


class CsvReader(DelimitedReader):
    format: ClassVar[str] = "csv"
    describes: ClassVar[str] = "comma-separated values with a header"
    delimiter: ClassVar[str] = ","


class TsvReader(DelimitedReader):
    format: ClassVar[str] = "tsv"
    describes: ClassVar[str] = "tab-separated values with a header"
    delimiter: ClassVar[str] = "\t"


def _vectorised(rows: list[_Row], header: list[str], plan: Plan, layout: Layout, file: str) -> pa.RecordBatch:
    columns = {}
    for name, cells in zip(header, zip(*(row[2] for row in rows), strict=True), strict=True):
        column = pa.array(cells, pa.string())
        columns[name] = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    lines = pa.array(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
    return raw_batch(columns, plan, layout, file, lines)


def _rows(lines: Iterator[bytes], delimiter: str) -> Iterator[_Row]:
    """Parse lines into rows with their bytes; blank lines are skipped."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    again: deque[bytes] = deque()  # lines to parse again, after the row they were part of proved malformed
    taken: list[bytes] = []
    size = 0
    undecodable = False

    def feed() -> Iterator[str]:
        nonlocal undecodable, size
        while True:
            line = again.popleft() if again else next(lines, None)
            if line is None:
                return
            taken.append(line)
            size += len(line)
            if len(taken) > _MOST_LINES_A_ROW or (size > _MOST_BYTES_A_ROW and len(taken) > 1):
                raise _RunawayQuoteError
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                undecodable = True
                yield line.decode("utf-8", "surrogateescape")

    number = 1
    parser = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(parser)
        except StopIteration:
            return
        except (csv.Error, _RunawayQuoteError):
            again.extendleft(reversed(taken[1:]))
            del taken[1:]
            cells = []
            problem: str | None = "undecodable" if _is_undecodable(taken[0]) else "malformed_row"
            parser = csv.reader(feed(), delimiter=delimiter, strict=True)
        else:
            problem = "undecodable" if undecodable else None
        raw = taken[0] if len(taken) == 1 else b"".join(taken)
        if cells or problem:
            blank = len(cells) == 1 and not raw.strip()
            if not blank:
                yield number, raw, cells, problem
        number += len(taken)
        taken.clear()
        size = 0
        undecodable = False


def _is_undecodable(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
