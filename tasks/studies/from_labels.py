"""Studies of learning from human scores: evaluators in use learn anew from parts of published annotated sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sql import statement
from ssrem.agreement.cross_validation import Labelled
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.samples import Progress, Sample
from ssrem.studies.finding import Finding
from ssrem.studies.learned import LEARNED, TRANSFER, Human, Learn, transfer
from tasks.stage.progress import progress
from tasks.stage.stage import Stage

LEARNING = (*LEARNED, TRANSFER)


def learners(study: str, evaluators: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those of the evaluators that learn from human scores; EvaluatorError where none does."""
    kinds: list[tuple[Any, tuple[str, int]]] = [(evaluator_class(one[0]), one) for one in evaluators]
    fit = [one for kind, one in kinds if "labels" in kind.learns_from]
    if not fit:
        names = ", ".join(name for name, _ in evaluators)
        raise EvaluatorError(
            f"{names}: learns nothing from human scores, which {study} is about; train roberta-eval, blend, adem "
            "or ruber, and name it with --evaluator"
        )
    return fit


def learned(
    stage: Stage, study: str, digests: Mapping[str, str], evaluators: Sequence[tuple[str, int]], seed: int
) -> dict[tuple[str, int], list[Finding]]:
    """The findings of each evaluator (name, version). digests: sets to their digest, the set that is studied first;
    transfer tests on the others too.

    EvaluatorError for a version that learned from the human scores that it would be tested on.
    """
    for name, version in evaluators:
        _untold(stage, name, version, digests)
    sets = {dataset: _human(stage, dataset) for dataset in digests}
    (dataset, data), *others = sets.items()
    found = {}
    for name, version in evaluators:
        base: Any = load_evaluator(stage.home.models / name / str(version))
        with progress(f"{study} of {name}") as advance:
            learn = _learn(base, advance)
            if study == TRANSFER:
                found[name, version] = transfer(dataset, data, dict(others), learn, seed)
            else:
                found[name, version] = LEARNED[study](data, learn, seed)
    return found


def _learn(base: Any, advance: Progress) -> Learn:
    def learn(pairs: Labelled, scale: tuple[float, float]) -> Evaluator:
        tuned: Evaluator = base.fine_tuned(pairs, scale=scale, progress=advance)
        return tuned

    return learn


def _untold(stage: Stage, name: str, version: int, digests: Mapping[str, str]) -> None:
    """Refuse a version whose own labels are among the sets: it would be tested on what it was told."""
    row = stage.connection.execute(
        "SELECT labels FROM evaluators WHERE evaluator = ? AND version = ?", [name, version]
    ).fetchone()
    told = [dataset for dataset, digest in digests.items() if row and row[0] == digest]
    if told:
        raise EvaluatorError(
            f"{name} version {version} learned from the human scores of {told[0]} already; promote a version that "
            "did not, or name another evaluator"
        )


def _human(stage: Stage, dataset: str) -> Human:
    rows = stage.connection.execute(
        statement("7_studies/labelled_responses"), {"dataset": dataset}
    ).fetchall()
    if not rows:
        raise AnnotationError(f"{dataset}: every response is ground truth, which nothing is learned from")
    *_, low, high = rows[0]
    return Human(
        [Sample(tuple(row[0]), row[1], row[2]) for row in rows],
        np.array([row[4] for row in rows], dtype=np.float64),
        (low, high),
        [row[3] for row in rows],
    )
