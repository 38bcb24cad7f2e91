"""What all layouts of annotated sets share: the file that they read, the rows that they yield, and the reading of
ratings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from ssrem.annotated_sets.annotated import Annotated
from ssrem.annotated_sets.columns import WORDS, Values, as_text, more_references, turns
from ssrem.errors import AnnotationError, counted, short_repr
from ssrem.readers.fields import FEW, normalise
from ssrem.readers.files.streams import encodable
from ssrem.readers.json_values import opened
from ssrem.readers.table_rows import TableFile

_ABSENT = re.compile(r"(?:#?n/?a\b.*|nan|none|null|\\n|-+|\?|\.)?", re.IGNORECASE | re.DOTALL)
"""What files write if a rater gave no score: nothing, N/A with or without a reason, or a word for null."""
_LABELLED = re.compile(
    r"\s*([+-]?\d+(?:\.\d+)?)\s*[-–—:=.)(]\s*"
    r"(?!(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\s*\Z)[^\W\d][^\d]*",
    re.DOTALL | re.IGNORECASE,
)
"""A number followed by its meaning, such as `4 - good`, `4: good` or `4 (good)`; not `5-Apr`, into which spreadsheets
turn `4/5`."""
_NO_CRITERION = re.compile(
    r"(?:\w+_)?ids?|time|timestamp|time_(?:spent|taken)|response_time|(?:latency|duration)(?:_\w+)?|(?:num|n)_\w+"
    r"|\w+_count|bleu"
)
"""Names, as `normalise` writes them, of values that are no ratings: ids, times, durations, counts and BLEU."""
_REMARKS = re.compile(r"comments?|notes?|feedback|explanation|reasons?|rationale")
"""Names, as `normalise` writes them, of values that are no ratings if they are texts: raters' remarks."""
_OUT_OF = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/|out of)\s*(\d+)\s*", re.IGNORECASE)
"""A number of points and their maximum: `4/5`, `4 out of 5`."""
_MEANT = re.compile(r"\s*(?:(\d+(?:\.\d+)?)\s*stars?|[^\d]*[^\W\d][^\d]*\(\s*(\d+)\s*\))\s*", re.IGNORECASE)
"""`4 stars`, or the meaning of a number followed by the number: `agree (4)`."""
_SEVERAL = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:\s*[;|]\s*[+-]?\d+(?:\.\d+)?)+\s*")
"""The ratings of several raters in one cell, such as `4;5;3`."""
_OF_SCORES = ("score", "rating", "number", "value")
"""Keys under which an object may hold a score; the first that is there is read."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")

NO_RESPONSE = "row without a response"
UNRATED = "response without any rating"
NOT_APPLICABLE = "rating given as N/A or left empty"
MORE_REFERENCES = "reference beyond the first of a response"
RATER_NAMES = "column of too many raters to tell apart"

LARGEST_RATING = 1e9
"""Largest absolute value of a rating; larger ones are refused, as their squares would overflow or drown all others."""
MOST_RATINGS = 20_000_000
"""Largest product of raters and responses for which raters are matched by name: the table of ratings then has a cell
for every rater and response."""

Place = tuple[str, Values]
"""A row of a file: its place, for messages, and its values."""


@dataclass(frozen=True)
class Row:
    """A row of a file of rated responses, with its values as written.

    where: its place in the file, for messages. scores: criterion → scores. rater: who gave them, if the row is one
    rater's. joined: whether rows with the same texts, model and dialogue are one response. number: of the table's row,
    from 0, which has several of these rows if it lists raters; else rows are numbered as they come.
    """

    where: str
    context: Any
    response: Any
    scores: Any
    model: Any = None
    reference: Any = None
    dialogue: Any = None
    rater: str | None = None
    joined: bool = False
    number: int | None = None


@dataclass(frozen=True)
class AnnotatedSet:
    """An annotated set as it was read.

    layout: its name. rows: the responses, in the file's order. left_out: kind of content that was left out → how often
    it occurs. part: which of the file's sets was read, if it was named. mapped: whether `--map` applies to the layout.
    columns: a sentence about the columns of a table. scores: criterion → its columns, of a table without a column of
    criteria.
    """

    layout: str
    rows: tuple[Annotated, ...]
    left_out: Mapping[str, int]
    part: str | None
    mapped: bool
    columns: str
    scores: Mapping[str, Sequence[str]]

    @property
    def summary(self) -> str:
        """One line: the layout, how many responses and systems, what was read as what, what was left out.

        With the lowest and the highest rating: a 99 that stands for no answer is noticed.
        """
        systems = len({row.system for row in self.rows} - {None})
        size = counted(len(self.rows), "response") + (f" of {counted(systems, 'system')}" if systems else "")
        if scores := [score for row in self.rows for name in row.ratings for score in row.scores(name)]:
            size += f", rated {min(scores):g} to {max(scores):g}"
        out = ", ".join(counted(number, what) for what, number in self.left_out.items())
        layout = f"{self.layout}:{self.part}" if self.part else self.layout
        parts = [f"read as {layout}: {size}", self.columns, out and f"left out: {out}"]
        return "; ".join(filter(None, parts))


class Source:
    """A file of rated responses, whose layout is recognised and whose rows are read.

    format: a key of FORMATS of `table_rows`, None for files of other kinds. first: the values of the first row of JSON
    or of a table, empty if there is none. mapping: field → column. part: which of a file's sets to read. named: whether
    the layout takes `--map`, so that its columns of scores are known and values of any name count as ratings. Layouts
    fill in left_out (kind of skipped content → how often it occurs) and columns (a sentence about the columns of a
    table). AnnotationError if the file cannot be read.
    """

    def __init__(self, path: Path, mapping: Mapping[str, str] | None = None) -> None:
        if path.is_dir():
            raise AnnotationError(f"{path} is a folder; give a file of rated responses")
        self.path, self.mapping = path, mapping or {}
        self.columns, self.part, self.named = "", "", False
        self.scores: Mapping[str, Sequence[str]] = {}
        self.left_out = Counter[str]()
        self._file = TableFile(path)
        self.format = self._file.format
        self.first: Values = {}
        if self.format:
            with suppress(AnnotationError):  # broken JSON is reported when the rows are read
                self.first = next((row.values for row in self._file.table().rows), {})

    @property
    def text(self) -> str:
        """The text of the file; AnnotationError if it is not UTF-8."""
        return self._file.text

    def table(self, format: str | None = None) -> tuple[Sequence[str], list[Place]]:
        """The header, and the place and the values of each row; AnnotationError for a row that cannot be read."""
        table = self._file.table(format)
        if fault := next((row for row in table.rows if row.fault), None):
            raise AnnotationError(f"{self.path}, {fault.where}: {fault.fault}")
        return table.header, [(f"{self.path}, {row.where}", row.values) for row in table.rows]

    def objects(self) -> list[Place]:
        """The place and the values of each row of JSON, or of a table with the same fields; errors as in `table`."""
        return self.table(None if self.format else "json")[1]


@dataclass
class Layout:
    """A layout of annotated sets; decorates the function that yields the rows of a source, in the file's order.

    looks_like: tells whether a source has this layout. takes_mapping: whether the source's mapping is used.
    """

    looks_like: Callable[[Source], bool]
    takes_mapping: bool = False
    rows: Callable[[Source], Iterator[Row]] = field(init=False)

    def __call__(self, rows: Callable[[Source], Iterator[Row]]) -> Self:
        self.rows = rows
        return self


@dataclass
class _Response:
    """A response whose ratings are being collected. where: place of its first row. scores: criterion → (rater's name,
    position in the row, score) of each rating."""

    where: str
    annotated: Annotated
    scores: dict[str, list[tuple[str | None, int, float | None]]] = field(default_factory=dict)


def rated(source: Source, rows: Iterable[Row]) -> Iterator[Annotated]:
    """Yield the responses with their ratings as numbers; missing responses and ratings are counted and left out.

    Raters with names are numbered in the order of their names, unless raters times responses exceed MOST_RATINGS; other
    raters are numbered by position. AnnotationError for a score that is neither a number nor N/A, for a field that is
    not text, for a rater's second score of a response by the same criterion, and for rows that nothing tells apart.
    """
    responses: dict[tuple[Any, ...], _Response] = {}
    scales: dict[str, _Scale] = defaultdict(_Scale)
    alike = Counter[tuple[Any, ...]]()
    for number, row in enumerate(rows):
        try:
            one = _Response(row.where, _annotated(row, number if row.number is None else row.number))
        except ValueError as error:
            of_text = source.named and str(error).startswith(("context", "response"))
            way_out = "; --map names another column, or KEY.KEY within one" if of_text else ""
            raise AnnotationError(f"{row.where}: {error}{way_out}") from None
        if not one.annotated.response.strip():
            source.left_out[NO_RESPONSE] += 1
            continue
        texts = (one.annotated.context, one.annotated.response.strip(), one.annotated.reference)
        same = (row.dialogue, *texts, one.annotated.system)
        key = same if row.joined else (number,)
        alike[same] += source.named and not row.joined
        if key not in responses:
            source.left_out[MORE_REFERENCES] += more_references(row.reference)
        one = responses.setdefault(key, one)
        for criterion, written in _ratings(source, row.scores):
            given = one.scores.setdefault(criterion, [])
            if row.rater is not None and any(row.rater == by for by, _, _ in given):
                raise AnnotationError(
                    f"{row.where}: rater {row.rater} scores the response of {one.where.rpartition(', ')[2]} by "
                    f"{criterion!r} again; tell the rows apart with --map criterion=COLUMN or dialogue=COLUMN"
                )
            for at, score in enumerate(flat(written)):
                given.append((row.rater, at, _rating(row.where, criterion, score, scales[criterion])))
    _check_apart(source.path, alike)
    every = (given for one in responses.values() for given in one.scores.values())
    names = sorted({(rater, at) for given in every for rater, at, _ in given if rater is not None})
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) * len(responses) > MOST_RATINGS:
        numbers = {}
        source.left_out[RATER_NAMES] += 1
    for one in responses.values():
        ratings: dict[str, tuple[float | None, ...]] = {}
        for criterion, given in one.scores.items():
            source.left_out[NOT_APPLICABLE] += sum(score is None for _, _, score in given) if given else 1
            places = [numbers.get((rater or "", at), place) for place, (rater, at, _) in enumerate(given)]
            known = {place: one[2] for place, one in zip(places, given, strict=True) if one[2] is not None}
            if known:
                ratings[criterion] = tuple(known.get(place) for place in range(max(known) + 1))
        source.left_out[UNRATED] += not ratings
        if ratings:
            yield replace(one.annotated, ratings=ratings)


def _annotated(row: Row, number: int) -> Annotated:
    """The response of a row, without its ratings; ValueError if a field is not text or the scores are not an object."""
    response = as_text("response", row.response)
    if not response.strip():
        return Annotated("", (), "", None, None, {})
    if not isinstance(row.scores, dict):
        expected = "expected annotations such as {'overall': [4, 5, 3]}"
        raise ValueError(f"no human scores; {expected}, or name the key of the score with --map score=KEY")
    texts = {name: as_text(name, getattr(row, name)) or None for name in ("reference", "model", "dialogue")}
    context, dialogue = turns(row.context), texts["dialogue"] or str(number)
    every = (dialogue, *context, response, texts["reference"] or "", texts["model"] or "", *row.scores)
    if not encodable("".join(map(str, every))):
        raise ValueError("an escape such as \\ud800, half of a pair, is no text; repair the file")
    return Annotated(dialogue, context, response, texts["reference"], texts["model"], {})


def _check_apart(path: Path, alike: Mapping[tuple[Any, ...], int]) -> None:
    """Raise AnnotationError if most rows repeat a response and no column says whether by rater, criterion or system.

    alike: (dialogue, texts, system) → number of rows that have them.
    """
    repeated, total = sum(count for count in alike.values() if count > 1), sum(alike.values())
    if repeated >= FEW and 2 * repeated > total:
        raise AnnotationError(
            f"{path}: {repeated:,} of {total:,} rows have the context and response of another one; say what tells them "
            "apart with --map rater=COLUMN, criterion=COLUMN, model=COLUMN or dialogue=COLUMN"
        )


def _ratings(source: Source, scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each criterion and its scores as written. In layouts that take no `--map`, a value with the name of an id,
    a time, a count or a remark is no rating: it is counted and left out."""
    for criterion, written in scores.items():
        name = normalise(str(criterion))
        is_remark = isinstance(written, str) and _REMARKS.fullmatch(name)
        if source.named or not (_NO_CRITERION.fullmatch(name) or is_remark):
            yield criterion, written
        else:
            source.left_out[f"value of {criterion!r}, which is no rating"] += 1


