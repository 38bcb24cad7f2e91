"""Tables of scores: CSV, TSV, Parquet or one JSON object a line; a row is a response, or one rater's score of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ssrem.annotated_sets.base import NO_RESPONSE, Content, Layout, Response, Row
from ssrem.annotated_sets.columns import Columns
from ssrem.annotated_sets.evidence import WORDS
from ssrem.errors import AnnotationError
from ssrem.readers.fields import ALIASES, normalise

MOST_RATINGS = 20_000_000
"""Most raters times responses whose names are told apart: every rater has a place in the table of ratings."""

RATER_NAMES = "column of too many raters to tell apart"


class TableLayout(Layout):
    """Columns are found by `--map` or by well-known names (`Columns`)."""

    takes_mapping: ClassVar[bool] = True
    aliases: ClassVar[Mapping[str, Sequence[str]]] = ALIASES

    def rows(self) -> tuple[Sequence[str], list[Row]]:
        """The header, and the place and the values by column of each row."""
        listed = self.name == JsonLinesLayout.name and self.content.format == "json"
        return self.table("json" if listed else self.name)

    def responses(self) -> Iterator[Response]:
        """Where a row is one rater's or one criterion's score, rows with the same dialogue, context, response, model
        and reference are one response; otherwise each row is. Raters that rows name are numbered by name, unless the
        table of their ratings would be larger than MOST_RATINGS; else by position."""
        header, rows = self.rows()
        columns = Columns.of(self.path, header, [row for _, row in rows], self.mapping, self.aliases)
        self.columns = columns.told
        long = columns.unnamed_raters or "rater" in columns.single or "criterion" in columns.single
        responses: dict[tuple[Any, ...], Response] = {}
        raters: dict[tuple[Any, str], list[tuple[str, int]]] = {}  # by name and position in the row
        for number, (where, row) in enumerate(rows):
            one = _response(where, row, columns, str(number))
            if not one.text.strip():
                self.left_out[NO_RESPONSE] += 1
                continue
            dialogue = row.get(columns.single.get("dialogue", ""))
            key = (dialogue, one.context, one.text, one.system, one.reference) if long else (number,)
            if key not in responses:
                self._count_references(row.get(columns.single.get("reference", "")))
            response = responses.setdefault(key, one)
            for rater, criterion, scores in _scores(where, row, columns):
                response.scores.setdefault(criterion, []).extend(scores)
                if rater is None:
                    continue
                named = raters.setdefault((key, criterion), [])
                if (rater, 0) in named:
                    raise AnnotationError(
                        f"{where}: rater {rater} scores the response of {response.where.rpartition(', ')[2]} by "
                        f"{criterion!r} again; tell the rows apart with --map dialogue=COLUMN"
                    )
                named.extend((rater, at) for at in range(len(scores)))
        known = sorted({rater for named in raters.values() for rater in named})
        numbers = {rater: number for number, rater in enumerate(known)}
        if len(known) * len(responses) > MOST_RATINGS:
            raters.clear()
            self.left_out[RATER_NAMES] += 1
        for (key, criterion), named in raters.items():
            responses[key].raters[criterion] = [numbers[rater] for rater in named]
        yield from responses.values()


class CsvLayout(TableLayout):
    """Cells between commas, semicolons or bars under a header."""

    name: ClassVar[str] = "csv"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return content.format == cls.name


class TsvLayout(CsvLayout):
    """Tab-separated cells under a header."""

    name: ClassVar[str] = "tsv"


class JsonLinesLayout(TableLayout):
    """One JSON object a line, or a JSON list of them; the columns are the objects' keys."""

    name: ClassVar[str] = "jsonl"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        """Not rows of the layout `eval`; of a list, the keys must have the well-known names of a row with a score."""
        if content.format not in ("json", "jsonl") or isinstance(content.first.get("annotations"), dict):
            return False
        keys = set(map(normalise, content.first))
        known = all(keys & set(ALIASES[field]) for field in ("context", "response", "score"))
        return bool(content.first) and (known or not (content.file and content.file.holds_list))


class ParquetLayout(CsvLayout):
    """A row of the table is one of the others' rows."""

    name: ClassVar[str] = "parquet"


def _response(where: str, row: Mapping[str, Any], columns: Columns, number: str) -> Response:
    def text(name: str) -> str | None:
        value = row.get(columns.single.get(name, ""))
        if name == "reference" and isinstance(value, list):
            value = value[0] if value else None
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | list | dict):
            raise AnnotationError(f"{where}: {name} is {value!r}, not text")
        return str(value)

    dialogue, context = text("dialogue") or number, _context(where, row, columns)
    system, reference = text("model") or None, text("reference") or None
    return Response(where, dialogue, context, text("response") or "", {}, system, reference)


def _context(where: str, row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    try:
        return columns.context.turns(row)
    except ValueError as error:
        raise AnnotationError(f"{where}: {error}") from None


def _scores(
    where: str, row: Mapping[str, Any], columns: Columns
) -> Iterator[tuple[str | None, str, list[Any]]]:
    """(rater, criterion, scores) of a row; no rater where no column names one."""
    rater = row.get(columns.single.get("rater", ""))
    if "rater" in columns.single and rater in (None, ""):
        raise AnnotationError(f"{where}: no rater in the column {columns.single['rater']!r}")
    for name, score_columns in columns.scores.items():
        criterion = name
        if "criterion" in columns.single:
            criterion = str(row.get(columns.single["criterion"]) or "")
            if not criterion:
                raise AnnotationError(f"{where}: no criterion in the column {columns.single['criterion']!r}")
        cells = (columns.with_point(row.get(column)) for column in score_columns)
        scores = [score for cell in cells for score in _listed(cell)]
        yield None if rater is None else str(rater), criterion, scores


def _listed(value: Any) -> list[Any]:
    """A cell's scores, or `WORDS` for them: one, or a JSON list of several."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]  # not JSON: reported as a rating that is no number
    values = value if isinstance(value, list) else [value]
    return [
        WORDS.get(str(one).strip().lower(), one) if isinstance(one, str | bool) else one for one in values
    ]
