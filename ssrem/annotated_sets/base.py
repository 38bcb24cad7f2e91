"""What the layouts of annotated sets share: their contract, what they return, and how a rating is read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

from ssrem.agreement.annotated import Annotated
from ssrem.errors import AnnotationError, short_repr
from ssrem.readers.table_rows import NOT_UTF8, TableFile

_JSON = ("json", "jsonl")
_NAMED_JSON = re.compile(r"\.jsonl?(\.(gz|zst|bz2))?\Z", re.IGNORECASE)
_ABSENT = re.compile(r"(?:n/?a\b.*|nan|none|null|-+|\?)?", re.IGNORECASE | re.DOTALL)
"""How files write that a rater gave no score: nothing, N/A with or without a reason, or a table's word for null."""

_LABELLED = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*[-–—:=.)(]\s*[^\W\d][^\d]*", re.DOTALL)
"""A number and what it means, such as `4 - good`, `4: good` or `4 (good)`."""

_OUT_OF = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+)\s*")
"""A number of points and the most that there are: `4/5`."""

_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")

Row = tuple[str, Mapping[str, Any]]
"""The place of a row, for messages, and its values."""

LARGEST_RATING = 1e9
"""Ratings beyond it, of either sign, are refused: their squares would overflow, or drown all other ratings."""

NO_RESPONSE = "row without a response"
UNRATED = "response without any rating"
NOT_APPLICABLE = "rating given as N/A or left empty"
_MORE_REFERENCES = "reference beyond the first of a response"


@dataclass(frozen=True)
class AnnotatedSet:
    """An annotated set as it was read.

    layout: a key of LAYOUTS. rows: the responses, in the file's order. left_out: kind of content that the rows cannot
    hold → how often it occurs. files: every file that was read. part: which of a file's sets this is, if it holds
    several. mapped: whether `--map` applies to the layout. encoding: why a file is read as cp1252; None for UTF-8.
    columns: of a table, which of them were read as what.
    """

    layout: str
    rows: tuple[Annotated, ...]
    left_out: Mapping[str, int]
    files: tuple[Path, ...]
    part: str | None = None
    mapped: bool = False
    encoding: str | None = None
    columns: str = ""

    @property
    def summary(self) -> str:
        """One line: the layout, the number of responses and systems, what was read from which column, what was left
        out, and a guessed encoding."""
        systems = len({row.system for row in self.rows} - {None})
        size = counted(len(self.rows), "response") + (f" of {counted(systems, 'system')}" if systems else "")
        out = ", ".join(counted(number, what) for what, number in self.left_out.items() if number)
        layout = f"{self.layout}:{self.part}" if self.part else self.layout
        parts = [f"read as {layout}: {size}", self.columns, out and f"left out: {out}", self.encoding]
        return "; ".join(filter(None, parts))


class Content:
    """What a layout is recognised by, and reads.

    file: None for a folder. first: the values of the first row of JSON or of a table, empty where there is none.
    """

    def __init__(self, path: Path) -> None:
        """AnnotationError if it is neither a folder nor a file that can be read."""
        self.path = path
        self.file = None if path.is_dir() else TableFile(path)
        self.first: Mapping[str, Any] = {}
        if self.file is not None and self.file.format is not None:
            with suppress(AnnotationError):  # broken JSON: its layout says so
                self.first = next((row.values for row in self.file.table().rows), {})

    @property
    def format(self) -> str | None:
        """A key of FORMATS of `table_rows`; None for folders and files of other kinds."""
        return self.file.format if self.file else None

    @property
    def is_json(self) -> bool:
        """Whether it starts as JSON, or is named so and no table."""
        named = self.format is None and _NAMED_JSON.search(self.path.name) is not None
        return self.file is not None and (named or self.format in _JSON)

    @property
    def text(self) -> str:
        """The text of a file, "" of a folder; AnnotationError if it is not UTF-8."""
        return self.file.text if self.file else ""


