"""What raters get, a page that works offline or a CSV sheet for each rater, and the answers that they hand in.

Neither page nor sheet reveals systems or attention checks.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ssrem.annotation.batch import ON_TOPIC, Batch
from ssrem.errors import AnnotationError
from ssrem.readers.table_rows import TableFile
from ssrem.report.text import no_formula

ANSWERS_FORMAT = "ssrem-answers-1"
COLUMNS = ("batch", "rater", "item", "conversation", "response", "score")


def render(batch: Batch) -> str:
    """The batch as a self-contained HTML document; equal batches give equal text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ssrem.annotation", "."), autoescape=True, undefined=StrictUndefined
    )
    script = _resource("page.js")
    data = json.dumps(raters_view(batch), ensure_ascii=False, separators=(",", ":"))
    return environment.get_template("page.html").render(
        plan=batch.plan,
        style=_resource("page.css"),
        script=script,
        # The content security policy allows this script only, and no network access.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=data.replace("<", "\\u003c"),  # no text can end the script element
    )


def raters_view(batch: Batch) -> dict[str, Any]:
    """The part of the batch that raters may see."""
    return {
        "format": ANSWERS_FORMAT,
        "batch": batch.id,
        "scale": batch.plan.scale,
        "criteria": list(batch.plan.questions),
        "items": {
            item.id: {
                "turns": item.context.turns,
                "responder": item.context.responder,
                "response": item.response,
            }
            for item in batch.items
        },
        "sheets": batch.sheets,
    }


def as_csv(batch: Batch, rater: str) -> str:
    """A rater's sheet; the rater fills in its last column, the score, or the last two if there is a second question."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    more = list(batch.plan.questions)[1:]
    writer.writerow([*COLUMNS, *more])
    items = batch.by_id
    for one in batch.sheets[rater]:
        item = items[one]
        conversation = "\n".join(f"{seat}: {text}" for seat, text in item.context.turns)
        writer.writerow(
            [batch.id, rater, one, conversation, no_formula(item.response), "", *([""] * len(more))]
        )
    return text.getvalue()


def as_jsonl(batch: Batch) -> str:
    """The items as JSON, one per line, without what raters must not know."""
    return _json_lines(
        {"item": item.id, "context": item.context.texts, "response": item.response} for item in batch.items
    )


def contexts_jsonl(batch: Batch) -> str:
    """The distinct contexts as JSON, one per line; a system that takes part in a batch of this seed answers each."""
    contexts = {item.context.response_id: item.context for item in batch.items}
    return _json_lines({"context": contexts[one].texts} for one in sorted(contexts))


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _resource(name: str) -> str:
    return files("ssrem.annotation").joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Answer:
    """A rater's score of an item, from 1 to the batch's scale. on_topic: the score for the second question, None if it
    was not asked or answered."""

    rater: str
    item: str
    score: int
    on_topic: int | None = None


def read_answers(paths: Sequence[Path], batch: Batch) -> list[Answer]:
    """The answers in all files: JSON as saved by the page, or CSV with the columns rater, item, score and, if
    asked, on-topic.

    An empty score in a CSV file means that the item was not rated. AnnotationError, naming file and row, for a file of
    another batch, an unknown rater, an item that is not on the rater's sheet, a score off the scale, the second
    question's score alone, an item that a rater scored twice, a rater in two files, or no answer at all.
    """
    answers: dict[tuple[str, str], Answer] = {}
    file_of: dict[str, Path] = {}
    for path in paths:
        for where, of_batch, rater, item, *scores in _rows(path):
            answer = _checked(where, batch, of_batch, rater, item, *scores)
            if file_of.setdefault(answer.rater, path) is not path:
                raise AnnotationError(
                    f"{answer.rater} answers twice, in {file_of[answer.rater]} and in {path}; give one of them"
                )
            if answers.setdefault((answer.rater, answer.item), answer) is not answer:
                raise AnnotationError(f"{where}: {answer.rater} scores {answer.item} a second time; keep one")
    if not answers:
        raise AnnotationError(f"no answer in {', '.join(map(str, paths))}; nobody scored anything there")
    return list(answers.values())


def _rows(path: Path) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """Yield (place, batch, rater, item, score, on-topic) as written; batch is None if the file does not name it."""
    file = TableFile(path)
    if file.format in ("json", "jsonl"):
        yield from _page_rows(path, file.text)
        return
    for row in file.table("tsv" if file.format == "tsv" else "csv").rows:
        where = f"{path}, {row.where}"
        if row.fault:
            raise AnnotationError(f"{where}: {row.fault}")
        if missing := [name for name in ("rater", "item", "score") if name not in row.values]:
            raise AnnotationError(f"{where}: no column {missing[0]}; expected rater, item and score")
        score, on_topic = (_whole(row.values.get(name, "")) for name in ("score", ON_TOPIC))
        batch, rater, item = (row.values.get(name, "").strip() for name in ("batch", "rater", "item"))
        if score is not None:
            yield where, batch or None, rater, item, score, on_topic
        elif on_topic is not None:
            raise AnnotationError(
                f"{where}: {ON_TOPIC} is answered and score is not; fill in both, or neither"
            )


def _page_rows(path: Path, text: str) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    try:
        saved = json.loads(text)
        if saved["format"] != ANSWERS_FORMAT:
            raise ValueError("of another format")
        rows = [(row["item"], row["score"], row.get(ON_TOPIC)) for row in saved["answers"]]
        batch, rater = saved["batch"], saved["rater"]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise AnnotationError(
            f"{path} is not a file that the rating page saved; ask the rater for it again"
        ) from None
    for number, row in enumerate(rows, 1):
        yield f"{path}, answer {number}", batch, rater, *row


def _whole(cell: str) -> int | str | None:
    """The whole number in a cell, which spreadsheets may write as 4.0, else the cell's text; None if it is empty."""
    text = cell.strip()
    whole = re.fullmatch(r"([0-9]{1,3})(?:[.,]0+)?", text)
    return int(whole[1]) if whole else text or None


def _checked(
    where: str, batch: Batch, of_batch: Any, rater: Any, item: Any, score: Any, on_topic: Any
) -> Answer:
    """The answer in a row, as `_rows` yields it; AnnotationError if it does not fit the batch."""
    if of_batch is not None and of_batch != batch.id:
        raise AnnotationError(f"{where}: answers batch {of_batch}, not {batch.id}; give that one's folder")
    if not isinstance(rater, str) or rater not in batch.sheets:
        raise AnnotationError(f"{where}: no rater {rater!r}; the batch has {', '.join(batch.sheets)}")
    if item not in batch.sheets[rater]:
        raise AnnotationError(f"{where}: no item {item!r} on the sheet of {rater}")
    for value in (score, on_topic) if on_topic is not None else (score,):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= batch.plan.scale:
            raise AnnotationError(
                f"{where}: {value!r} is not a score from 1 to {batch.plan.scale}; correct it, or leave it out"
            )
    if on_topic is not None and not batch.plan.on_topic:
        raise AnnotationError(f"{where}: the batch does not ask whether responses are {ON_TOPIC}")
    return Answer(rater, item, score, on_topic)
