"""Layouts of tables (CSV, TSV, Parquet, JSON, Label Studio's exports): a row is a response, or one rater's score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssrem.annotated_sets.base import Layout, Place, Row, Source, each_rater, flat
from ssrem.annotated_sets.columns import WORDS, Columns, columns_of_messages, ends_with_answer
from ssrem.errors import AnnotationError
from ssrem.readers.fields import ALIASES, OF_ORDER, falls, normalise, turn_text
from ssrem.readers.json_values import opened
from ssrem.readers.times import Times

BEFORE = "the messages before"
"""Name of the column that is added for the contexts if rows are messages."""
SKIPPED = "task that an annotator skipped"
NO_RATING = "answer without a rating"

_LABEL_STUDIO = {"dialogue": "task", "criterion": "from_name", "rater": "completed_by", "score": "value"}
_OF_DATA = {**ALIASES, "context": (*ALIASES["context"], "dialogue", "dialog", "conversation")}


def _mapped(
    source: Source,
    header: Sequence[str],
    rows: Sequence[Place],
    mapping: Mapping[str, str] | None,
    aliases: Mapping[str, Sequence[str]] = ALIASES,
) -> Iterator[Row]:
    """Yield the rows with their values by field; columns are found by `--map` or by well-known names (`Columns`)."""
    said = not mapping or {"context", "response"}.isdisjoint(mapping)
    message = columns_of_messages(header) if said else None
    if message:
        header, rows = [*header, BEFORE], list(_with_contexts(rows, *message))
        mapping = {"context": BEFORE, "response": message[1], **(mapping or {})}
    cells = [row for _, row in rows]
    columns = Columns.of(source.path, header, cells, mapping, aliases)
    source.columns, source.scores = columns.told, {} if "criterion" in columns.fields else columns.scores
    if message and (column := _disordered(header, cells, message[0])):
        source.columns += (
            f"; the order of the file, in which contexts are read, is not that of {column!r}: sort it"
        )
    for number, (where, row) in enumerate(rows):
        values, scores = columns.values(row), columns.cells(row)
        blank = values["response"] is None or not str(values["response"]).strip()
        for name in ("rater", "criterion"):
            if name in values and values[name] in (None, "") and not blank:
                raise AnnotationError(f"{where}: no {name} in the column {columns.fields[name][0]!r}")
        if "criterion" in values:
            (written,), criteria = scores.values(), opened(values["criterion"])
            if not isinstance(criteria, list):
                scores = {str(criteria): written}
            elif len(criteria) == len(several := list(flat(written))):
                scores = {str(name): [one] for name, one in zip(criteria, several, strict=True)}
            else:
                raise AnnotationError(f"{where}: {len(criteria)} criteria, but {len(several)} scores")
        long = columns.unnamed_raters or "rater" in values or "criterion" in values
        model, reference, dialogue = (values.get(name) for name in ("model", "reference", "dialogue"))
        for rater, given in each_rater(where, values.get("rater"), scores):
            texts = values["context"], values["response"]
            yield Row(where, *texts, given, model, reference, dialogue, rater, long, number)


def _disordered(header: Sequence[str], rows: Sequence[Mapping[str, Any]], dialogue: str) -> str:
    """The column of turn numbers or times that falls within a dialogue, or ""."""
    dialogues, times = [str(row.get(dialogue)) for row in rows], Times()
    for name in header:
        values = [row.get(name) for row in rows]
        if normalise(name) in ALIASES["time"]:
            values = list(map(times.parse, values))
        elif not OF_ORDER.fullmatch(name):
            continue
        if falls(values, dialogues):
            return name
    return ""


def _with_contexts(rows: Sequence[Place], dialogue: str, text: str) -> Iterator[Place]:
    """Yield each message as a response to the messages before it in its dialogue, in the order of the file, but for
    those of systems and tools."""
    said: dict[str, list[Any]] = {}
    for where, row in rows:
        before = said.setdefault(str(row.get(dialogue)), [])
        yield where, {**row, BEFORE: list(before)}
        before.append(turn_text({"role": row.get("role"), "content": row.get(text)}))


def _table(format: str) -> Layout:
    def rows(source: Source) -> Iterator[Row]:
        return _mapped(source, *source.table(format), source.mapping)

    return Layout(lambda source: source.format == format, takes_mapping=True)(rows)


csv, tsv, parquet = map(_table, ("csv", "tsv", "parquet"))


def _has_known_keys(source: Source) -> bool:
    """Whether rows are JSON objects, but not of the layout `eval`. If the file is one JSON value, their keys must have
    well-known names of texts and of a score, unless there is a mapping."""
    if not source.first or isinstance(source.first.get("annotations"), dict):
        return False
    keys = set(map(normalise, source.first))
    texts = all(keys & set(ALIASES[field]) for field in ("context", "response"))
    known = (
        texts
        or columns_of_messages([*source.first])
        or any(ends_with_answer([cell]) for cell in source.first.values())
    ) and bool(keys & set(ALIASES["score"]))
    return source.format == "jsonl" or (source.format == "json" and (known or bool(source.mapping)))


@Layout(_has_known_keys, takes_mapping=True)
def jsonl(source: Source) -> Iterator[Row]:
    """One JSON object per line, or a JSON list of objects; the columns are the objects' keys."""
    return _mapped(source, *source.table("json" if source.format == "json" else "jsonl"), source.mapping)


