"""What the readers of annotated sets share: what they return, and how a rating is read."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import Annotated
from ssrem.errors import AnnotationError

_ABSENT = re.compile(r"(?:n/?a\b.*|nan|none|null|-+|\?)?", re.IGNORECASE | re.DOTALL)
"""What stands where a rater gave no score: nothing, N/A with or without a reason, and what tables write for null."""

UNRATED = "response without any rating"
NOT_APPLICABLE = "rating given as N/A or left empty"


@dataclass(frozen=True)
class AnnotatedSet:
    """An annotated set as it was read.

    layout: how, a key of LAYOUTS. rows: the responses, in the file's order. left_out: what the layout holds and the
    rows cannot, to how often. files: every file that was read. part: which of the sets in it, where it holds several.
    """

    layout: str
    rows: tuple[Annotated, ...]
    left_out: Mapping[str, int]
    files: tuple[Path, ...]
    part: str | None = None

    @property
    def told(self) -> str:
        """One line: how it was read, what it holds, and what was left out."""
        systems = len({row.system for row in self.rows} - {None})
        held = counted(len(self.rows), "response") + (f" of {counted(systems, 'system')}" if systems else "")
        out = ", ".join(counted(number, what) for what, number in self.left_out.items() if number)
        layout = f"{self.layout}:{self.part}" if self.part else self.layout
        return f"read as {layout}: {held}" + (f"; left out: {out}" if out else "")


def counted(number: int, what: str) -> str:
    """`1 rating given as N/A`, `2 ratings given as N/A`: the plural is that of the first word."""
    noun, blank, rest = what.partition(" ")
    return f"{number:,} {noun}{'' if number == 1 else 's'}{blank}{rest}"


def rating(where: str, criterion: str, value: object) -> float | None:
    """A rater's score as a number; None where there is none (N/A). AnnotationError where it is anything else."""
    if value is None or (isinstance(value, str) and _ABSENT.fullmatch(value.strip())):
        return None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            score = float(value)
        except (ValueError, OverflowError):
            score = math.nan
        if math.isfinite(score):
            return score
    raise AnnotationError(f"{where}: rating {value!r} of {criterion!r} is neither a number nor N/A")


def ratings(
    where: str, given: Mapping[str, Any], left_out: Counter[str]
) -> Mapping[str, tuple[float, ...]] | None:
    """Criterion to the scores that there are; None where there is none at all. What is not there is counted."""
    found: dict[str, tuple[float, ...]] = {}
    for criterion, listed in given.items():
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise AnnotationError(f"{where}: ratings of {criterion!r} are {listed!r}, not a list of scores")
        scores = [rating(where, criterion, value) for value in listed]
        left_out[NOT_APPLICABLE] += scores.count(None)
        if kept := tuple(score for score in scores if score is not None):
            found[criterion] = kept
    left_out[UNRATED] += not found
    return found or None


def text_of(where: str, row: Mapping[str, Any], name: str) -> str:
    """A field that must be text; AnnotationError where it is not."""
    if name not in row:
        raise AnnotationError(f"{where}: no {name}")
    if not isinstance(row[name], str):
        raise AnnotationError(f"{where}: {name} is not text")
    return str(row[name])


def objects(path: Path, rows: Iterable[Any], what: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Each row with the words that say where it is; AnnotationError for one that is no object."""
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise AnnotationError(f"{where}: expected an object with {what}")
        yield where, row


def turns(context: str, separator: str = "\n") -> tuple[str, ...]:
    """The turns of a context written as one text, oldest first, without blanks around them."""
    return tuple(turn.strip() for turn in context.split(separator) if turn.strip())


def annotated_set(
    layout: str,
    rows: Sequence[Annotated],
    left_out: Counter[str],
    files: Sequence[Path],
    part: str | None = None,
) -> AnnotatedSet:
    """The set; AnnotationError where no row is left, or one holds what no table can: half a surrogate pair."""
    found = AnnotatedSet(layout, tuple(rows), {k: n for k, n in left_out.items() if n}, tuple(files), part)
    if not rows:
        raise AnnotationError(f"{files[0]}: {found.told}; there is nothing to compare with")
    for number, row in enumerate(rows, 1):
        texts = (row.dialogue_id, *row.context, row.response, row.reference, row.system, *row.ratings)
        try:
            "".join(text or "" for text in texts).encode()
        except UnicodeEncodeError:
            held = "an escape such as \\ud800, half of a pair, which is no text"
            raise AnnotationError(f"{files[0]}: response {number} holds {held}; repair the file") from None
    return found
