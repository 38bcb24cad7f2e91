"""USR as published (Mehri and Eskenazi, ACL 2020): a context, a fact and the rated responses of every system a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import GROUND_TRUTH_SYSTEMS, Annotated, json_rows
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set, objects, ratings, text_of, turns
from ssrem.errors import AnnotationError

LAYOUT = "usr"


def looks_like(row: Mapping[str, Any]) -> bool:
    """Whether this is the first row of such a file."""
    return "context" in row and isinstance(row.get("responses"), list)


def read(path: Path) -> AnnotatedSet:
    """The reference of every response is the text of the system that is the ground truth, where the row has one.

    The fact that a response was to use is not part of a context. AnnotationError names file, row and response.
    """
    left_out: Counter[str] = Counter()
    rows: list[Annotated] = []
    for number, (where, row) in enumerate(objects(path, json_rows(path), "context and responses")):
        context = turns(text_of(where, row, "context"))
        found = list(_responses(where, row))
        true = next((text for _, text, system, _ in found if system.lower() in GROUND_TRUTH_SYSTEMS), None)
        for there, text, system, given in found:
            scores = ratings(there, given, left_out)
            if scores is not None:
                rows.append(Annotated(str(number), context, text, true, system, scores))
    return annotated_set(LAYOUT, rows, left_out, [path])


def _responses(where: str, row: Mapping[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    listed = row.get("responses")
    if not isinstance(listed, list):
        raise AnnotationError(f"{where}: no list of responses")
    for number, one in enumerate(listed, 1):
        there = f"{where}, response {number}"
        if not isinstance(one, dict):
            raise AnnotationError(f"{there}: expected an object with response, model and ratings")
        given = {name: value for name, value in one.items() if name not in ("response", "model")}
        yield there, text_of(there, one, "response").strip(), text_of(there, one, "model"), given
