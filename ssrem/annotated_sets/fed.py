"""FED as published (Mehri and Eskenazi, SIGDIAL 2020): rated responses, and whole dialogues rated without one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import Annotated, json_rows
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set, objects, ratings, text_of
from ssrem.errors import AnnotationError

LAYOUT = "fed"
WHOLE_DIALOGUE = "row about a whole dialogue, without a response"

_SPEAKER = re.compile(r"(?:User|System):\s*")


def looks_like(row: Mapping[str, Any]) -> bool:
    """Whether this is the first row of such a file: speakers are written into its turns."""
    context = row.get("context")
    return isinstance(context, str) and "annotations" in row and _SPEAKER.match(context) is not None


def read(path: Path) -> AnnotatedSet:
    """Speakers (`User:`, `System:`) are taken off the turns. Rows without a response are counted and left out, as are
    ratings that say N/A. AnnotationError names file and row."""
    left_out: Counter[str] = Counter()
    rows = []
    for number, (where, row) in enumerate(objects(path, json_rows(path), "context and annotations")):
        context = _turns(text_of(where, row, "context"))
        given = row.get("annotations")
        if not isinstance(given, dict) or not given:
            raise AnnotationError(f"{where}: no annotations")
        if row.get("response") is None:
            left_out[WHOLE_DIALOGUE] += 1
            continue
        response = _SPEAKER.sub("", text_of(where, row, "response"), count=1).strip()
        scores = ratings(where, given, left_out)
        system = row.get("system")
        if scores is not None:
            named = None if system is None else str(system)
            rows.append(Annotated(str(number), context, response, None, named, scores))
    return annotated_set(LAYOUT, rows, left_out, [path])


def _turns(context: str) -> tuple[str, ...]:
    """A line that names no speaker goes on with the turn before it."""
    found: list[str] = []
    for line in context.split("\n"):
        if (speaker := _SPEAKER.match(line)) or not found:
            found.append(line[speaker.end() :] if speaker else line)
        else:
            found[-1] += f"\n{line}"
    return tuple(turn.strip() for turn in found if turn.strip())
