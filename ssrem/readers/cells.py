"""Rows of delimited cells, parsed by Python's module csv, each with its line number and bytes."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence

from ssrem.readers.files.streams import LONGEST_ROW, is_utf8

MOST_LINES_A_ROW = 1_000
"""A quoted cell with more lines is treated as a stray quote, which otherwise would swallow the rest of the file."""

OF_CHAT = re.compile(r"\W{0,3}\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s.{1,20}?(?:\]|\s-)\s")
"""The beginning of a line of a chat that was exported as text: date and time, and `]` or ` - ` before the name."""

OPEN, BACKSLASHES = "open", "backslashes"

Row = tuple[int, bytes, list[str], str | None]
"""(number of its first line, its bytes, its cells, fault). fault: None for a row that was read, else its reason code;
OPEN if lines not seen yet may close its quote; BACKSLASHES if the quotes in its cells may be written as \\"."""


def names_delimiter(cells: Sequence[str]) -> bool:
    """Whether the cells are the line `sep=;` that spreadsheets read and write before the header."""
    return [cell.lower() for cell in cells] == ["sep=", ""]


def first_line(content: bytes) -> bytes:
    """The first line that is not blank; empty if all are."""
    begin = len(content) - len(content.lstrip())
    end = content.find(b"\n", begin)
    return content[content.rfind(b"\n", 0, begin) + 1 : end if end >= 0 else len(content)]


def delimiter_of(header: bytes) -> str:
    """The most frequent of `,`, `;` and `|` in a header, or in the line `sep=;` before it."""
    return max(",;|", key=lambda sign: header.count(sign.encode()))


def cells_of(line: bytes, delimiter: str) -> list[str]:
    """The cells of one line; none if it cannot be parsed."""
    try:
        return next(csv.reader([line.decode("utf-8")], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error):
        return []


def rows_of_cells(content: bytes, delimiter: str, number: int = 1, *, whole: bool = True) -> Iterator[Row]:
    """The rows of these lines; blank lines are skipped.

    Of a row that cannot be parsed only the first line is yielded, and the next row begins with its second line. The
    same applies if a stray quote has joined several tab-separated rows into one (`_swallowed`). number: of the first
    line. whole: whether no lines follow `content`; if some do, the last row is OPEN if they may close its quote.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    lines, at = io.BytesIO(content), 0

    def row_lines() -> Iterator[str]:
        for line in lines:
            if parser.line_num - begun >= MOST_LINES_A_ROW:
                raise csv.Error
            yield line.decode("utf-8", "surrogateescape")

    parser = csv.reader(row_lines(), delimiter=delimiter, strict=True)
    while at < len(content):
        reason, begun = None, parser.line_num
        try:
            cells = next(parser)
            if _swallowed(content[at : lines.tell()], len(cells), delimiter):
                raise csv.Error
        except csv.Error:
            cells, reason = [], BACKSLASHES if b'\\"' in content[at : lines.tell()] else "malformed_row"
            if not whole and lines.tell() == len(content) and len(content) - at <= LONGEST_ROW:
                reason = OPEN
            else:
                lines.seek(content.find(b"\n", at) + 1 or len(content))
            parser = csv.reader(row_lines(), delimiter=delimiter, strict=True)
        raw = content[at : lines.tell()]
        if reason != OPEN and not is_utf8(raw):
            reason = "undecodable"
        if len(cells) > 1 or raw.strip():
            yield number, raw, cells, reason
        number += raw.count(b"\n")
        at = lines.tell()


def _swallowed(raw: bytes, cells: int, delimiter: str) -> bool:
    """Whether a stray quote has joined several rows into one: it has two lines or more, all of which have as many cells
    as the row. Only tab-separated rows are judged, since few texts contain tabs."""
    lines = raw.removesuffix(b"\n").split(b"\n") if delimiter == "\t" else []
    return len(lines) > 1 < cells and all(line.count(b"\t") == cells - 1 for line in lines)
