"""Responses to score, of a file or of standard input: one row is one response."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import file_content, one_value
from ssrem.annotated_sets.base import more_references
from ssrem.annotated_sets.columns import ALIASES, ContextColumns
from ssrem.annotated_sets.tables import parquet_table
from ssrem.errors import AnnotationError, say
from ssrem.files import temporary_folder
from ssrem.readers.cells import Lines, names_delimiter, rows_of_cells
from ssrem.readers.fields import check_header, normalise, turn_text, unknown_columns
from ssrem.readers.files.encodings import declare_guess
from ssrem.readers.files.streams import is_utf8
from ssrem.readers.formats.delimited import CsvReader
from ssrem.readers.json.values import parse_json
from ssrem.samples import Sample

STDIN = "-"

FORMATS = {
    "json": "a JSON list of objects",
    "jsonl": "a JSON object a line",
    "csv": "cells between commas, semicolons or bars under a header",
    "tsv": "cells between tabs under a header",
    "text": "a context, a tab and a response a line",
    "parquet": "a Parquet table",
}

FIELDS = ("context", "response", "reference", "id", "separator")
"""Fields of `--map`: separator is no column, but the text between the turns of a context (default: a line break)."""

_NAMES = {
    **{field: ALIASES[field] for field in ("context", "response", "reference")},
    "id": ("id", "response_id", "example_id"),
}
_NEEDED = ("context", "response")
_TAB, _SEPARATOR = "\t", "separator"


class MalformedError(ValueError):
    """A row is no response: the message says why."""


@dataclass(frozen=True)
class Row:
    """A row of a file. where: its place, for messages. id: as the file has it, None without. sample: None for a row
    that cannot be read, of which `fault` says why."""

    where: str
    id: str | None = None
    sample: Sample | None = None
    fault: str = ""


@dataclass(frozen=True)
class Responses:
    """The rows of a file, in its order. guessed: the format that the content looked like, and what that is."""

    rows: tuple[Row, ...]
    guessed: str | None


def read_responses(
    source: str, format: str | None = None, mapping: Mapping[str, str] | None = None
) -> Responses:
    """Read a file, or standard input for "-", plain or compressed, in UTF-8 or UTF-16.

    format: a key of FORMATS; guessed from the content if None. mapping: field of FIELDS → column, for context A+B too,
    a turn each. A row that cannot be read is kept with its fault. AnnotationError, in one line, for a file that cannot
    be read at all, has no row, or of which no row can be read.
    """
    if source == STDIN:
        with temporary_folder() as folder:
            with (folder / "content").open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return _Source(folder / "content", "standard input", dict(mapping or {})).read(format)
    return _Source(Path(source), source, dict(mapping or {})).read(format)


@dataclass(frozen=True)
class _Source:
    """A file to read responses from. path: of the content. name: what messages call it."""

    path: Path
    name: str
    mapping: Mapping[str, str]

    def read(self, format: str | None) -> Responses:
        if why := declare_guess(self.path):
            say(f"{self.name}: {why}; save it as UTF-8 if that is wrong")
        content = self._content()
        chosen = format or self._guess(content)
        if chosen == "parquet":
            rows = tuple(self._of_table(self._parquet()))
        elif chosen in ("json", "jsonl"):
            rows = tuple(self._of_table(self._json(content) if chosen == "json" else self._lines(content)))
        elif chosen == "text":
            rows = tuple(self._text(content))
        else:
            rows = tuple(self._of_table(self._cells(content, chosen)))
        if not rows:
            raise AnnotationError(f"{self.name} holds no response; there is nothing to score")
        if all(row.sample is None for row in rows):
            raise AnnotationError(
                f"{self.name}: none of the {len(rows):,} rows can be read as {chosen} ({FORMATS[chosen]}); the first: "
                f"{rows[0].where}: {rows[0].fault}; --format names another format: {', '.join(FORMATS)}"
            )
        named = self.path.name.lower().rpartition(".")[2] == chosen  # a file `x.csv` says itself what it is
        return Responses(rows, None if format or named else f"{chosen}, {FORMATS[chosen]}")

    def _content(self) -> bytes:
        """The decompressed content."""
        content = file_content(self.path, self.name)
        if not content.strip():
            raise AnnotationError(f"{self.name} is empty; there is nothing to score")
        return content

    def _guess(self, content: bytes) -> str:
        start = content.lstrip()[:1]
        if content.startswith(b"PAR1"):
            return "parquet"
        if start in (b"[", b"{"):
            return "json" if start == b"[" else "jsonl"
        line = next(line for line in content.split(b"\n") if line.strip())
        first = line.decode("utf-8", "replace").strip("\r")
        if _TAB in first:
            names = set(first.split(_TAB))
            mapped = {
                part for name, text in self.mapping.items() if name != _SEPARATOR for part in text.split("+")
            }
            return "tsv" if names & mapped or set(map(normalise, names)) & set(_NAMES["response"]) else "text"
        if is_utf8(line) and len(next(csv.reader([first], delimiter=self._delimiter(first)), [])) > 1:
            return "csv"
        listed = "; ".join(f"{name}, {what}" for name, what in FORMATS.items())
        raise AnnotationError(f"{self.name} is of no format that is read ({listed}); --format names one")

    def _of_table(self, rows: Iterable[tuple[str, Mapping[str, Any] | str]]) -> Iterator[Row]:
        """Rows by their place and their values by column, or why they cannot be read."""
        listed = list(rows)
        header = list(dict.fromkeys(name for _, row in listed if isinstance(row, Mapping) for name in row))
        columns = self._columns(header) if header else None
        several = 0
        for where, row in listed:
            if isinstance(row, str) or columns is None:
                yield Row(where, fault=row if isinstance(row, str) else "no column")
                continue
            id = row.get(columns.id) if columns.id else None
            label = None if id is None else str(id)
            try:
                yield Row(where, label, columns.sample(row))
                references = row.get(columns.reference) if columns.reference else None
                several += more_references(references) > 0
            except MalformedError as error:
                yield Row(where, label, fault=str(error))
        if several:
            say(f"{self.name}: rows with several references: {several:,}; the first of them is read")

    def _columns(self, header: Sequence[str]) -> _Columns:
        fields = {name: tuple(text.split("+")) for name, text in self.mapping.items() if name != _SEPARATOR}
        check_header(Path(self.name), header, fields, AnnotationError)
        taken = {column for columns in fields.values() for column in columns}
        by_name = {normalise(column): column for column in reversed(header) if column not in taken}
        for name, aliases in _NAMES.items():
            column = next((by_name[alias] for alias in aliases if alias in by_name), None)
            if name not in fields and column is not None:
                fields[name] = (column,)
        if missing := [name for name in _NEEDED if name not in fields]:
            raise unknown_columns(Path(self.name), header, missing, AnnotationError)
        single = {name: columns[0] for name, columns in fields.items() if name != "context"}
        context = ContextColumns.of(fields["context"], self.mapping)
        return _Columns(context, single["response"], single.get("reference"), single.get("id"))

    def _json(self, content: bytes) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
        try:
            rows = json.loads(content)
        except UnicodeDecodeError:
            raise AnnotationError(f"{self.name} is not UTF-8 text; save it as UTF-8") from None
        except json.JSONDecodeError as error:
            raise AnnotationError(
                f"{self.name}, line {error.lineno}: not JSON ({error.msg}); the rest of a list cannot be read, one "
                "object a line can"
            ) from None
        except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
            raise AnnotationError(
                f"{self.name}: not JSON that can be read; expected a list of responses"
            ) from None
        if not isinstance(rows, list):
            raise AnnotationError(f"{self.name}: expected a JSON list of responses")
        for number, row in enumerate(rows, 1):
            yield f"row {number}", row if isinstance(row, dict) else "not an object"

    def _lines(self, content: bytes) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
        if rows_and_kind := one_value(content.decode("utf-8", "replace")):
            for number, row in enumerate(rows_and_kind[0], 1):
                yield f"row {number}", row if isinstance(row, dict) else "not an object"
            return
        for number, line in enumerate(content.split(b"\n"), 1):
            if line.strip():
                row = parse_json(line)
                fault = "not a JSON object" if is_utf8(line) else "not UTF-8"
                yield f"line {number}", row if isinstance(row, dict) else fault

    def _text(self, content: bytes) -> Iterator[Row]:
        columns = ContextColumns.of(("context",), self.mapping)
        for number, line in enumerate(content.split(b"\n"), 1):
            where, cells = f"line {number}", line.rstrip(b"\r").split(b"\t")
            if not line.strip(b" \r"):
                continue
            if len(cells) != 2 or not is_utf8(line):
                fault = f"{len(cells) - 1} tabs, expected one, between context and response"
                yield Row(where, fault=fault if is_utf8(line) else "not UTF-8")
                continue
            context, response = (cell.decode("utf-8") for cell in cells)
            try:
                turns = columns.turns({"context": context})
            except ValueError as error:
                yield Row(where, fault=str(error))
                continue
            yield Row(where, None, Sample(turns, response))

    def _cells(self, content: bytes, format: str) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
        first = next(line for line in content.split(b"\n") if line.strip()).decode("utf-8", "replace")
        rows = rows_of_cells(
            Lines(content.splitlines(keepends=True)), _TAB if format == "tsv" else self._delimiter(first)
        )
        _, _, header, fault = next(rows)
        if names_delimiter(header):
            _, _, header, fault = next(rows, (1, b"", [], "malformed_row"))
        if fault:
            raise AnnotationError(
                f"{self.name}: the header cannot be read; save the file as UTF-8 with one header line"
            )
        self._columns(header)
        for number, _, cells, fault in rows:
            if fault:
                yield (
                    f"line {number}",
                    "not UTF-8" if fault == "undecodable" else "a quote that is not closed",
                )
            elif len(cells) != len(header):
                yield f"line {number}", f"{len(cells)} cells, the header has {len(header)}"
            else:
                yield f"line {number}", dict(zip(header, cells, strict=True))

    @staticmethod
    def _delimiter(header: str) -> str:
        known = {alias for aliases in _NAMES.values() for alias in aliases}
        barred = {normalise(name) for name in header.split("|")} & known
        return "|" if barred and "|" in header else CsvReader.delimiter_of(header.encode())

    def _parquet(self) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
        rows = parquet_table(self.path, self.name)
        for number, row in enumerate(rows, 1):
            yield f"row {number}", row


@dataclass(frozen=True)
class _Columns:
    """Which columns of a row hold its context, response, reference and id."""

    context: ContextColumns
    response: str
    reference: str | None
    id: str | None

    def sample(self, row: Mapping[str, Any]) -> Sample:
        """The sample of a row; null is empty. MalformedError for what is neither text nor, for a context, turns."""
        try:
            turns = self.context.turns(row)
        except ValueError as error:
            raise MalformedError(str(error)) from None
        reference = row.get(self.reference) if self.reference else None
        if isinstance(reference, list | tuple):
            reference = reference[0] if reference else None
        return Sample(
            turns,
            _text("response", turn_text(row.get(self.response))) or "",
            _text("reference", reference) or None,
        )


def _text(field: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise MalformedError(f"{field} is not text")
