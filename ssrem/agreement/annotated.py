"""Annotated sets: responses with human scores, one JSON list a file, and their scores as evaluators learn from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from ssrem.errors import AnnotationError, DumpError, one_line, short_repr
from ssrem.files import LARGEST_TEXT, check_regular
from ssrem.readers.fields import turn_text
from ssrem.readers.files.encodings import declare_guess
from ssrem.readers.files.streams import UTF8_BOM, chunks, is_utf8
from ssrem.samples import Floats, Sample

GROUND_TRUTH_SYSTEMS = frozenset(
    {
        "ground truth",
        "ground-truth",
        "ground_truth",
        "groundtruth",
        "gold",
        "reference",
        "original ground truth",
    }
)
"""Names under which annotated sets list the true response as a system."""

LARGEST_RATING = 1e9
"""Ratings beyond it, of either sign, are refused: their squares would overflow, or drown all other ratings."""


@dataclass(frozen=True)
class Annotated:
    """A response that people scored. `ratings`: criterion to each rater's score as given, None for a rater who gave
    none."""

    dialogue_id: str
    context: tuple[str, ...]
    response: str
    reference: str | None
    system: str | None
    ratings: Mapping[str, tuple[float | None, ...]]

    def scores(self, criterion: str) -> list[float]:
        """The scores that were given by a criterion."""
        return [score for score in self.ratings[criterion] if score is not None]

    @property
    def ground_truth(self) -> bool:
        """Whether this is the true response: by its system's name, or where no name is known by equal text."""
        if self.system is not None:
            return self.system.lower() in GROUND_TRUTH_SYSTEMS
        return self.reference is not None and self.reference.strip().lower() == self.response.strip().lower()

    @property
    def sample(self) -> Sample:
        """Its context, response and reference, which are what an evaluator gets."""
        return Sample(self.context, self.response, self.reference)


def dataset_name(path: Path) -> str:
    """Name of an annotated set: of its file without `_eval.json` or another layout's suffix, or of its folder."""
    suffixes = r"(\.(jsonl?|csv|tsv|txt|parquet))?(\.(gz|zst|bz2))?\Z"
    return re.sub(suffixes, "", path.name, count=1, flags=re.IGNORECASE).removesuffix("_eval")


def read_annotated(path: Path) -> list[Annotated]:
    """Read a file `[{"dialogue_id", "context", "response", "annotations", "model"?, "reference"?}, …]`.

    `context` is a list of turns or one string of turns joined by line breaks, oldest first; `annotations` maps a
    criterion to a list of scores, one a rater. Raises AnnotationError, naming file, row (from 1) and field.
    """
    rows = []
    for number, (where, row) in enumerate(eval_objects(path)):
        response, annotations = unrated(where, str(number), row)
        rows.append(replace(response, ratings=_ratings(where, annotations)))
    if not rows:
        raise AnnotationError(f"{path} is an empty list; there is nothing to compare with")
    return rows