def dataset_name(path: Path) -> str:
    """Name of an annotated set: that of its file without suffixes such as `.csv.gz`, and without `_eval`."""
    suffixes = r"(\.(jsonl?|csv|tsv|txt|parquet))?(\.(gz|zst|bz2))?\Z"
    return re.sub(suffixes, "", path.name, count=1, flags=re.IGNORECASE).removesuffix("_eval")


def text_of(where: str, row: Values, name: str) -> str:
    """The value of a field that must be text, stripped; AnnotationError if it is missing or anything else."""
    if not isinstance(row.get(name), str):
        raise AnnotationError(f"{where}: {f'{name} is not text' if name in row else f'no {name}'}")
    return str(row[name]).strip()


def flat(written: Any) -> Iterator[Any]:
    """Yield the single scores in a value: a score, a list of scores, text with several, or an object that holds one. A
    list of objects with different names holds scores of several criteria, and is yielded as it is."""
    several = isinstance(written, str) and _SEVERAL.fullmatch(written)
    written = re.split("[;|]", written) if several else opened(written)
    if isinstance(written, dict):
        written = next((written[name] for name in _OF_SCORES if name in written), written)
    if not isinstance(written, list | tuple):
        yield written
        return
    names = {str(one.get("name")) for one in written if isinstance(one, dict)}
    if len(names) > 1:
        yield written
    else:
        for one in written:
            yield from flat(one)


