"""Rows of a file of rated responses, or of responses to score, each with its place: tables, JSON or Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ssrem.errors import AnnotationError, DumpError, one_line
from ssrem.files import LARGEST_TEXT, check_regular
from ssrem.readers.cells import (
    BACKSLASHES,
    cells_of,
    delimiter_of,
    first_line,
    names_delimiter,
    rows_of_cells,
)
from ssrem.readers.fields import ALIASES, normalise
from ssrem.readers.files.streams import DumpFile, is_utf8
from ssrem.readers.json_values import DEEPEST, frame_rows, parse_json

FORMATS = {
    "json": "a JSON list of objects",
    "jsonl": "a JSON object a line",
    "csv": "cells between commas, semicolons or bars under a header",
    "tsv": "cells between tabs under a header",
    "parquet": "a Parquet table",
    "text": "a context, a tab and a response a line",
}
"""Format → what it is. `text` is never guessed here, since it looks like `tsv`."""

NOT_UTF8 = "not UTF-8; save the file as UTF-8"
_OF_CELLS = {
    "undecodable": NOT_UTF8,
    "malformed_row": "a quote that is not closed, or out of place",
    BACKSLASHES: 'a quote out of place; write quotes within texts doubled, not as \\"',
    None: "",
}
_INDEX = "__index_level_"
"""Prefix of the names under which pandas writes row indexes without a name to Parquet."""


@dataclass(frozen=True)
class TableRow:
    """A row. where: its place in the file, such as `line 3`. values: column → value, without columns that have no name.
    fault: why the row cannot be read, so that it has no values; "" for a row that was read."""

    where: str
    values: Mapping[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class TableRows:
    """All rows of a file. header: the names of its columns, "" for one without a name."""

    header: Sequence[str]
    rows: Sequence[TableRow]


class TableFile:
    """A file of rows, plain or compressed, in UTF-8, or in UTF-16 with a byte order mark.

    name: of the file, for error messages. content: decompressed, in UTF-8, without a byte order mark. AnnotationError
    if it is not a file, is an archive or empty, cannot be read, or is larger than LARGEST_TEXT.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path, self.name = path, name or str(path)
        try:
            check_regular(path)
            self.content = DumpFile(path).content(LARGEST_TEXT)
        except FileNotFoundError:
            raise AnnotationError(
                f"{self.name} does not exist; give the path of a file of responses"
            ) from None
        except OSError as error:
            raise AnnotationError(
                f"{self.name} cannot be read ({error.strerror or one_line(error)})"
            ) from None
        except DumpError as error:
            raise AnnotationError(str(error)) from None
        if self.content.startswith(b"PK\x03\x04"):
            raise AnnotationError(f"{self.name} is an office document or an archive; save its table as CSV")
        if not self.content.strip():
            raise AnnotationError(f"{self.name} is empty; give a file of responses")
        # By format. They are kept, since one caller looks at the first row before another reads all.
        self._tables: dict[str, TableRows] = {}

    @cached_property
    def _lines(self) -> bytes:
        return self.content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    @property
    def text(self) -> str:
        """The content with all line breaks as newlines; AnnotationError if it is not UTF-8."""
        try:
            return self._lines.decode("utf-8")
        except UnicodeError as error:
            raise AnnotationError(
                f"{self.name} cannot be read as UTF-8 text ({error}); save it as UTF-8"
            ) from None

    @cached_property
    def format(self) -> str | None:
        """The key of FORMATS that the content looks like; None if it is not a table."""
        start = self.content.lstrip()[:1]
        if self.content.startswith(b"PAR1"):
            return "parquet"
        if start in (b"[", b"{"):
            return "jsonl" if start == b"{" and self._value is None else "json"
        if b"\0" in self._first_line or start == b"<" or len(self.names) < 2:
            return None
        return "tsv" if self._delimiter == "\t" else "csv"

    @cached_property
    def names(self) -> list[str]:
        """The cells of the first line, which is the header of a table, in the form of `normalise`."""
        return list(map(normalise, cells_of(self._first_line, self._delimiter)))

    @cached_property
    def _first_line(self) -> bytes:
        return first_line(self._lines)

    @cached_property
    def _delimiter(self) -> str:
        """The tab if the header has one; else the most frequent of `,`, `;` and `|` in it, unless only another of these
        divides the header and the next row into equally many cells."""
        if b"\t" in self._first_line:
            return "\t"
        usual = delimiter_of(self._first_line)
        for sign in (usual, ",", ";", "|"):
            rows = [cells for _, _, cells, _ in islice(rows_of_cells(self._lines, sign), 2)]
            if len(rows) == 2 and len(rows[0]) == len(rows[1]) > 1:
                return sign
        return usual

    @cached_property
    def _value(self) -> list[Any] | None:
        """The rows of content that is one JSON value; None for JSON lines and for broken JSON.

        They are the members of a list, of the only list of objects in an object, such as `{"data": [{…}, …]}`, or of
        several lists whose objects have the same keys; the rows of a data frame; or the members of an object of
        responses by id. Any other object is one row."""
        first, _, others = self._lines.strip().partition(b"\n")
        if first.startswith(b"{") and others and parse_json(first) is not None:
            return None  # an object a line
        value = parse_json(self.content)
        if not isinstance(value, dict):
            return value if isinstance(value, list) else None
        if frame := frame_rows(value):
            return list(frame)
        inside = list(value.values())
        lists = [of for of in inside if isinstance(of, list) and of and isinstance(of[0], dict)]
        alike = len(lists) == 1 or (len(lists) == len(inside) and len({tuple(of[0]) for of in lists}) == 1)
        messages = any({"role", "from"} & of[0].keys() for of in lists)  # of one row
        if {"context", "response"} & value.keys() or (lists and not alike) or messages:
            return [value]
        responses = {*ALIASES["response"]}
        by_id = inside and all(isinstance(one, dict) and responses & {*map(normalise, one)} for one in inside)
        return [row for of in lists for row in of] or (inside if by_id else [value])

    def table(self, format: str | None = None) -> TableRows:
        """All rows, by default in the format that the content looks like. AnnotationError if none of the content can be
        read in that format."""
        chosen = format or self.format or "csv"
        if chosen not in self._tables:
            self._tables[chosen] = self._table(chosen)
        return self._tables[chosen]

    def _table(self, chosen: str) -> TableRows:
        if chosen in ("csv", "tsv"):
            return self._cells("\t" if chosen == "tsv" else self._delimiter)
        lines = [(at, line) for at, line in enumerate(self._lines.split(b"\n"), 1) if line.strip()]
        if chosen == "parquet":
            rows = _numbered(self._parquet())
        elif chosen == "text":
            rows = [_of_text(f"line {number}", line) for number, line in lines]
        elif self._value is not None:
            rows = _numbered(self._value)
        elif chosen == "json":
            fault = _json_fault(self._lines, whole=True)
            way_out = "; the rest of a list cannot be read, one object a line can" if fault else ""
            raise AnnotationError(f"{self.name}: {fault or 'expected a JSON list of responses'}{way_out}")
        else:
            rows = [_row(f"line {number}", parse_json(line), line) for number, line in lines]
        return TableRows(list(dict.fromkeys(name for row in rows for name in row.values)), rows)

    def _parquet(self) -> list[Any]:
        import pyarrow as pa
        import pyarrow.parquet

        try:
            return list(pyarrow.parquet.read_table(pa.BufferReader(self.content)).to_pylist())
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            fault = f"not a Parquet file that can be read ({one_line(error)})"
            raise AnnotationError(f"{self.name}: {fault}") from None

    def _cells(self, delimiter: str) -> TableRows:
        """The table of delimited cells; a row with more or fewer cells than the header has a fault.

        If most rows have one more, the header gets a cell without a name: first, since R writes row names without a
        header, or last, if the last cell of every row is empty, since some programs end rows with a delimiter."""
        rows = list(rows_of_cells(self._lines, delimiter))
        if rows and names_delimiter(rows[0][2]):
            del rows[0]
        if not rows or rows[0][3]:
            fault = "the header cannot be read; save the file as UTF-8 with one header line"
            raise AnnotationError(f"{self.name}: {fault}")
        header = rows.pop(0)[2]
        whole = [cells for _, _, cells, fault in rows if not fault]
        if whole and Counter(map(len, whole)).most_common(1)[0][0] == len(header) + 1:
            header = ["", *header] if any(cells[-1] for cells in whole) else [*header, ""]
        read = []
        for number, _, cells, code in rows:
            short = f"{len(cells)} cells, the header has {len(header)}" if len(cells) != len(header) else ""
            fault = _OF_CELLS[code] or short
            values = {} if fault else {name: cell for name, cell in zip(header, cells, strict=True) if name}
            read.append(TableRow(f"line {number}", values, fault))
        return TableRows(header, read)