@dataclass
class Response:
    """A response as a layout reads it.

    where: its place in the file, for messages. scores: criterion → list of the raters' scores as written. system:
    who responded, None if unknown. raters: criterion → number of the rater of each score, from 0; by default its
    position in the list.
    """

    where: str
    dialogue: str
    context: tuple[str, ...]
    text: str
    scores: dict[str, Any]
    system: object = None
    reference: str | None = None
    raters: dict[str, list[int]] = field(default_factory=dict)


class Layout(ABC):
    """How one kind of annotated set is laid out; an instance reads one file or folder.

    mapping: field → column, used with `takes_mapping` only. part: which set to read of a file that holds several,
    as layouts with `holds_parts` do. left_out: what `responses` skips and counts. files: those that were read.
    columns: a sentence about the columns of a table. out_of: criterion → the m of its scores n/m.
    """

    name: ClassVar[str]
    takes_mapping: ClassVar[bool] = False
    holds_parts: ClassVar[bool] = False

    def __init__(
        self, content: Content, mapping: Mapping[str, str] | None = None, part: str | None = None
    ) -> None:
        self.content = content
        self.path = content.path
        self.mapping = mapping
        self.part = part
        self.files = [content.path]
        self.left_out: Counter[str] = Counter()
        self.columns = ""
        self.out_of: dict[str, str] = {}

    @classmethod
    @abstractmethod
    def looks_like(cls, content: Content) -> bool:
        """Whether the content is of this layout."""

    @abstractmethod
    def responses(self) -> Iterator[Response]:
        """The responses, in the file's order; AnnotationError names the file and row that cannot be read."""

    def objects(self, fields: str) -> Iterator[Row]:
        """The place and the values of each row of JSON, or of a table of the same fields; AnnotationError for a row
        that cannot be read. fields: the expected ones, for that message."""
        for where, row in self.table(None if self.content.format else "json")[1]:
            if not row:
                raise AnnotationError(f"{where}: expected an object with {fields}")
            yield where, row

    def table(self, format: str | None = None) -> tuple[Sequence[str], list[Row]]:
        """The header, and the place and the values of each row; errors as in `objects`."""
        if self.content.file is None:
            raise AnnotationError(f"{self.path} is a folder; the layout {self.name} reads a file")
        table = self.content.file.table(format)
        fault = next((row for row in table.rows if row.fault), None)
        if fault is not None:
            way_out = "; save the file as UTF-8" if fault.fault == NOT_UTF8 else ""
            raise AnnotationError(f"{self.path}, {fault.where}: {fault.fault}{way_out}")
        return table.header, [(f"{self.path}, {row.where}", row.values) for row in table.rows]

    def read(self) -> AnnotatedSet:
        """The set, without the responses and ratings that are missing, which are counted.

        AnnotationError for a score that is neither a number nor N/A, for a set without a response, and for half a
        surrogate pair, which no table can store.
        """
        rows = [row for response in self.responses() if (row := self._rated(response))]
        counts = {what: number for what, number in self.left_out.items() if number}
        files = tuple(self.files)
        guess = self.content.file.encoding if self.content.file else None
        result = AnnotatedSet(
            self.name, tuple(rows), counts, files, self.part, self.takes_mapping, guess, self.columns
        )
        if not rows:
            raise AnnotationError(f"{files[0]}: {result.summary}; there is nothing to compare with")
        for number, row in enumerate(rows, 1):
            texts = (row.dialogue_id, *row.context, row.response, row.reference, row.system, *row.ratings)
            try:
                "".join(text or "" for text in texts).encode()
            except UnicodeEncodeError:
                escape = "an escape such as \\ud800, half of a pair, which is no text"
                raise AnnotationError(
                    f"{files[0]}: response {number} holds {escape}; repair the file"
                ) from None
        return result

    def _count_references(self, written: object) -> None:
        """Count the references of a response beyond the first as left out."""
        self.left_out[_MORE_REFERENCES] += more_references(written)

    def _rated(self, response: Response) -> Annotated | None:
        """The response with its ratings as numbers; None if nobody rated it."""
        where, ratings = response.where, {}
        for criterion, written in response.scores.items():
            listed = [written] if is_rating(written) or _is_absent(written) else written
            if not isinstance(listed, Sequence) or isinstance(listed, str):
                raise AnnotationError(
                    f"{where}: ratings of {criterion!r} are {listed!r}, not a list of scores"
                )
            values = [_rating(where, criterion, self._points(where, criterion, value)) for value in listed]
            self.left_out[NOT_APPLICABLE] += values.count(None) if values else 1
            raters = response.raters.get(criterion, range(len(values)))
            given = {rater: one for rater, one in zip(raters, values, strict=True) if one is not None}
            if given:
                ratings[criterion] = tuple(given.get(rater) for rater in range(max(given) + 1))
        self.left_out[UNRATED] += not ratings
        if not ratings:
            return None
        system = None if response.system is None else str(response.system)
        return Annotated(
            response.dialogue, response.context, response.text, response.reference, system, ratings
        )

    def _points(self, where: str, criterion: str, value: object) -> object:
        """n of a score that is written n/m, if n is at most m; any other value unchanged. AnnotationError for another m
        than that of the criterion's scores before."""
        found = _OUT_OF.fullmatch(value) if isinstance(value, str) else None
        if found is None or float(found[1]) > float(found[2]):
            return value
        most = self.out_of.setdefault(criterion, found[2])
        if float(most) != float(found[2]):
            raise AnnotationError(
                f"{where}: rating {value!r} of {criterion!r} is out of {found[2]}, those before are out of {most}; "
                "write all of them on one scale"
            )
        return found[1]


