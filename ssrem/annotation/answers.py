"""Raters' answers: files that the rating page saved, or spreadsheets that were filled in."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.annotation.items import Batch
from ssrem.annotation.page import ANSWERS_FORMAT
from ssrem.errors import AnnotationError
from ssrem.files import read_text


@dataclass(frozen=True)
class Answer:
    """A rater's score of an item, from 1 to the batch's scale."""

    rater: str
    item: str
    score: int


def read_answers(paths: Sequence[Path], batch: Batch) -> list[Answer]:
    """The answers in all files: JSON as saved by the page, or CSV with the columns rater, item and score.

    An empty score in a CSV file means that the item was not rated. AnnotationError, naming file and row, for a file of
    another batch, an unknown rater, an item that is not on the rater's sheet, a score off the scale, an item that a
    rater scored twice, a rater in two files, or no answer at all.
    """
    answers: dict[tuple[str, str], Answer] = {}
    file_of: dict[str, Path] = {}
    for path in paths:
        for where, of_batch, rater, item, score in _rows(path):
            answer = _checked(where, batch, of_batch, rater, item, score)
            if file_of.setdefault(answer.rater, path) is not path:
                raise AnnotationError(
                    f"{answer.rater} answers twice, in {file_of[answer.rater]} and in {path}; give one of them"
                )
            if answers.setdefault((answer.rater, answer.item), answer) is not answer:
                raise AnnotationError(f"{where}: {answer.rater} scores {answer.item} a second time; keep one")
    if not answers:
        raise AnnotationError(f"no answer in {', '.join(map(str, paths))}; nobody scored anything there")
    return list(answers.values())


def _rows(path: Path) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """(place, batch, rater, item, score) as written; batch is None if the file does not name it."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise AnnotationError(f"{path} does not exist; give the files that raters saved") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AnnotationError(f"{path} cannot be read as UTF-8 text ({reason})") from None
    yield from _page_rows(path, text) if text.lstrip().startswith(("{", "[")) else _table_rows(path, text)


def _page_rows(path: Path, text: str) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    try:
        saved = json.loads(text)
        if saved["format"] != ANSWERS_FORMAT:
            raise ValueError("of another format")
        rows = [(row["item"], row["score"]) for row in saved["answers"]]
        batch, rater = saved["batch"], saved["rater"]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise AnnotationError(
            f"{path} is not a file that the rating page saved; ask the rater for it again"
        ) from None
    for number, (item, score) in enumerate(rows, 1):
        yield f"{path}, answer {number}", batch, rater, item, score


def _table_rows(path: Path, text: str) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    head = text.split("\n", 1)[0]
    delimiter = ";" if head.count(";") > head.count(",") else ","
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval=""))
    except csv.Error as error:
        raise AnnotationError(f"{path} is not CSV ({error})") from None
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        if missing := [name for name in ("rater", "item", "score") if name not in row]:
            raise AnnotationError(f"{where}: no column {missing[0]}; expected rater, item and score")
        score = row["score"].strip()
        if not score:
            continue
        whole = re.fullmatch(r"([0-9]{1,3})(?:[.,]0+)?", score)  # spreadsheets may write 4 as 4.0
        yield where, row.get("batch"), row["rater"], row["item"], int(whole[1]) if whole else score


def _checked(where: str, batch: Batch, of_batch: Any, rater: Any, item: Any, score: Any) -> Answer:
    if of_batch is not None and of_batch != batch.id:
        raise AnnotationError(f"{where}: answers batch {of_batch}, not {batch.id}; give that one's folder")
    if not isinstance(rater, str) or rater not in batch.sheets:
        raise AnnotationError(f"{where}: no rater {rater!r}; the batch has {', '.join(batch.sheets)}")
    if item not in batch.sheets[rater]:
        raise AnnotationError(f"{where}: no item {item!r} on the sheet of {rater}")
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= batch.plan.scale:
        raise AnnotationError(
            f"{where}: {score!r} is not a score from 1 to {batch.plan.scale}; correct it, or leave it out"
        )
    return Answer(rater, item, score)
