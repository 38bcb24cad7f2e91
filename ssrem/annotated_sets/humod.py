"""HUMOD as published (Merdivan et al., Applied Sciences 2020): tab-separated, one rater's score a row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ssrem.agreement.annotated import Annotated, file_text
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set, ratings
from ssrem.errors import AnnotationError
from ssrem.readers.layout import normalise

LAYOUT = "humod"
CRITERION = "relevance"
GROUND_TRUTH, RANDOM = "ground-truth", "random"

_ID, _CONTEXT, _REPLY, _LABEL, _SCORE = (
    *("dialogue_id", "dialogue_context", "reply"),
    *("label", "user_relevance_score"),
)
_SPEAKER = re.compile(r"\bSpeaker\s*\d+\s*:\s*")


@dataclass
class _Rated:
    where: str
    context: tuple[str, ...]
    reply: str
    label: str
    scores: list[str] = field(default_factory=list)


def looks_like(header: str) -> bool:
    """Whether this is the first line of such a file."""
    return {_ID, _CONTEXT, _REPLY, _LABEL, _SCORE} <= set(_names(header))


def read(path: Path) -> AnnotatedSet:
    """A dialogue id is a context with a reply; its rows are its raters. Label 0 is the film's own reply, label 1 one
    drawn at random, whose reference is the film's. What raters would have replied themselves is not read.

    AnnotationError names file and line.
    """
    left_out: Counter[str] = Counter()
    rated: dict[str, _Rated] = {}
    for where, cells in _rows(path):
        here = _Rated(where, _turns(cells[_CONTEXT]), _reply(cells[_REPLY]), cells[_LABEL])
        one = rated.setdefault(cells[_ID], here)
        if (one.label, _letters(one)) != (here.label, _letters(here)):
            raise AnnotationError(f"{where}: another context or reply than at {one.where}, of the same id")
        one.scores.append(cells[_SCORE])
    true = {one.context: one.reply for one in rated.values() if one.label == "0"}
    rows = []
    for dialogue, one in rated.items():
        scores = ratings(one.where, {CRITERION: one.scores}, left_out)
        if scores is not None:
            system = GROUND_TRUTH if one.label == "0" else RANDOM
            rows.append(Annotated(dialogue, one.context, one.reply, true.get(one.context), system, scores))
    return annotated_set(LAYOUT, rows, left_out, [path])


def _names(header: str) -> list[str]:
    return [normalise(name) for name in header.split("\t")]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Cells by name. The columns up to the score come first: a tab that is missing behind them does no harm, and a
    few published rows miss one."""
    header, *lines = file_text(path).split("\n")
    names = _names(header)
    if not looks_like(header):
        wanted = ", ".join((_ID, _CONTEXT, _REPLY, _LABEL, _SCORE))
        raise AnnotationError(f"{path}, line 1: expected the tab-separated columns {wanted}")
    needed = max(names.index(name) for name in (_ID, _CONTEXT, _REPLY, _LABEL, _SCORE)) + 1
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        cells = line.rstrip("\r").split("\t")
        if not needed <= len(cells) <= len(names):
            raise AnnotationError(
                f"{where}: {len(cells)} cells between tabs, the header has {len(names)}; fetch the file again"
            )
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        if row[_LABEL] not in ("0", "1"):
            raise AnnotationError(
                f"{where}: the label is {row[_LABEL]!r}, not 0 (the film's reply) or 1 (random)"
            )
        yield where, row


def _turns(context: str) -> tuple[str, ...]:
    return tuple(turn.strip() for turn in _SPEAKER.split(context) if turn.strip())


def _reply(text: str) -> str:
    return _SPEAKER.sub("", text, count=1).strip()


def _letters(one: _Rated) -> str:
    """Context and reply without signs: raters' rows differ in a few."""
    return re.sub(r"\W+", "", "".join((*one.context, one.reply)))
