"""Blocks of a file's rows, read as whole columns; a block with anything unusual is halved until that is in few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]
Records = TypeVar("Records")

FEW_ROWS = 512
"""A block of at most this many rows is not halved."""
NEWLINE, RETURN = ord("\n"), ord("\r")


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

    def part(self, start: int, stop: int) -> Block:
        """The rows from `start` up to `stop`."""
        begin = int(self.ends[start - 1]) if start else 0
        content = self.content[begin : int(self.ends[stop - 1])]
        return Block(content, self.ends[start:stop] - begin, self.lines[start:stop])


class BlockReader(Generic[Records]):
    """Reads blocks by `columns`, or by `rows` where `columns` gives None because the results might differ.

    If no part of a block could be read as columns, the next blocks are not halved until one can be read whole.
    """

    def __init__(
        self, columns: Callable[[Block], Records | None], rows: Callable[[Block], Iterator[Records]]
    ) -> None:
        self._columns, self._rows = columns, rows
        self._halves = True

    def records(self, block: Block) -> Iterator[Records]:
        """The records of the block, in order."""
        if not len(block):
            return
        batch = self._columns(block)
        if batch is not None:
            self._halves = True
            yield batch
        elif not self._halves or len(block) <= FEW_ROWS:
            yield from self._rows(block)
        else:
            self._halves = False
            yield from self._halved(block)

    def _halved(self, block: Block) -> Iterator[Records]:
        middle = len(block) // 2
        for part in (block.part(0, middle), block.part(middle, len(block))):
            batch = self._columns(part)
            if batch is not None:
                self._halves = True
                yield batch
            elif len(part) <= FEW_ROWS:
                yield from self._rows(part)
            else:
                yield from self._halved(part)