def eval_objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Place and content of each row of such a file."""
    return json_objects(path, "context, response and annotations")


def unrated(where: str, dialogue: str, row: Mapping[str, Any]) -> tuple[Annotated, Mapping[str, Any]]:
    """The response of such a row without ratings, and its `annotations` as written. dialogue: the id of a row without
    one."""
    response, annotations = _annotated(where, dialogue, row), row.get("annotations")
    if not isinstance(annotations, dict):
        raise AnnotationError(
            f"{where}: no ratings; expected annotations such as {{'overall': [4, 5, 3]}}; "
            "--layout jsonl reads rows with a score of their own"
        )
    return response, annotations


def read_samples(path: Path) -> list[Sample]:
    """Samples to score, of such a file or one without `annotations`; also of one JSON object a line."""
    return [_annotated(where, "", row).sample for where, row in eval_objects(path)]


@dataclass(frozen=True)
class Labels:
    """Human scores of one criterion. pairs: samples with the mean of their raters' scores.

    scale: the lowest and highest score that a rater gave. criterion: what the raters scored. excluded: ground-truth
    rows that were left out.
    """

    pairs: tuple[tuple[Sample, float], ...]
    scale: tuple[float, float]
    criterion: str
    excluded: int

    @property
    def samples(self) -> list[Sample]:
        """The samples, in order."""
        return [sample for sample, _ in self.pairs]

    @property
    def human(self) -> Floats:
        """Their human scores, float64 (n,)."""
        return np.array([score for _, score in self.pairs], dtype=np.float64)


def criterion_of(annotated: Sequence[Annotated], criterion: str | None = None) -> str:
    """`criterion`, by default 'overall', in any case, or the only one of the set; AnnotationError where the set has no
    such criterion, or several and none is 'overall'."""
    names = sorted({name for row in annotated for name in row.ratings})
    overall = next((name for name in reversed(names) if name.lower() == "overall"), "")
    chosen = criterion or overall or (names[0] if len(names) == 1 else "")
    if chosen not in names:
        problem = f"no criterion {chosen!r}" if chosen else "several criteria and none called 'overall'"
        raise AnnotationError(f"the annotated set has {problem}; name one of {', '.join(names)}")
    return chosen


def labels_of(annotated: Sequence[Annotated], criterion: str | None = None) -> Labels:
    """Human scores of the criterion that `criterion_of` chooses, without ground truth.

    AnnotationError as there, and where the mean scores of all responses are equal.
    """
    chosen = criterion_of(annotated, criterion)
    rated = [row for row in annotated if chosen in row.ratings]
    compared = [row for row in rated if not row.ground_truth]
    scores = [score for row in rated for score in row.scores(chosen)]
    pairs = tuple((row.sample, float(np.mean(row.scores(chosen)))) for row in compared)
    if len({mean for _, mean in pairs}) < 2:
        raise AnnotationError(
            f"{chosen}: no two of the labelled responses ({len(compared)}) differ in their mean score; label more "
            "responses, or name another criterion"
        )
    return Labels(pairs, (min(scores), max(scores)), chosen, len(rated) - len(compared))


def file_text(path: Path) -> str:
    """The content of a file of responses, plain or compressed, with line breaks as in Python; AnnotationError if it is
    empty or cannot be read as text: in UTF-8, in UTF-16 with a byte order mark, or as its bytes suggest."""
    content = file_content(path, str(path))
    if not is_utf8(content) and declare_guess(path):
        content = file_content(path, str(path))
    try:
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeError as error:
        raise AnnotationError(f"{path} cannot be read as UTF-8 text ({error}); save it as UTF-8") from None
    if not text.strip():
        raise AnnotationError(f"{path} is empty; give a file of responses")
    return text


def file_content(path: Path, name: str) -> bytes:
    """The decompressed content of a file of responses, as UTF-8 where its encoding is known (see `chunks`), without a
    byte order mark; AnnotationError if it is no file, cannot be read, or is larger than LARGEST_TEXT.

    name: what messages call it.
    """
    pieces, size = [], 0
    try:
        check_regular(path)
        if not path.exists():
            raise AnnotationError(f"{name} does not exist; give the path of a file of responses")
        if path.stat().st_size > LARGEST_TEXT:
            raise AnnotationError(f"{name} is larger than {LARGEST_TEXT >> 20:,} MB; split it")
        for piece in chunks(path, 1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_TEXT:
                raise AnnotationError(f"{name} unpacks to more than {LARGEST_TEXT >> 20:,} MB; split it")
    except OSError as error:
        raise AnnotationError(f"{name} cannot be read ({error.strerror or one_line(error)})") from None
    except DumpError as error:
        raise AnnotationError(str(error)) from None
    return b"".join(pieces).removeprefix(UTF8_BOM)


def parsed_rows(path: Path) -> tuple[list[Any], bool]:
    """The rows of a JSON list, of an object that holds one, or of one JSON object a line, and whether it is a list;
    AnnotationError, naming the line, where it is none of them."""
    text = file_text(path)
    if text.lstrip().startswith("{"):
        if rows_and_kind := one_value(text):
            return rows_and_kind
        lines = enumerate(text.split("\n"), 1)
        return [_parsed(path, line, number) for number, line in lines if line.strip()], False
    rows = _parsed(path, text, 1)
    if not isinstance(rows, list):
        raise AnnotationError(f"{path}: expected a JSON list of responses")
    return rows, True


def one_value(text: str) -> tuple[list[Any], bool] | None:
    """The rows of one JSON object that is not one of several lines, and whether it holds them as a list: the only list
    of objects in it, such as `{"data": [{…}, …]}`, or else itself."""
    first, _, others = text.strip().partition("\n")
    if others:
        with suppress(ValueError, RecursionError):
            json.loads(first)
            return None  # an object a line
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        lists = [rows for rows in value.values() if isinstance(rows, list) and rows]
        lists = [rows for rows in lists if isinstance(rows[0], dict)]
        is_row = len(lists) != 1 or {"context", "response"} & value.keys()
        return ([value], False) if is_row else (lists[0], True)
    return None


def json_objects(path: Path, fields: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row of a JSON file with its place, for messages; AnnotationError for a row that is not an object.

    fields: the expected ones, for that message.
    """
    for number, row in enumerate(parsed_rows(path)[0], 1):
        where = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise AnnotationError(f"{where}: expected an object with {fields}")
        yield where, row


