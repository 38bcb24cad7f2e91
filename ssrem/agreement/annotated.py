"""Annotated sets: responses with human scores, one JSON list a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.errors import AnnotationError
from ssrem.samples import Sample

GROUND_TRUTH_SYSTEMS = frozenset(
    {"ground-truth", "ground_truth", "groundtruth", "gold", "reference", "original ground truth"}
)
"""Names under which annotated sets list the true response as a system."""


@dataclass(frozen=True)
class Annotated:
    """A response that people scored. `ratings`: criterion to the raters' scores, raw, in the file's order."""

    dialogue_id: str
    context: tuple[str, ...]
    response: str
    reference: str | None
    system: str | None
    ratings: Mapping[str, tuple[float, ...]]

    @property
    def ground_truth(self) -> bool:
        """Whether this is the true response: by its system's name, or where no name is known by equal text."""
        if self.system is not None:
            return self.system.lower() in GROUND_TRUTH_SYSTEMS
        return self.reference is not None and self.reference.strip().lower() == self.response.strip().lower()

    @property
    def sample(self) -> Sample:
        """What an evaluator sees of it."""
        return Sample(self.context, self.response, self.reference)


def dataset_name(path: Path) -> str:
    """Name of an annotated set: its file without `_eval.json`, or without the suffix of another layout; its folder."""
    return re.sub(r"\.(?:jsonl?|csv|tsv|txt)\Z", "", path.name, flags=re.IGNORECASE).removesuffix("_eval")


def read_annotated(path: Path) -> list[Annotated]:
    """Read a file `[{"dialogue_id", "context", "response", "annotations", "model"?, "reference"?}, …]`.

    `context` is a list of turns or one string of turns joined by line breaks, oldest first; `annotations` maps a
    criterion to a list of scores, one a rater. Raises AnnotationError, naming file, row (from 1) and field.
    """
    rows = json_rows(path)
    found = [_annotated(path, number, row, rated=True) for number, row in enumerate(rows, 1)]
    if not found:
        raise AnnotationError(f"{path} is an empty list; there is nothing to compare with")
    return found


def read_samples(path: Path) -> list[Sample]:
    """The same file, or one without `annotations`, as samples to score; also one JSON object a line."""
    return [
        _annotated(path, number, row, rated=False).sample for number, row in enumerate(json_rows(path), 1)
    ]


def file_text(path: Path) -> str:
    """The content of a file of responses; AnnotationError where there is none, or it is not UTF-8."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise AnnotationError(f"{path} does not exist; give the path of a file of responses") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AnnotationError(f"{path} cannot be read as UTF-8 text ({error})") from None
    if not text.strip():
        raise AnnotationError(f"{path} is empty; expected a JSON list of responses")
    return text


def json_rows(path: Path) -> list[Any]:
    """The rows of a JSON list, or of one JSON object a line; AnnotationError, naming the line, where it is neither."""
    text = file_text(path)
    if text.lstrip().startswith("{"):
        lines = enumerate(text.split("\n"), 1)
        return [_parsed(path, line, number) for number, line in lines if line.strip()]
    rows = _parsed(path, text, 1)
    if not isinstance(rows, list):
        raise AnnotationError(f"{path}: expected a JSON list of responses")
    return rows


def _parsed(path: Path, text: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise AnnotationError(f"{path}, line {line}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
        raise AnnotationError(f"{path}: not JSON that can be read; expected a list of responses") from None


def _annotated(path: Path, number: int, row: Any, *, rated: bool) -> Annotated:
    where = f"{path}, row {number}"
    if not isinstance(row, dict):
        raise AnnotationError(f"{where}: expected an object with context, response and annotations")
    for name in ("context", "response"):
        if name not in row:
            raise AnnotationError(f"{where}: no {name}")
    context = row["context"]
    turns = context.split("\n") if isinstance(context, str) else context
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise AnnotationError(f"{where}: context is neither text nor a list of turns")
    if not isinstance(row["response"], str):
        raise AnnotationError(f"{where}: response is not text")
    reference = row.get("reference")
    if isinstance(reference, list):
        reference = reference[0] if reference else None
    if reference is not None and not isinstance(reference, str):
        raise AnnotationError(f"{where}: reference is not text")
    system = row.get("model", row.get("model_name", row.get("system")))
    return Annotated(
        str(row.get("dialogue_id", number - 1)),
        tuple(turn for turn in turns if turn.strip()),
        row["response"],
        reference,
        None if system is None else str(system),
        _ratings(where, row.get("annotations")) if rated else {},
    )


def _ratings(where: str, annotations: Any) -> dict[str, tuple[float, ...]]:
    if not isinstance(annotations, dict) or not annotations:
        raise AnnotationError(f"{where}: no ratings; expected annotations such as {{'overall': [4, 5, 3]}}")
    ratings = {}
    for criterion, scores in annotations.items():
        listed = scores if isinstance(scores, list) else [scores]
        if not listed:
            raise AnnotationError(f"{where}: no rating for {criterion!r}")
        for rater, score in enumerate(listed, 1):
            if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < math.inf:
                raise AnnotationError(f"{where}: rating {rater} of {criterion!r} is {score!r}, not a number")
        ratings[criterion] = tuple(float(score) for score in listed)
    return ratings
