"""GRADE as published (Huang et al., EMNLP 2020): `human_judgement.json`, or a data set's folder with one a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import Annotated, file_text, json_rows
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set, counted, objects, ratings, text_of, turns
from ssrem.errors import AnnotationError

LAYOUT = "grade"
CRITERION = "coherence"
"""What raters scored, from 1 to 5: the files do not name it, the paper does."""

SEPARATOR = "|||"
_CONTEXTS, _RESPONSES, _REFERENCES, _SCORES = (f"human_{what}.txt" for what in ("ctx", "hyp", "ref", "score"))


def looks_like(row: Mapping[str, Any]) -> bool:
    """Whether this is the first row of the JSON file."""
    return {"Context", "Response", "HumanScores"} <= row.keys()


def looks_like_folder(path: Path) -> bool:
    """Whether a folder holds models' folders of contexts and responses."""
    return bool(_models(path))


def read(path: Path, part: str | None = None) -> AnnotatedSet:
    """The JSON file: every rater's score. It holds several data sets, of which `part` names one.

    AnnotationError names file and row; where there are several data sets and no part, it lists them.
    """
    left_out: Counter[str] = Counter()
    rows = []
    listed = list(objects(path, json_rows(path), "Context, Response and HumanScores"))
    known = sorted({str(row.get("Dataset")) for _, row in listed})
    if part is None and len(known) > 1:
        some = f"--layout {LAYOUT}:{known[0]}"
        raise AnnotationError(f"{path} holds the sets {', '.join(known)}; name one, as in {some}")
    if part is not None and part not in known:
        raise AnnotationError(f"{path} holds no set {part!r}; it holds {', '.join(known)}")
    for number, (where, row) in enumerate(listed):
        if part is not None and str(row.get("Dataset")) != part:
            continue
        context = turns(text_of(where, row, "Context"), SEPARATOR)
        response = text_of(where, row, "Response").strip()
        scores = ratings(where, {CRITERION: _scores(where, row.get("HumanScores"))}, left_out)
        system = row.get("DialogModel")
        if scores is not None:
            named = None if system is None else str(system)
            rows.append(Annotated(str(row.get("ID", number)), context, response, None, named, scores))
    return annotated_set(LAYOUT, rows, left_out, [path], part)


def read_folder(path: Path) -> AnnotatedSet:
    """The folder: the mean of the raters a response, in each model's folder or in the tree `human_score` beside
    `eval_data`; references where there are any. AnnotationError names file and row."""
    left_out: Counter[str] = Counter()
    rows: list[Annotated] = []
    files: list[Path] = []
    for model in _models(path):
        names = {name: model / name for name in (_CONTEXTS, _RESPONSES, _SCORES, _REFERENCES)}
        if not names[_SCORES].exists():
            names[_SCORES] = path.parent.parent / "human_score" / path.name / model.name / _SCORES
        if not names[_REFERENCES].exists():
            del names[_REFERENCES]
        lines = {name: _lines(file) for name, file in names.items()}
        files += names.values()
        for name, found in lines.items():
            if len(found) != len(lines[_CONTEXTS]):
                told = f"{counted(len(found), 'line')}, {names[_CONTEXTS].name} {len(lines[_CONTEXTS]):,}"
                raise AnnotationError(
                    f"{names[name]} has {told}; each line is one response, fetch the files again"
                )
        references = lines.get(_REFERENCES, [None] * len(lines[_CONTEXTS]))
        for number, (context, response, score, reference) in enumerate(
            zip(lines[_CONTEXTS], lines[_RESPONSES], lines[_SCORES], references, strict=True)
        ):
            where = f"{names[_SCORES]}, row {number + 1}"
            if (scores := ratings(where, {CRITERION: [score]}, left_out)) is not None:
                there = f"{model.name}:{number}"
                rows.append(
                    Annotated(there, turns(context, SEPARATOR), response, reference, model.name, scores)
                )
    return annotated_set(LAYOUT, rows, left_out, files)


def _models(path: Path) -> list[Path]:
    return sorted(file.parent for file in path.glob(f"*/{_CONTEXTS}") if (file.parent / _RESPONSES).exists())


def _lines(path: Path) -> list[str]:
    """The lines; a break at the end of the file begins no further one."""
    return [line.strip() for line in file_text(path).removesuffix("\n").split("\n")]


def _scores(where: str, written: object) -> Any:
    """A list, which the authors' file has as text."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except ValueError:
        raise AnnotationError(f"{where}: HumanScores is {written!r}, not a list of scores") from None
