"""Reads responses to score from a file or from standard input: one row is one response."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ssrem.annotated_sets.columns import Columns, as_text, cell, columns_of_messages, more_references, turns
from ssrem.errors import AnnotationError, say
from ssrem.files import temporary_folder
from ssrem.readers.fields import ALIASES, SIGNS, listed, normalise
from ssrem.readers.files.sources import STDIN
from ssrem.readers.table_rows import FORMATS, TableFile, TableRow
from ssrem.samples import Sample

FIELDS = ("context", "response", "reference", "id", "separator")
"""Fields of `--map`, as for annotated sets. id: any identifier of the response, which is printed beside its score."""


@dataclass(frozen=True)
class ResponseRow:
    """A row of a file. where: its place, for messages. id: its identifier in the file, None if it has none. sample:
    None for a row that cannot be read; `fault` then says why."""

    where: str
    id: str | None = None
    sample: Sample | None = None
    fault: str = ""


@dataclass(frozen=True)
class Responses:
    """The rows of a file, in its order. guessed: the format and what it is, if it was guessed from the content, else
    None. told: a sentence on how the columns were read."""

    rows: tuple[ResponseRow, ...]
    guessed: str | None
    told: str = ""


def read_responses(
    source: str, format: str | None = None, mapping: Mapping[str, str] | None = None
) -> Responses:
    """Read the responses of a file, or of standard input for "-", plain or compressed, in UTF-8 or UTF-16.

    format: a key of FORMATS; guessed from the content if None. mapping: field of FIELDS → column; for context
    also A+B, columns with a turn each. A row that cannot be read is kept with its fault. Raises AnnotationError if the
    file cannot be read at all, has no row, or has no row that can be read.
    """
    if source == STDIN:
        with temporary_folder() as folder:
            with (folder / "content").open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return _read(TableFile(folder / "content", "standard input"), format, mapping or {})
    return _read(TableFile(Path(source)), format, mapping or {})


def read_samples(path: Path) -> list[Sample]:
    """The samples of a file; raises AnnotationError, which names the first faulty row, unless all rows can be read."""
    rows = read_responses(str(path)).rows
    if fault := next((row for row in rows if row.sample is None), None):
        raise AnnotationError(f"{path}, {fault.where}: {fault.fault}")
    return [row.sample for row in rows if row.sample is not None]


def _read(file: TableFile, format: str | None, mapping: Mapping[str, str]) -> Responses:
    chosen = format or _format_of(file, mapping)
    table = file.table(chosen)
    if not table.rows:
        raise AnnotationError(f"{file.name} holds no response; there is nothing to score")
    columns, names = None, {**ALIASES, "id": ALIASES["response_id"]}
    if any(table.header):
        values = [row.values for row in table.rows]
        try:
            columns = Columns.of(Path(file.name), table.header, values, mapping, names, FIELDS)
        except AnnotationError:
            if mapping or not (message := columns_of_messages(table.header)):
                raise
            raise AnnotationError(
                f"{file.name}: its rows are messages, in conversations by {message[0]!r}, not responses with their "
                "contexts; let them land with ssrem ingest, and score the test split with ssrem score-corpus, or name "
                "the columns with --map"
            ) from None
    rows = tuple(_row(row, columns) for row in table.rows)
    if all(row.sample is None for row in rows):
        way_out = f"--format names another format: {', '.join(FORMATS)}"
        if columns and not table.rows[0].fault:
            way_out = f"--map names other columns, or KEY.KEY within them; there are {listed(table.header)}"
        raise AnnotationError(
            f"{file.name}: none of its rows ({len(rows):,}) can be read as {chosen} ({FORMATS[chosen]}); the first: "
            f"{rows[0].where}: {rows[0].fault}; {way_out}"
        )
    true = columns.fields.get("reference", ("",))[0] if columns else ""
    if several := sum(more_references(cell(row.values, true)) > 0 for row in table.rows):
        say(f"{file.name}: rows with several references: {several:,}; the first of them is read")
    named = file.path.name.lower().rpartition(".")[2] == chosen  # by the file's extension
    told = columns.told if columns and chosen != "text" else ""
    return Responses(rows, None if format or named else f"{chosen}, {FORMATS[chosen]}", told)


def _format_of(file: TableFile, mapping: Mapping[str, str]) -> str:
    """The key of FORMATS that the content looks like; AnnotationError if there is none. Lines with tabs are a table if
    the first one names a context and a response, or a column of the mapping; else they are plain text."""
    parts = [part for name in mapping if name not in SIGNS for part in mapping[name].split("+")]
    named = {normalise(name) for part in parts for name in (part, part.split(".")[0])}
    known = all({*file.names} & {*ALIASES[field]} for field in ("context", "response"))
    if file.format == "tsv" and not known and not {*file.names} & named:
        return "text"
    if file.format is None:
        listed = "; ".join(f"{name}, {what}" for name, what in FORMATS.items())
        raise AnnotationError(f"{file.name} is of no format that is read ({listed}); --format names one")
    return file.format


def _row(row: TableRow, columns: Columns | None) -> ResponseRow:
    if row.fault or columns is None:
        return ResponseRow(row.where, fault=row.fault or "no column")
    values = columns.values(row.values)
    label = None if values.get("id") is None else str(values["id"])
    try:
        context, reference = turns(values["context"]), as_text("reference", values.get("reference")) or None
        return ResponseRow(
            row.where, label, Sample(context, as_text("response", values["response"]), reference)
        )
    except ValueError as error:
        return ResponseRow(row.where, label, fault=str(error))
