"""What every evaluator takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError

if TYPE_CHECKING:
    from ssrem.encoders.base import Encoder

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors (n, d); stands in for the encoder's own `encode`, as a cache does."""

TRAIN, VALID, TEST = 0, 1, 2
_LEFT_OUT = 255
KINDS = ("GT", "SC", "SP", "SS", "Rand")
CONTEXT_ATTACK = "Context"


@dataclass(frozen=True)
class Sample:
    """A response to evaluate: the turns before it, oldest first, and where there is one a reference."""

    context: tuple[str, ...]
    response: str
    reference: str | None = None


@dataclass(frozen=True)
class Candidates:
    """Responses with their contexts and negatives, as rows of one list of turns.

    texts: every turn, conversation by conversation, in order. response (n,): the true response's row.
    context_start, context_stop (n,): the context is texts[start:stop].
    negatives: kind → rows (n, k), -1 where there is no such negative. split (n,): 0 train, 1 valid, 2 test.
    """

    texts: Sequence[str]
    response: Rows
    context_start: Rows
    context_stop: Rows
    negatives: Mapping[str, Rows]
    split: NDArray[np.uint8]

    def __post_init__(self) -> None:
        n, texts = len(self.response), len(self.texts)
        for name, column in (
            ("context_start", self.context_start),
            ("context_stop", self.context_stop),
            ("split", self.split),
        ):
            if column.shape != (n,):
                raise EvaluatorError(f"candidates: {name} has shape {column.shape}, expected ({n},)")
        for kind, rows in self.negatives.items():
            if kind not in KINDS[1:] or rows.ndim != 2 or len(rows) != n:
                raise EvaluatorError(
                    f"candidates: negatives {kind!r} of shape {rows.shape}; "
                    f"expected ({n}, k) under one of {', '.join(KINDS[1:])}"
                )
            if rows.size and (rows.min() < -1 or rows.max() >= texts):
                raise EvaluatorError(f"candidates: a negative {kind} lies outside the {texts} texts")
        if n and (self.response.min() < 0 or self.response.max() >= texts):
            raise EvaluatorError(f"candidates: a response lies outside the {texts} texts")
        if n and (
            self.context_start.min() < 0
            or self.context_stop.max() > texts
            or (self.context_start > self.context_stop).any()
        ):
            raise EvaluatorError(f"candidates: a context is no range within the {texts} texts")

    def __len__(self) -> int:
        return len(self.response)

    def sampled(self, split: int, n: int, seed: int = 0) -> Candidates:
        """These candidates with `n` responses of the split, drawn from the seed; all where there are no more."""
        rows = self.rows(split)
        if len(rows) <= n:
            return self
        left_out = np.random.default_rng(seed).permutation(rows)[n:]
        splits = self.split.copy()
        splits[left_out] = _LEFT_OUT
        return replace(self, split=splits)

    def part(self, rows: Rows) -> Candidates:
        """The responses at `rows` with only the texts that they need: contexts stay stretches of them."""
        start, stop = self.context_start[rows], self.context_stop[rows]
        drawn = {kind: negatives[rows] for kind, negatives in self.negatives.items()}
        # +1 where a stretch begins and -1 behind it: above zero is within one.
        edges = np.bincount(start, minlength=len(self.texts) + 1)
        needed = np.cumsum(edges - np.bincount(stop, minlength=len(self.texts) + 1))[:-1] > 0
        for used in (self.response[rows], *drawn.values()):
            needed[used[used >= 0]] = True
        place = np.concatenate([[0], np.cumsum(needed)])  # of a text, and behind the last one
        return Candidates(
            texts=[self.texts[at] for at in np.flatnonzero(needed).tolist()],
            response=place[self.response[rows]],
            context_start=place[start],
            context_stop=place[stop],
            negatives={kind: np.where(used >= 0, place[used], -1) for kind, used in drawn.items()},
            split=self.split[rows],
        )

    def rows(self, split: int | None) -> Rows:
        """Positions of a split's responses, in order; all of them for None."""
        return np.arange(len(self)) if split is None else np.flatnonzero(self.split == split)


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
