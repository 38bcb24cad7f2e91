"""What every evaluator takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors (n, d); stands in for the encoder's own `encode`, as a cache does."""

TRAIN, VALID, TEST = 0, 1, 2
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

    def rows(self, split: int | None) -> Rows:
        """Positions of a split's responses, in order; all of them for None."""
        return np.arange(len(self)) if split is None else np.flatnonzero(self.split == split)


@dataclass(frozen=True)
class Scores:
    """Scores of n samples, float64 (n,); NaN only where a reference that is needed is absent.

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
    """The lowest and the highest value that `score` can give."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings, encoder and weights' hash: equal signatures score equally."""

    @abstractmethod
    def fit(self, candidates: Candidates, *, progress: Progress | None = None) -> Training:
        """Learn from `candidates`; the train split is learned from, the valid split chooses."""

    @abstractmethod
    def score(self, samples: Sequence[Sample]) -> Floats:
        """One score a sample, in the order given, float64 (n,)."""

    @abstractmethod
    def components(self, samples: Sequence[Sample]) -> Scores:
        """The parts that the score is made of."""

    @abstractmethod
    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind → f (n, k) of a split's responses in order; NaN where there is no such negative."""

    @abstractmethod
    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """Write safetensors and JSON into `folder`; `card` goes to card.json as it is."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Evaluator:
        """What `save` wrote; EvaluatorError for a foreign, incomplete or changed folder."""