def text_of(where: str, row: Mapping[str, Any], name: str) -> str:
    """The value of a field that must be text; AnnotationError if it is missing or anything else."""
    if name not in row:
        raise AnnotationError(f"{where}: no {name}")
    if not isinstance(row[name], str):
        raise AnnotationError(f"{where}: {name} is not text")
    return str(row[name])


def _parsed(path: Path, text: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise AnnotationError(f"{path}, line {line}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
        raise AnnotationError(f"{path}: not JSON that can be read; expected a list of responses") from None


def _annotated(where: str, dialogue: str, row: Mapping[str, Any]) -> Annotated:
    """A row without its ratings. dialogue: the id of a row without one."""
    if "context" not in row:
        keys = ", ".join(list(row)[:20])
        raise AnnotationError(
            f"{where}: no context; the keys are {keys}; --layout jsonl takes --map context=KEY and others"
        )
    context = row["context"]
    turns = context.split("\n") if isinstance(context, str) else context
    turns = [turn_text(turn) for turn in turns] if isinstance(turns, list) else None
    if turns is None or not all(isinstance(turn, str) for turn in turns):
        raise AnnotationError(f"{where}: context is neither text nor a list of turns")
    response, reference = text_of(where, row, "response"), row.get("reference")
    if isinstance(reference, list):
        reference = reference[0] if reference else None
    if reference is not None and not isinstance(reference, str):
        raise AnnotationError(f"{where}: reference is not text")
    system = row.get("model", row.get("model_name", row.get("system")))
    return Annotated(
        str(row.get("dialogue_id", dialogue)),
        tuple(turn for turn in turns if turn.strip()),
        response,
        reference,
        None if system is None else str(system),
        {},
    )


def is_rating(value: object) -> TypeGuard[int | float]:
    """Whether the value is a finite number from -LARGEST_RATING to LARGEST_RATING, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_RATING


def _ratings(where: str, annotations: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    if not annotations:
        raise AnnotationError(f"{where}: no ratings")
    ratings = {}
    for criterion, scores in annotations.items():
        listed = scores if isinstance(scores, list) else [scores]
        if not listed:
            raise AnnotationError(f"{where}: no rating for {criterion!r}")
        for rater, score in enumerate(listed, 1):
            if not is_rating(score):
                raise AnnotationError(
                    f"{where}: rating {rater} of {criterion!r} is {short_repr(score)}, not a number up to "
                    f"{LARGEST_RATING:g}; leave it out, or give a number"
                )
        ratings[criterion] = tuple(float(score) for score in listed)
    return ratings