def counted(number: int, what: str) -> str:
    """`1 rating given as N/A`, `2 ratings given as N/A`: the plural is that of the first word."""
    noun, blank, rest = what.partition(" ")
    return f"{number:,} {noun}{'' if number == 1 else 's'}{blank}{rest}"


def more_references(written: object) -> int:
    """How many references follow the first, which alone is read, where a row has a list of them."""
    return max(0, len(written) - 1) if isinstance(written, list | tuple) else 0


def turns(context: str, separator: str = "\n") -> tuple[str, ...]:
    """The turns of a context that is written as one text, oldest first, stripped, without empty ones."""
    return tuple(turn.strip() for turn in context.split(separator) if turn.strip())


def dataset_name(path: Path) -> str:
    """Name of an annotated set: of its file without `_eval.json` or another layout's suffix, or of its folder."""
    suffixes = r"(\.(jsonl?|csv|tsv|txt|parquet))?(\.(gz|zst|bz2))?\Z"
    return re.sub(suffixes, "", path.name, count=1, flags=re.IGNORECASE).removesuffix("_eval")


def text_of(where: str, row: Mapping[str, Any], name: str) -> str:
    """The value of a field that must be text; AnnotationError if it is missing or anything else."""
    if name not in row:
        raise AnnotationError(f"{where}: no {name}")
    if not isinstance(row[name], str):
        raise AnnotationError(f"{where}: {name} is not text")
    return str(row[name])


def is_rating(value: object) -> TypeGuard[int | float]:
    """Whether the value is a finite number from -LARGEST_RATING to LARGEST_RATING, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_RATING


def _is_absent(value: object) -> bool:
    """Whether a value says that a rater gave no score."""
    if isinstance(value, str):
        return _ABSENT.fullmatch(value.strip()) is not None
    return value is None or (isinstance(value, float) and isnan(value))


def _rating(where: str, criterion: str, value: object) -> float | None:
    """A rater's score; None for N/A; AnnotationError for anything else that is no rating."""
    if _is_absent(value):
        return None
    score: object = value
    if isinstance(value, str):
        labelled = _LABELLED.fullmatch(value)
        with suppress(ValueError):
            score = float(labelled[1] if labelled else value)
    if not is_rating(score):
        decimal = isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value)
        comma = ", or say --map decimal=, if commas stand before decimals" if decimal else ""
        raise AnnotationError(
            f"{where}: rating {short_repr(value)} of {criterion!r} is neither a number up to {LARGEST_RATING:g} nor "
            f"N/A; write it as a number, such as 4, '4 - good' or '4/5'{comma}"
        )
    return float(score)
