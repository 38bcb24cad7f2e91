"""Responses to score, of a file or of standard input: one row is one response."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.annotated_sets.base import more_references
from ssrem.annotated_sets.columns import ContextColumns, checked
from ssrem.annotated_sets.evidence import known_columns
from ssrem.errors import AnnotationError, say
from ssrem.files import temporary_folder
from ssrem.readers.fields import ALIASES, SIGNS, check_header, normalise, turn_text, unknown_columns
from ssrem.readers.files.streams import is_utf8
from ssrem.readers.table_rows import FORMATS as TABLES
from ssrem.readers.table_rows import TableFile
from ssrem.samples import Sample

STDIN = "-"

FORMATS = {**TABLES, "text": "a context, a tab and a response a line"}

FIELDS = ("context", "response", "reference", "id", "separator")
"""Fields of `--map`: separator is no column, but the text between the turns of a context (default: a line break)."""

_NAMES = {
    **{field: ALIASES[field] for field in ("context", "response", "reference")},
    "id": ALIASES["response_id"],
}
_NEEDED = ("context", "response")
_SEPARATOR = "separator"


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
            return _read(TableFile(folder / "content", "standard input"), format, dict(mapping or {}))
    return _read(TableFile(Path(source)), format, dict(mapping or {}))


def read_samples(path: Path) -> list[Sample]:
    """The samples of a file of which every row can be read; AnnotationError names the first that cannot."""
    rows = read_responses(str(path)).rows
    for row in rows:
        if row.sample is None:
            raise AnnotationError(f"{path}, {row.where}: {row.fault}")
    return [row.sample for row in rows if row.sample is not None]


def _read(file: TableFile, format: str | None, mapping: Mapping[str, str]) -> Responses:
    if file.encoding:
        say(f"{file.name}: {file.encoding}; save it as UTF-8 if that is wrong")
    chosen = format or _format_of(file, mapping)
    rows = tuple(_of_lines(file, mapping) if chosen == "text" else _of_table(file, chosen, mapping))
    if not rows:
        raise AnnotationError(f"{file.name} holds no response; there is nothing to score")
    if all(row.sample is None for row in rows):
        raise AnnotationError(
            f"{file.name}: none of the {len(rows):,} rows can be read as {chosen} ({FORMATS[chosen]}); the first: "
            f"{rows[0].where}: {rows[0].fault}; --format names another format: {', '.join(FORMATS)}"
        )
    named = file.path.name.lower().rpartition(".")[2] == chosen  # a file `x.csv` says itself what it is
    return Responses(rows, None if format or named else f"{chosen}, {FORMATS[chosen]}")


def _format_of(file: TableFile, mapping: Mapping[str, str]) -> str:
    """A key of FORMATS. Lines with tabs are a table if their first names the response."""
    if file.format == "tsv" and not file.names & {*map(normalise, _columns_of(mapping)), *_NAMES["response"]}:
        return "text"
    if file.format is None:
        listed = "; ".join(f"{name}, {what}" for name, what in FORMATS.items())
        raise AnnotationError(f"{file.name} is of no format that is read ({listed}); --format names one")
    return file.format


def _columns_of(mapping: Mapping[str, str]) -> list[str]:
    """The columns that the mapping names."""
    return [part for name, text in mapping.items() if name != _SEPARATOR for part in text.split("+")]


def _of_table(file: TableFile, format: str, mapping: Mapping[str, str]) -> Iterator[Row]:
    table = file.table(format)
    header = [name for name in table.header if name]
    columns = _columns(file, header, [row.values for row in table.rows], mapping) if header else None
    several = 0
    for row in table.rows:
        if row.fault or columns is None:
            yield Row(row.where, fault=row.fault or "no column")
            continue
        id = row.values.get(columns.id) if columns.id else None
        label = None if id is None else str(id)
        try:
            yield Row(row.where, label, columns.sample(row.values))
            several += more_references(row.values.get(columns.reference or "")) > 0
        except MalformedError as error:
            yield Row(row.where, label, fault=str(error))
    if several:
        say(f"{file.name}: rows with several references: {several:,}; the first of them is read")


def _columns(
    file: TableFile, header: Sequence[str], rows: Sequence[Mapping[str, Any]], mapping: Mapping[str, str]
) -> _Columns:
    fields = {name: columns for name, columns in checked(mapping, FIELDS).items() if name not in SIGNS}
    check_header(Path(file.name), header, fields, AnnotationError)
    aliases = {name: names for name, names in _NAMES.items() if name not in fields}
    known = known_columns(aliases, header, rows, _columns_of(mapping), _NEEDED)
    fields |= {name: (column,) for name, column in known.items()}
    if missing := [name for name in _NEEDED if name not in fields]:
        raise unknown_columns(Path(file.name), header, missing, AnnotationError)
    single = {name: columns[0] for name, columns in fields.items() if name != "context"}
    context = ContextColumns.of(fields["context"], mapping)
    return _Columns(context, single["response"], single.get("reference"), single.get("id"))


def _of_lines(file: TableFile, mapping: Mapping[str, str]) -> Iterator[Row]:
    """A context, a tab and a response a line."""
    columns = ContextColumns.of(("context",), mapping)
    for number, line in enumerate(file.content.split(b"\n"), 1):
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