def _is_export(source: Source) -> bool:
    return isinstance(source.first.get("data"), dict) and isinstance(source.first.get("annotations"), list)


@Layout(_is_export, takes_mapping=True)
def label_studio(source: Source) -> Iterator[Row]:
    """Label Studio's JSON export: tasks with the data that was shown and the answers of each annotator. The keys of the
    data are columns, the controls of the answers are criteria."""
    rows = [row for where, task in source.objects() for row in _answers(source, where, task)]
    if not rows:
        fault = "no answer is a rating, a number, or a choice that begins with one, such as '4 - good'"
        raise AnnotationError(f"{source.path}: {fault}; write the choices so")
    header = list(dict.fromkeys(name for _, row in rows for name in row))
    return _mapped(source, header, rows, {**_LABEL_STUDIO, **(source.mapping or {})}, _OF_DATA)


def _answers(source: Source, where: str, task: Mapping[str, Any]) -> Iterator[Place]:
    """Yield a row for each rating of a task: its data, the annotator, the control and the value."""
    data, annotations = task.get("data"), task.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        raise AnnotationError(f"{where}: expected an object with data and a list of annotations")
    for at, annotation in enumerate(annotations, 1):
        results = annotation.get("result") if isinstance(annotation, dict) else None
        if not isinstance(results, list):
            raise AnnotationError(f"{where}, annotation {at}: no list result")
        source.left_out[SKIPPED] += bool(annotation.get("was_cancelled"))
        by = annotation.get("completed_by", f"annotation {at}")
        rater = str(by.get("id", by.get("email")) if isinstance(by, dict) else by)
        about = {**data, "task": str(task.get("id", where)), "completed_by": rater}
        for result in [] if annotation.get("was_cancelled") else results:
            value = _score(result.get("value")) if isinstance(result, dict) else None
            source.left_out[NO_RATING] += value is None
            if value is not None:
                yield where, {**about, "from_name": result.get("from_name"), "value": value}


def _score(value: Any) -> Any:
    """The rating, the number or the only choice of an answer; None for texts, for several choices, and for a choice
    that neither has a digit nor is in WORDS."""
    given = value if isinstance(value, dict) else {}
    choices = given.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        choice = str(choices[0]).strip()
        return choice if choice.lower() in WORDS or any(map(str.isdigit, choice)) else None
    return given.get("rating", given.get("number"))
