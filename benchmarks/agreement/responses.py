"""DailyDialog++ (Sai et al. 2020): five true responses to a context, and in its dev split also false ones (KINDS)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Evaluator
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Sample

_RAND = 2
KINDS = ("random", "adversarial")


def responses_of(folder: Path) -> Candidates:
    """The true responses: those of train to learn from, those of dev to validate on. Rand negatives are drawn from the
    responses of the same split; -1 if the drawn one has the same context."""
    texts: list[str] = []
    response, start, stop, split, context = [], [], [], [], []
    for name, part in (("train", TRAIN), ("dev", VALID)):
        for number, row in enumerate(_rows(folder, name)):
            first = len(texts)
            texts += [*row["context"], *row["positives"]]
            last = first + len(row["context"])
            for at in range(last, len(texts)):
                response.append(at)
                start.append(first)
                stop.append(last)
                split.append(part)
                context.append(number)
    rows, splits = np.array(response, dtype=np.int64), np.array(split, dtype=np.uint8)
    random, drawn = np.random.default_rng(0), np.full((len(rows), _RAND), -1, dtype=np.int64)
    contexts = np.array(context)
    for part in (TRAIN, VALID):
        own = np.flatnonzero(splits == part)
        picked = own[random.integers(len(own), size=(len(own), _RAND))]
        drawn[own] = np.where(contexts[picked] == contexts[own][:, None], -1, rows[picked])
    starts, stops = (np.array(column, dtype=np.int64) for column in (start, stop))
    return Candidates(texts, rows, starts, stops, {"Rand": drawn}, splits)


def true_above_false(evaluator: Evaluator, folder: Path, contexts: int = 300) -> dict[str, Floats]:
    """Kind → whether the first true response of a dev context scores above the first false one of the kind.

    The values have shape (contexts,) and are 1, 0, or .5 if both score the same. contexts: number of dev contexts.
    """
    rows = _rows(folder, "dev")[:contexts]
    columns = [
        [Sample(tuple(row["context"]), row[kind][0]) for row in rows] for kind in ("positives", *KINDS)
    ]
    true, *false = (evaluator.score(column) for column in columns)
    return {kind: np.heaviside(true - other, 0.5) for kind, other in zip(KINDS, false, strict=True)}


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    file = folder / f"dailydialog-plusplus_{name}.jsonl"
    if not file.is_file():
        raise EvaluatorError(f"{file} does not exist; name the folder of DailyDialog++ with --responses")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
