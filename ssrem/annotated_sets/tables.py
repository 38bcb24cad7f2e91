"""Tables of scores: CSV, TSV or one JSON object a line; a response a row, or one rater's score a row."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import Annotated, file_text, json_rows
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set, objects, ratings, turns
from ssrem.annotated_sets.columns import Columns
from ssrem.errors import AnnotationError

DELIMITERS: Mapping[str, str] = {"csv": ",", "tsv": "\t"}
NO_RESPONSE = "row without a response"

_Row = tuple[str, Mapping[str, Any]]
_Key = tuple[Any, ...]


@dataclass
class _Response:
    """A response as its rows are read. raters: those who have scored it, by criterion."""

    where: str
    dialogue: str
    context: tuple[str, ...]
    text: str
    reference: str | None
    system: str | None
    scores: dict[str, list[Any]] = field(default_factory=dict)
    raters: set[tuple[str, str]] = field(default_factory=set)


def read(path: Path, layout: str, mapping: Mapping[str, str] | None = None) -> AnnotatedSet:
    """Read the table; mapping: field of FIELDS → column, or columns joined by +.

    Rows of one response are those with the same dialogue, context, response, model and reference, where a row is one
    rater's or one criterion's; else each row is a response. AnnotationError names file and line.
    """
    header, rows = _json_lines(path) if layout == "jsonl" else _cells(path, DELIMITERS[layout])
    columns = Columns.of(path, header, mapping)
    long = "rater" in columns.single or "criterion" in columns.single
    left_out: Counter[str] = Counter()
    found: dict[_Key, _Response] = {}
    for number, (where, row) in enumerate(rows):
        one = _response(where, row, columns, str(number))
        if not one.text.strip():
            left_out[NO_RESPONSE] += 1
            continue
        named = row.get(columns.single.get("dialogue", ""))
        key: _Key = (named, one.context, one.text, one.system, one.reference) if long else (number,)
        _take(where, row, columns, found.setdefault(key, one))
    made = []
    for one in found.values():
        scores = ratings(one.where, one.scores, left_out)
        if scores is not None:
            made.append(Annotated(one.dialogue, one.context, one.text, one.reference, one.system, scores))
    return annotated_set(layout, made, left_out, [path])


def _response(where: str, row: Mapping[str, Any], columns: Columns, number: str) -> _Response:
    def text(name: str) -> str | None:
        value = row.get(columns.single.get(name, ""))
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | list | dict):
            raise AnnotationError(f"{where}: {name} is {value!r}, not text")
        return str(value)

    return _Response(
        where,
        text("dialogue") or number,
        _context(where, row, columns),
        text("response") or "",
        text("reference") or None,
        text("model") or None,
    )


def _context(where: str, row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    """One column is split by the separator, or is a list; several are a turn each."""
    values = [row.get(column) for column in columns.context]
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    elif len(values) == 1 and isinstance(values[0], str):
        return turns(values[0], columns.separator)
    if not all(value is None or isinstance(value, str) for value in values):
        raise AnnotationError(f"{where}: context is neither text nor a list of turns")
    return tuple(value.strip() for value in values if value and value.strip())


def _take(where: str, row: Mapping[str, Any], columns: Columns, one: _Response) -> None:
    """Add the row's scores to those of its response."""
    rater = row.get(columns.single.get("rater", ""))
    if "rater" in columns.single and rater in (None, ""):
        raise AnnotationError(f"{where}: no rater in the column {columns.single['rater']!r}")
    for name, there in columns.scores.items():
        criterion = name
        if "criterion" in columns.single:
            criterion = str(row.get(columns.single["criterion"]) or "")
            if not criterion:
                raise AnnotationError(f"{where}: no criterion in the column {columns.single['criterion']!r}")
        if rater is not None:
            if (criterion, str(rater)) in one.raters:
                raise AnnotationError(
                    f"{where}: rater {rater} scores the response of {one.where.rpartition(', ')[2]} by "
                    f"{criterion!r} again; tell the rows apart with --map dialogue=COLUMN"
                )
            one.raters.add((criterion, str(rater)))
        scores = one.scores.setdefault(criterion, [])
        for column in there:
            scores += _listed(row.get(column))


def _listed(value: Any) -> list[Any]:
    """A cell's scores: one, or a JSON list of several."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]  # told as what it is: no number
    return value if isinstance(value, list) else [value]


def _json_lines(path: Path) -> tuple[list[str], Iterator[_Row]]:
    rows = list(objects(path, json_rows(path), "a field for each column"))
    return list(dict.fromkeys(name for _, row in rows for name in row)), iter(rows)


def _cells(path: Path, delimiter: str) -> tuple[list[str], Iterator[_Row]]:
    reader = csv.reader(io.StringIO(file_text(path), newline=""), delimiter=delimiter, strict=True)
    lines = _lines(path, reader)
    _, header = next(lines)

    def rows() -> Iterator[_Row]:
        for where, cells in lines:
            if len(cells) != len(header):
                raise AnnotationError(f"{where}: {len(cells)} cells, the header has {len(header)}")
            yield where, dict(zip(header, cells, strict=True))

    return header, rows()


def _lines(path: Path, reader: Any) -> Iterator[tuple[str, list[str]]]:
    """Rows of cells with where they begin; blank lines are no rows."""
    while True:
        where = f"{path}, line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise AnnotationError(f"{where}: not a row that can be read ({error})") from None
        if cells:
            yield where, cells
