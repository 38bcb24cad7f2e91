"""The base class of the sources of studies' data in the published tables, and the settings of a study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.samples import Sample
from ssrem.sql import statement
from ssrem.studies import study_called
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse


@dataclass(frozen=True)
class StudySettings:
    """What a study does. responses: true responses to attack, drawn by the seed from the test split; 0: all of them."""

    study: str
    responses: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        study_called(self.study)
        if self.responses < 0 or self.seed < 0:
            raise EvaluatorError("responses and seed must not be negative")


class Source(ABC):
    """Loads data of one class, which studies take, from the published tables."""

    @abstractmethod
    def datasets(self, home: Warehouse) -> list[str]:
        """Corpora or annotated sets that can be studied; an error where there is none."""

    @abstractmethod
    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        """What the study is computed from, for the ledger; an error where there is no such dataset."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        """Those of the evaluators that can be studied; EvaluatorError if there is none."""
        return list(evaluators)

    def samples(self, home: Warehouse, dataset: str, settings: StudySettings) -> list[Sample]:
        """The samples that each evaluator is to score for the study; none where it takes published scores."""
        return []

    @abstractmethod
    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Any]]:
        """The data of each evaluator, loaded one by one; AnnotationError or EvaluatorError without them."""


def scored_columns(
    stage: Stage, query: str, version: Version, dataset: str, verb: str, **values: str
) -> list[Any]:
    """The columns of a query of the responses that a version scored; numbers as float (n,).

    AnnotationError, which names the verb to run, if it scored none.
    """
    evaluator, number = version
    who = {"evaluator": evaluator, "version": number, "dataset": dataset}
    rows = stage.connection.execute(statement(query), {**who, **values}).fetchall()
    if not rows:
        raise AnnotationError(
            f"{dataset} has no scores of {evaluator} version {number}; run ssrem {verb} {evaluator} first"
        )
    return [
        column if isinstance(column[0], str | None) else np.array(column, dtype=np.float64)
        for column in zip(*rows, strict=True)
    ]
