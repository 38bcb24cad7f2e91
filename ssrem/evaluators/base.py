"""What every evaluator takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.samples import Floats, Sample

PARTS = ("f", "g", "h")
"""The parts of a score: unreferenced, referenced, mixed."""


def overall_part(counts: Mapping[str, int], n: int) -> str:
    """Which part counts as an evaluator's score of n samples: the first of h, f and g that every sample has.

    Where none is complete, the first that any sample has: g or h of an evaluator without f. counts: part to how many of
    the samples have it.
    """
    complete = (part for part in "hfg" if counts.get(part) == n)
    partial = (part for part in "hfg" if counts.get(part))
    return next(complete, next(partial, "f"))


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

    @classmethod
    def of(cls, truncated: NDArray[np.bool_], **parts: Floats) -> Scores:
        """Of these parts; the others are NaN."""
        absent = np.full(len(truncated), np.nan)
        f, g, h, f_unit, g_unit = (parts.get(name, absent) for name in ("f", "g", "h", "f_unit", "g_unit"))
        return cls(f, g, h, f_unit, g_unit, truncated)

    def __len__(self) -> int:
        return len(self.f)

    @property
    def score(self) -> Floats:
        """The evaluator's score of the samples: the part that `overall_part` names."""
        counts = {part: int((~np.isnan(getattr(self, part))).sum()) for part in PARTS}
        scores: Floats = getattr(self, overall_part(counts, len(self)))
        return scores


class Provider(Protocol):
    """What an evaluator can be made with, each made or loaded when it is asked for."""

    def encoder(self) -> Encoder:
        """The encoder that was chosen, fitted to the corpora where it learns from them."""

    def evaluator(self, name: str) -> Evaluator:
        """The trained evaluator of that name which is in use."""

    def masked_lm(self) -> Path:
        """Folder of a masked language model for the corpora."""


class Evaluator(ABC):
    """(context, response, reference) → score."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    """What a sample must have: a subset of {"context", "reference"}."""
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest value that `score` can give; infinite where there is no bound."""
    source: ClassVar[str]
    """Where it is described: authors, year, section."""
    parts: ClassVar[tuple[str, ...]]
    """Which of f, g, h `components` gives; g and h only of samples that have a reference."""
    learns_from: ClassVar[frozenset[str]] = frozenset()
    """What it can learn from: "candidates" (`fit`), "labels" (`fine_tuned`); nothing: it needs no training."""
    test_sample: ClassVar[int | None] = None
    """How many responses of a test split are scored for the identification figures; None: all. For slow ones."""
    shard: ClassVar[int] = 5_000
    """How many responses, each with all of its candidates, are scored as one piece of work."""
    encoder: Encoder | None = None
    """Where it has one, `fit`, `score` and the like take `encode=`, which stands in for the encoder's own."""

    @classmethod
    @abstractmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The settings that it has."""

    @classmethod
    @abstractmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, those that are not among `settings` by their defaults; nothing is loaded.

        EvaluatorError for one that does not exist or a value that it cannot have.
        """

    @classmethod
    @abstractmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """One with these settings, which takes from `provider` what it needs beside them."""

    @classmethod
    def encoder_spec(cls, chosen: str) -> str | None:
        """Which encoder it is made with where `chosen` is asked for; None where it has no use for one."""
        return None

    @classmethod
    def check_labels(cls, labels: bool, alone: bool) -> None:
        """EvaluatorError where it cannot learn from human scores, or from nothing else.

        labels: whether there are human scores. alone: whether they are all that it is to learn from.
        """
        if labels and not cls.learns_from:
            raise EvaluatorError(
                f"{cls.name} learns nothing, so it cannot learn from --labels; leave one of them out"
            )
        if labels and "labels" not in cls.learns_from:
            raise EvaluatorError(f"{cls.name} does not learn from human scores; leave --labels out")
        if cls.learns_from and "candidates" not in cls.learns_from and not (labels and alone):
            missing = "add --labels-only" if labels else "give an annotated set, --labels FILE --labels-only"
            raise EvaluatorError(f"{cls.name} learns from human scores alone; {missing}")

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings, encoder and weights' hash: equal signatures score equally."""

    def score(self, samples: Sequence[Sample], **reading: Any) -> Floats:
        """One score a sample, in the order given, float64 (n,): `Scores.score`. reading: as `components` takes it."""
        return self.components(samples, **reading).score

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