def _numbered(rows: Iterable[Any]) -> list[TableRow]:
    return [_row(f"row {number}", row) for number, row in enumerate(rows, 1)]


def _row(where: str, row: Any, line: bytes = b"{}") -> TableRow:
    """A row of JSON or Parquet. line: its bytes, if it is a line."""
    if not isinstance(row, dict):
        return TableRow(where, {}, _json_fault(line) or "not a JSON object")
    return TableRow(where, {name: row[name] for name in row if name and not name.startswith(_INDEX)})


def _of_text(where: str, line: bytes) -> TableRow:
    cells = line.decode("utf-8", "replace").split("\t")
    fault = "" if len(cells) == 2 else f"{len(cells) - 1} tabs, expected one, between context and response"
    fault = fault if is_utf8(line) else NOT_UTF8
    return TableRow(where, {} if fault else dict(zip(("context", "response"), cells, strict=True)), fault)


def _json_fault(content: bytes, *, whole: bool = False) -> str:
    """What is wrong with bytes that `parse_json` refuses; "" for JSON. whole: whether they are the whole file."""
    try:
        if json.loads(content.decode("utf-8")) is None or parse_json(content) is not None:
            return ""
    except UnicodeDecodeError:
        return NOT_UTF8
    except json.JSONDecodeError as error:
        return f"{f'line {error.lineno}: ' * whole}not JSON ({error.msg})"
    except (RecursionError, ValueError):
        pass
    return f"JSON that nests more than {DEEPEST} levels, or with a number of too many digits"
