"""Rows of cells in lines of text: where rows end, and what their cells are, by Python's parser of CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ssrem.readers.blocks import NEWLINE, RETURN, Block
from ssrem.readers.files.streams import LONGEST_ROW, is_utf8

_MOST_LINES_A_ROW = 1_000
"""A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file."""

_MOST_BYTES_A_ROW = LONGEST_ROW
"""Most bytes that the lines of such a row may have together."""

Row = tuple[int, bytes, list[str], str | None]
"""(number of its first line, its bytes, cells, reason code of a row that cannot be read)"""


def names_delimiter(cells: Sequence[str]) -> bool:
    """Whether the cells are the line `sep=;` that spreadsheets read and write before the header."""
    return [cell.lower() for cell in cells] == ["sep=", ""]


class _RunawayQuoteError(Exception):
    """A quoted cell goes on for longer than a row may."""


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


def rows_of_block(block: Block, delimiter: str) -> Iterator[Row]:
    """The rows of a block, parsed one by one."""
    content = block.content.lstrip(b"\r\n")  # blank lines
    return rows_of_cells(Lines([content], int(block.lines[0])), delimiter)


def rows_of_cells(lines: Lines, delimiter: str) -> Iterator[Row]:
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
