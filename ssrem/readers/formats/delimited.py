"""CSV and TSV with a header.

Arrow reads blocks of rows as whole columns. Rows with anything unusual are read by Python's parser, which gives the
same rows, and the exact bytes of those that cannot be read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv

from ssrem.errors import DumpError
from ssrem.readers.base import SAMPLE_ROWS, Reader, Record, problem
from ssrem.readers.cells import FEW_ROWS, Block, Lines, Row, names_delimiter, rows_of_cells, whole_rows
from ssrem.readers.fields import ALIASES, check_header, normalise, unknown_columns
from ssrem.readers.files.streams import UTF8_BOM, excerpt, head, is_utf8
from ssrem.readers.paths import Paths
from ssrem.readers.rows import raw_batch
from ssrem.readers.times import NotVectorisableError, Times

_LONGEST_NAME = 30
"""Most bytes of the name of a column; what is longer is text."""

_FEW_BYTES = 1 << 16
"""Bytes that are read row by row where a quote is out of place; then twice as many, until a block has no such quote."""


class DelimitedReader(Reader):
    """Rows of cells. An empty cell is null; columns that no field uses go to the metadata.

    A row with too few or too many cells, or with an unclosed quote, is 'malformed_row': its first line is reported, and
    reading continues with its second. Bytes that are not UTF-8 make the row 'undecodable'.
    """

    takes_mapping: ClassVar[bool] = True
    delimiter: ClassVar[str]
    _paths: Paths | None = None

    @classmethod
    def delimiter_of(cls, header: bytes) -> str:
        """The delimiter of a file whose first line is `header`."""
        return cls.delimiter

    @classmethod
    def sniff(cls, path: Path) -> bool:
        start = _head(path)
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
        start = _head(path)
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
        self._begun()
        self.bytes_read = 0

    def _begun(self) -> tuple[Lines, str, list[str]]:
        """The lines after the header, the delimiter and the header."""
        first = next((line for line in _head(self.path).split(b"\n") if line.strip()), b"")
        lines, delimiter = Lines(self.blocks(self.path)), self.delimiter_of(first)
        return lines, delimiter, self._header(rows_of_cells(lines, delimiter))

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        lines, delimiter, header = self._begun()
        for _, _, cells, reason in islice(rows_of_cells(lines, delimiter), SAMPLE_ROWS):
            if reason is None and len(cells) == len(header):
                yield from ((None, message) for message in self._messages(cells, header))

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        lines, delimiter, header = self._begun()
        empty, few = True, _FEW_BYTES
        while rest := lines.rest():
            block = whole_rows(rest, lines.number, delimiter)
            if len(block) > FEW_ROWS or len(block.content) == len(rest):
                lines.skip(block)
                few = _FEW_BYTES
                records = block.records(
                    lambda part: self._columns(part, header, delimiter),
                    lambda part: self._records(
                        rows_of_cells(Lines([part.content.lstrip(b"\r\n")], int(part.lines[0])), delimiter),
                        header,
                    ),
                )
            else:  # a quote follows soon that does not belong to these rows
                end = lines.position + min(few, len(rest))
                records = self._records(_up_to(end, lines, rows_of_cells(lines, delimiter)), header)
                few *= 2
            for record in records:
                empty = False
                yield record
        if empty:
            raise DumpError(
                f"{self.path}: there is a header but no row; give a file with conversations in it"
            )

    def blocks(self, path: Path) -> Iterator[bytes]:
        bare = _has_bare_returns(head(path))
        return (block.replace(b"\r", b"\n") if bare else block for block in super().blocks(path))

    def _header(self, source: Iterator[Row]) -> list[str]:
        absent: Row = (1, b"", [], "malformed_row")
        _, raw, header, reason = next(source, absent)
        if names_delimiter(header):
            _, raw, header, reason = next(source, absent)
        if reason is not None:
            fault = "is not UTF-8" if reason == "undecodable" else "cannot be read"
            raise DumpError(
                f"{self.path}: line 1, the header, {fault}; give its encoding with --encoding, such as cp1251, or save "
                "the file as UTF-8 with one header line"
            )
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
            names = self.delimiter_of(raw).join(("time", "speaker", "addressee", "text"))
            raise DumpError(
                f"{self.path}: line 1 is a row, not a header: {excerpt(raw)}; add a line before it that names the "
                f"columns, such as {names!r}"
            )
        if missing := [field for field in self.layout.needed if field not in fields]:
            raise unknown_columns(self.path, header, missing, DumpError)
        return header

    def _columns(self, block: Block, header: list[str], delimiter: str) -> pa.RecordBatch | None:
        """The block read as whole columns, or None if that might differ from reading it row by row."""
        content = block.content
        if self._paths or len(header) < 2 or content.startswith(UTF8_BOM) or b"\0" in content:
            return None
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(content),
                pyarrow.csv.ReadOptions(column_names=header),
                pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(header, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            return raw_batch(table, block.lines, self.layout, self.file, optional=False)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _records(self, rows: Iterable[Row], header: list[str]) -> Iterator[Record]:
        for line, raw, cells, reason in rows:
            if reason or len(cells) != len(header):
                yield problem(reason or "malformed_row", self.file, line, raw.removesuffix(b"\n"))
            else:
                for message in self._messages(cells, header):
                    yield self.message(self.file, line, message)

    def _messages(self, cells: list[str], header: list[str]) -> list[Any]:
        row = {name: cell or None for name, cell in zip(header, cells, strict=True)}
        return [row] if self._paths is None else self._paths.messages(row)[1] or []


def _up_to(end: int, lines: Lines, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows until so many bytes of the lines have been read."""
    for row in rows:
        yield row
        if lines.position >= end:
            return


def _has_bare_returns(start: bytes) -> bool:
    """Whether a carriage return alone ends the lines, as old programs of the Mac write them; start: the file's head."""
    return b"\r" in start and b"\n" not in start


def _head(path: Path) -> bytes:
    """The head of the file, with newlines at the ends of lines."""
    start = head(path)
    return start.replace(b"\r", b"\n") if _has_bare_returns(start) else start


class CsvReader(DelimitedReader):
    """Cells between commas, semicolons or |."""

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
    """Cells between tabs."""

    format: ClassVar[str] = "tsv"
    describes: ClassVar[str] = "tab-separated values with a header"
    delimiter: ClassVar[str] = "\t"
