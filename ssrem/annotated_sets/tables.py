"""Tables of scores: CSV, TSV, Parquet or one JSON object a line; a row is a response, or one rater's score of one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ssrem.agreement.annotated import file_text, json_objects
from ssrem.annotated_sets.base import NO_RESPONSE, Content, Layout, Response
from ssrem.annotated_sets.columns import Columns
from ssrem.annotated_sets.evidence import WORDS
from ssrem.errors import AnnotationError, one_line
from ssrem.readers.cells import names_delimiter
from ssrem.readers.formats.delimited import CsvReader, TsvReader

_Row = tuple[str, Mapping[str, Any]]


class _TableLayout(Layout):
    """Columns are found by `--map` or by well-known names (`Columns`)."""

    takes_mapping: ClassVar[bool] = True

    def _table(self) -> tuple[list[str], Iterator[_Row]]:
        """The header, and each row's place and values by column."""
        raise NotImplementedError

    def responses(self) -> Iterator[Response]:
        """Where a row is one rater's or one criterion's score, rows with the same dialogue, context, response, model
        and reference are one response; otherwise each row is. Raters that rows name are numbered by name."""
        header, listed = self._table()
        rows = [(where, {name: value for name, value in row.items() if name}) for where, row in listed]
        columns = Columns.of(self.path, header, [row for _, row in rows], self.mapping)
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
        for (key, criterion), named in raters.items():
            responses[key].raters[criterion] = [numbers[rater] for rater in named]
        yield from responses.values()


class CsvLayout(_TableLayout):
    """Cells between commas, semicolons or bars under a header."""

    name: ClassVar[str] = "csv"
    reader: ClassVar[type[CsvReader | TsvReader]] = CsvReader

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return not content.is_json and cls.reader.sniff(content.path)

    def _table(self) -> tuple[list[str], Iterator[_Row]]:
        text = file_text(self.path)
        delimiter = self.reader.delimiter_of(text.lstrip().partition("\n")[0].encode())
        cells = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = _lines(self.path, cells)
        _, header = next(lines)
        if names_delimiter(header):
            _, header = next(lines, ("", []))

        def rows() -> Iterator[_Row]:
            for where, cells in lines:
                if len(cells) != len(header):
                    raise AnnotationError(f"{where}: {len(cells)} cells, the header has {len(header)}")
                yield where, dict(zip(header, cells, strict=True))

        return header, rows()


class TsvLayout(CsvLayout):
    """Tab-separated cells under a header."""

    name: ClassVar[str] = "tsv"
    reader: ClassVar[type[CsvReader | TsvReader]] = TsvReader


class JsonLinesLayout(_TableLayout):
    """One JSON object a line, or a JSON list of them if the layout is named; the columns are the objects' keys."""

    name: ClassVar[str] = "jsonl"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        if content.first is None or content.listed:
            return False
        return not isinstance(content.first.get("annotations"), dict)

    def _table(self) -> tuple[list[str], Iterator[_Row]]:
        rows = list(json_objects(self.path, "a field for each column"))
        return list(dict.fromkeys(name for _, row in rows for name in row)), iter(rows)


class ParquetLayout(_TableLayout):
    """A row of the table is one of the others' rows."""

    name: ClassVar[str] = "parquet"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return content.is_parquet

    def _table(self) -> tuple[list[str], Iterator[_Row]]:
        rows = parquet_table(self.path, str(self.path))
        return list(rows[0] if rows else ()), (
            (f"{self.path}, row {at}", row) for at, row in enumerate(rows, 1)
        )


def parquet_table(path: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a Parquet file; AnnotationError, which calls it `name`, if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise AnnotationError(f"{name}: not a Parquet file that can be read ({one_line(error)})") from None
    return rows


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


def _lines(path: Path, reader: Any) -> Iterator[tuple[str, list[str]]]:
    """Rows of cells, each with the line on which it begins; blank lines are skipped."""
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