def each_rater(
    where: str, rater: Any, scores: Mapping[str, list[Any]]
) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the rater of a row, None without a name, with the scores by criterion. If the row has a list of raters,
    yield each with the scores at the same place in the lists of scores; AnnotationError if their lengths differ."""
    raters = opened(rater)
    if not isinstance(raters, list) or not raters:
        yield None if rater is None or raters == [] else str(rater).strip(), scores
        return
    listed = {of: list(flat(cells)) for of, cells in scores.items()}
    for of, given in listed.items():
        if all(one in (None, "") for one in given):
            listed[of] = [None] * len(raters)
        elif len(given) != len(raters):
            raise AnnotationError(f"{where}: {len(raters)} raters, but {len(given)} scores of {of!r}")
    for at, name in enumerate(raters):
        yield str(name), {of: given[at] for of, given in listed.items()}


@dataclass
class _Scale:
    """How the ratings of a criterion are written. out_of: the maximum of points, as in `4/5`. word, number: place and
    value of the first word that stands for 1 or 0, and of the first number that is neither."""

    out_of: str = ""
    word: str = ""
    number: str = ""


def _rating(where: str, criterion: str, value: Any, scale: _Scale) -> float | None:
    """A rater's score as a number; None for N/A. scale: that of the ratings before, filled in here. AnnotationError for
    any other value that is no rating, for points with another maximum, and for words beside other numbers than 0 and 1.
    """
    if value is None or (isinstance(value, str | float) and _ABSENT.fullmatch(str(value).strip())):
        return None
    score: object = value
    if isinstance(value, str | bool):
        score = WORDS.get(str(value).strip().lower(), value)
    word = score is not value
    if isinstance(score, str):
        score = score.replace("\N{MINUS SIGN}", "-")
        labelled, points = _LABELLED.fullmatch(score) or _MEANT.fullmatch(score), _OUT_OF.fullmatch(score)
        if points and float(points[1]) <= float(points[2]):
            scale.out_of = scale.out_of or points[2]
            if float(scale.out_of) != float(points[2]):
                raise AnnotationError(
                    f"{where}: rating {value!r} of {criterion!r} is out of {points[2]}, those before are out of "
                    f"{scale.out_of}; write all of them on one scale"
                )
            labelled = points
        with suppress(ValueError):
            score = float(labelled[1] or labelled[2] if labelled else score)
    score = float(score) if isinstance(score, Decimal) else score
    if isinstance(score, int | float) and not isinstance(score, bool) and abs(score) <= LARGEST_RATING:
        if word:
            scale.word = scale.word or f"{value!r} ({where.rpartition(', ')[2]})"
        elif score not in (0, 1):
            scale.number = scale.number or f"{value} ({where.rpartition(', ')[2]})"
        if scale.word and scale.number:
            raise AnnotationError(
                f"{where}: {criterion!r} is rated {scale.word}, which stands for 1 or 0, and {scale.number}; write all "
                "ratings as numbers, or all as words"
            )
        return float(score)
    decimal = isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value)
    way_out = ", or say --map decimal=, if commas stand before decimals" if decimal else ""
    if isinstance(value, dict):
        way_out = (
            ", or name what is in it: --scores KEY.fluency, or --map score.fluency=KEY.fluency for criteria and "
            "score.overall=KEY.* for raters, of JSON with --layout jsonl"
        )
    if isinstance(value, list):
        way_out = ", or name what is in it: --map score=KEY.*.value criterion=KEY.*.name, of JSON with --layout jsonl"
    raise AnnotationError(
        f"{where}: rating {short_repr(value)} of {criterion!r} is neither a number up to {LARGEST_RATING:g} nor N/A; "
        f"write it as a number, such as 4, '4 - good' or '4/5', or as pass or fail, yes or no, like or "
        f"dislike{way_out}"
    )
