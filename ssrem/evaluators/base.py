"""What every evaluator takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.samples import TEST, Candidates, Floats, Progress, Sample

if TYPE_CHECKING:
    from ssrem.encoders.base import Encoder


@dataclass(frozen=True)
class Scores:
    """Scores of n samples, float64 (n,). NaN: the evaluator has no such part, or the sample lacks what it needs.

    f: unreferenced. g: referenced. h: mixed. f_unit, g_unit: scaled to the unit range. truncated: bool (n,).
    """

    f: Floats
    g: Floats
    h: Floats
    f_unit: Floats
    g_unit: Floats
    truncated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.f)


@dataclass(frozen=True)
class Training:
    """How a fit went. history: one dict an epoch. figures: of the state that was kept, on the valid split."""

    history: tuple[Mapping[str, float], ...]
    best_epoch: int
    seconds: float
    rows: Mapping[str, int]
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Evaluator(ABC):
    """(context, response, reference) → score."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    """What a sample must have: a subset of {"context", "reference"}."""
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest value that `score` can give; infinite where there is no bound."""
    source: ClassVar[str]
    """Where it is described: authors, year, section."""
    trained: ClassVar[bool] = False
    """Whether it learns from candidates: then it is a TrainedEvaluator."""
    parts: ClassVar[tuple[str, ...]]
    """Which of f, g, h `components` gives; g and h only of samples that have a reference."""
    encoder: Encoder | None = None
    """Where it has one, `score` and `components` take `encode=`, which stands in for the encoder's own."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings, encoder and weights' hash: equal signatures score equally."""

    @abstractmethod
    def score(self, samples: Sequence[Sample]) -> Floats:
        """One score a sample, in the order given, float64 (n,)."""

    @abstractmethod
    def components(self, samples: Sequence[Sample]) -> Scores:
        """The parts that the score is made of."""

    @abstractmethod
    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """Write safetensors and JSON into `folder`; `card` goes to card.json as it is."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Evaluator:
        """What `save` wrote; EvaluatorError for a foreign, incomplete or changed folder."""


class TrainedEvaluator(Evaluator):
    """An evaluator that learns: from candidates, from human scores, or from both."""

    trained: ClassVar[bool] = True
    config_class: ClassVar[type[Any]]
    """Its settings, a Config."""
    takes_encoder: ClassVar[bool] = True
    """Whether it is made with an Encoder; the others are made with None, and `fit` then takes no `encode=`."""
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates"})
    """What it can learn from: "candidates" (`fit`), "labels" (`fine_tuned`)."""

    takes_members: ClassVar[bool] = False
    """Whether it is made of other evaluators, which `members=` hands over where they are trained."""
    resumes: ClassVar[bool] = False
    """Whether `fit` takes `checkpoint=`, a folder from which a training that was broken off goes on."""
    test_sample: ClassVar[int | None] = None
    """How many responses of a test split are scored for the identification figures; None: all. For slow ones."""

    @abstractmethod
    def __init__(self, encoder: Encoder | None, config: Any = None) -> None: ...

    @abstractmethod
    def fit(self, candidates: Candidates, *, progress: Progress | None = None) -> Training:
        """Learn from `candidates`; the train split is learned from, the valid split chooses."""

    def fine_tuned(
        self,
        annotated: Sequence[tuple[Sample, float]],
        *,
        scale: tuple[float, float],
        progress: Progress | None = None,
    ) -> Self:
        """A copy that has learned from human scores; this evaluator is left as it is.

        annotated: samples with their human score, within `scale`, the lowest and highest that a rater could give.
        """
        raise EvaluatorError(f"{self.name} does not learn from human scores")

    @abstractmethod
    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind → f (n, k) of a split's responses in order; NaN where there is no such negative."""

    @abstractmethod
    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by bounds that were fitted once."""
