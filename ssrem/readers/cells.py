"""Rows in blocks of lines, read as whole columns where they are plain; and rows of cells, by Python's parser of CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ssrem.readers.files.streams import LONGEST_ROW, is_utf8

Integers = np.ndarray[Any, np.dtype[np.int64]]
Records = TypeVar("Records")

FEW_ROWS = 512
"""Rows of a part of a block that could not be read as columns."""
NEWLINE, RETURN = ord("\n"), ord("\r")
_MOST_LINES_A_ROW = 1_000
"""A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file."""
_MOST_BYTES_A_ROW = LONGEST_ROW
"""Most bytes that the lines of such a row may have together."""

Row = tuple[int, bytes, list[str], str | None]
"""(number of its first line, its bytes, cells, reason code of a row that cannot be read)"""


@dataclass(frozen=True)
class Block:
    """Whole rows of a file, each with its newline.

    content: their bytes, perhaps with blank lines before and after rows. ends: shape (rows,), the offset at which each
    row ends, after its newline. lines: shape (rows,), the number of the first line of each, from 1.
    """

    content: bytes
    ends: Integers
    lines: Integers

    @classmethod
    def of_lines(cls, content: bytes, first: int) -> Block:
        """A block of lines that are one row each. first: number of the first line. Only the last may lack its
        newline."""
        content = content if content.endswith(b"\n") else content + b"\n"
        ends = np.flatnonzero(np.frombuffer(content, np.uint8) == NEWLINE) + 1
        return cls(content, ends, np.arange(first, first + len(ends)))

    def __len__(self) -> int:
        return len(self.ends)

    def records(
        self, columns: Callable[[Block], Records | None], rows: Callable[[Block], Iterator[Records]]
    ) -> Iterator[Records]:
        """The records of the block, read by `columns`; where that gives None, because the results might differ, in
        parts, and those that need it by `rows`."""
        batch = columns(self) if len(self) else None
        if batch is not None:
            yield batch
            return
        for at in range(0, len(self), FEW_ROWS):
            ends = self.ends[at : at + FEW_ROWS]
            begin = int(self.ends[at - 1]) if at else 0
            lines = self.lines[at : at + FEW_ROWS]
            part = Block(self.content[begin : int(ends[-1])], ends - begin, lines)
            batch = columns(part) if len(part) < len(self) else None
            if batch is None:
                yield from rows(part)
            else:
                yield batch


def names_delimiter(cells: Sequence[str]) -> bool:
    """Whether the cells are the line `sep=;` that spreadsheets read and write before the header."""
    return [cell.lower() for cell in cells] == ["sep=", ""]


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

    def skip(self, block: Block) -> None:
        """Go on after this block, with which the rest begins."""
        self._move(len(block.content), block.content.count(b"\n"))

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
    signs = np.frombuffer(content, np.uint8)
    none = np.empty(0, np.int64)
    quotes = np.flatnonzero(signs == ord('"')) if b'"' in content else none
    returns = np.flatnonzero(signs[:-1] == RETURN) if b"\r" in content else none
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
    filled = ~np.isin(signs[np.append(0, ends)[:-1]], (NEWLINE, RETURN))
    size = int(ends[-1]) if len(ends) else 0
    return Block(content[:size], ends[filled], block.lines[last - lines + 1][filled])


class _RunawayQuoteError(Exception):
    """A quoted cell goes on for longer than a row may."""


def rows_of_cells(lines: Lines, delimiter: str) -> Iterator[Row]:
    """Parse lines into rows with their bytes; blank lines are skipped."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    taken: list[bytes] = []

    def feed() -> Iterator[str]:
        size = 0
        for line in lines:
            size = size + len(line) if taken else len(line)
            taken.append(line)
            if len(taken) > _MOST_LINES_A_ROW or (size > _MOST_BYTES_A_ROW and len(taken) > 1):
                raise _RunawayQuoteError
            yield line.decode("utf-8", "surrogateescape")

    parser = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        number, malformed = lines.number, False
        try:
            cells = next(parser)
        except StopIteration:
            return
        except (csv.Error, _RunawayQuoteError):
            lines.rewind(taken[1:])  # to be parsed on their own, since the row they were part of is malformed
            del taken[1:]
            cells, malformed = [], True
            parser = csv.reader(feed(), delimiter=delimiter, strict=True)
        raw = b"".join(taken)
        taken.clear()
        reason = "malformed_row" if malformed else None
        if not is_utf8(raw):
            reason = "undecodable"
        is_blank = len(cells) == 1 and not raw.strip()
        if (cells or reason) and not is_blank:
            yield number, raw, cells, reason
