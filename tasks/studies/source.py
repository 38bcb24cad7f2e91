"""Where the data of a study come from: each class of data that studies take has a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.studies import study_called
from tasks.stage.stage import Stage
from tasks.warehouse.home import Warehouse

Version = tuple[str, int]
"""An evaluator's name and version."""


@dataclass(frozen=True)
class StudySettings:
    """responses: how many true responses are attacked, drawn by the seed from the test split; 0 for all."""

    study: str
    responses: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        study_called(self.study)
        if self.responses < 0 or self.seed < 0:
            raise EvaluatorError("responses and seed must not be negative")


class Source(ABC):
    """The published tables as the data of a study."""

    @abstractmethod
    def datasets(self, home: Warehouse) -> list[str]:
        """Corpora or annotated sets that can be studied; an error where there is none."""

    @abstractmethod
    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        """What the study is made from, for the ledger; an error where there is no such dataset."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        """The evaluators that can be studied so; EvaluatorError where there is none."""
        return list(evaluators)

    @abstractmethod
    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Any]]:
        """The data of each evaluator, loaded when it is asked for; AnnotationError or EvaluatorError without them."""
