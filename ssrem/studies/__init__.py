"""Studies: what else an evaluator's scores depend on besides quality. Pure functions: scores and texts to findings."""

from __future__ import annotations

from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.studies import attacks, learned, scored
from ssrem.studies.study import Study

STUDIES: dict[str, Study[Any]] = {
    study.name: study
    for study in (
        attacks.STUDY,
        scored.CORPUS_BUCKETS,
        scored.LENGTH,
        scored.SCORE_BUCKETS,
        scored.DISTRIBUTION,
        scored.WITHOUT_SYSTEM,
        learned.LOW_RESOURCE,
        learned.LABEL_NOISE,
        learned.LEAVE_ONE_SYSTEM_OUT,
        learned.TRANSFER,
    )
}
"""Every study by its name."""


def study_called(name: str) -> Study[Any]:
    """The study of that name; EvaluatorError, naming them all, where there is none."""
    if name not in STUDIES:
        raise EvaluatorError(f"no study {name!r}; one of {', '.join(STUDIES)}")
    return STUDIES[name]
