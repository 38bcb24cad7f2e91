"""The contract of evaluators: what they are created from, what they score and what they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.parts import PARTS, overall_part
from ssrem.extras import not_installed
from ssrem.samples import Floats, Sample

EMPTY_RESPONSE = "empty response"
EMPTY_CONTEXT = "empty context"
NO_REFERENCE = "no reference"


@dataclass(frozen=True)
class Scores:
    """Scores of n samples, float64 (n,); NaN if the evaluator has no such part or the sample lacks what it needs.

    f: unreferenced. g: referenced. h: mixed. f_unit, g_unit: f and g scaled to the unit range. truncated: bool (n,),
    whether a text of the sample was not read to its end. reasons: str (n,), why a sample has no score at all, "" where
    it has one.
    """

    f: Floats
    g: Floats
    h: Floats
    f_unit: Floats
    g_unit: Floats
    truncated: NDArray[np.bool_]
    reasons: NDArray[np.str_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.reasons is None:
            object.__setattr__(self, "reasons", np.full(len(self.f), ""))

    @classmethod
    def of(cls, truncated: NDArray[np.bool_], **parts: Floats) -> Scores:
        """With these parts; the others are NaN."""
        absent = np.full(len(truncated), np.nan)
        f, g, h, f_unit, g_unit = (parts.get(name, absent) for name in ("f", "g", "h", "f_unit", "g_unit"))
        return cls(f, g, h, f_unit, g_unit, truncated)

    def __len__(self) -> int:
        return len(self.f)

    @property
    def score(self) -> Floats:
        """The evaluator's score of each sample: the part that `overall_part` selects."""
        counts = {part: int((~np.isnan(getattr(self, part))).sum()) for part in PARTS}
        scores: Floats = getattr(self, overall_part(counts))
        return scores

    def placed(self, rows: Sequence[int], n: int) -> Scores:
        """These scores as those of `rows` among n samples; the others have none."""
        columns = {}
        for field in fields(self):
            values = getattr(self, field.name)
            absent = {"truncated": False, "reasons": ""}.get(field.name, np.nan)
            columns[field.name] = np.full(n, absent, dtype=values.dtype)
            columns[field.name][rows] = values
        return Scores(**columns)


class Provider(Protocol):
    """Objects that an evaluator is created from; each is loaded when its method is called."""

    def encoder(self) -> Encoder:
        """The chosen encoder, fitted to the corpora if it learns from them."""

    def evaluator(self, name: str) -> Evaluator:
        """The promoted version of the trained evaluator `name`."""

    def masked_lm(self) -> Path:
        """The folder of a masked language model for the corpora."""


class Evaluator(ABC):
    """(context, response, reference) → score."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    """What a sample must have besides the response: a subset of {"context", "reference"}."""
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest possible `score`; may be infinite."""
    source: ClassVar[str]
    """The publication that describes it: authors, year, section."""
    parts: ClassVar[tuple[str, ...]]
    """The parts that `components` returns, of f, g and h; g and h only for samples with a reference."""
    learns_from: ClassVar[frozenset[str]] = frozenset()
    """What it can learn from: "candidates" (`fit`), "labels" (`fine_tuned`); empty: it needs no training."""
    several_sets: ClassVar[bool] = False
    """Whether it learns from the human scores of several annotated sets at once."""
    candidates_first: ClassVar[bool] = False
    """Whether it can learn human scores only after it has learned from candidates."""
    test_sample: ClassVar[int | None] = None
    """Number of test responses that are scored for the identification figures of a slow evaluator; None: all."""
    shard: ClassVar[int] = 5_000
    """Number of responses, each with all of its candidates, that are scored as one unit of work."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Modules that it needs besides those of the core."""
    encoder: Encoder | None = None
    """An evaluator with an encoder takes `encode=` in `fit`, `score` and so on, which replaces the encoder's own."""

    @classmethod
    @abstractmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of its settings."""

    @classmethod
    @abstractmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, with defaults for those not in `settings`; no model is loaded.

        EvaluatorError for an unknown setting or a value that it cannot have.
        """

    @classmethod
    @abstractmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """An evaluator with these settings; `provider` has the encoder or models that it needs."""

    @classmethod
    def encoder_spec(cls, chosen: str | None) -> str | None:
        """The spec of the encoder that it uses if the user chooses `chosen`, or none; None if it uses no encoder."""
        return None

    @classmethod
    def check_labels(cls, labels: int, alone: bool) -> None:
        """EvaluatorError if it cannot learn from what the user gives.

        labels: number of annotated sets. alone: whether it is to learn from nothing but their human scores.
        """
        if labels and not cls.learns_from:
            raise EvaluatorError(
                f"{cls.name} learns nothing, so it cannot learn from --labels; leave one of them out"
            )
        if labels and "labels" not in cls.learns_from:
            raise EvaluatorError(f"{cls.name} does not learn from human scores; leave --labels out")
        if labels > 1 and not cls.several_sets:
            raise EvaluatorError(
                f"{cls.name} learns from one annotated set at a time; give one, or train a blend, which takes several"
            )
        if labels and alone and cls.candidates_first:
            raise EvaluatorError(
                f"{cls.name} learns human scores after it has learned from corpora; leave --labels-only out"
            )
        if cls.learns_from and "candidates" not in cls.learns_from and not (labels and alone):
            missing = "add --labels-only" if labels else "give an annotated set, --labels FILE --labels-only"
            raise EvaluatorError(f"{cls.name} learns from human scores alone; {missing}")

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings, encoder, hash of the weights, and `source_hash`: evaluators with equal signatures give equal
        scores."""

    def score(self, samples: Sequence[Sample], **reading: Any) -> Floats:
        """`Scores.score` of the samples, in order, float64 (n,). reading: further arguments of `compute`."""
        return self.components(samples, **reading).score

    @classmethod
    def missing_packages(cls, folder: Path) -> list[str]:
        """What has to be installed before the evaluator saved in `folder` can be loaded; nothing is loaded."""
        return not_installed(*cls.packages)

    @classmethod
    def lacks(cls, sample: Sample) -> str | None:
        """Why the sample has no score: what it lacks; None if it has one."""
        if not sample.response.strip():
            return EMPTY_RESPONSE
        if "context" in cls.needs and not any(turn.strip() for turn in sample.context):
            return EMPTY_CONTEXT
        if "f" not in cls.parts and not (sample.reference or "").strip():
            return NO_REFERENCE
        return None

    def components(self, samples: Sequence[Sample], **reading: Any) -> Scores:
        """The parts of the score of each sample, in order; all are NaN where a sample `lacks` something.

        reading: further arguments of `compute`. A blank reference counts as none.
        """
        lacking = np.array([self.lacks(sample) or "" for sample in samples], dtype=str)
        rows = np.flatnonzero(lacking == "").tolist()
        if not rows:
            return replace(Scores.of(np.zeros(len(samples), dtype=bool)), reasons=lacking)
        usable = [
            sample
            if sample.reference is None or sample.reference.strip()
            else replace(sample, reference=None)
            for sample in map(samples.__getitem__, rows)
        ]
        scores = self.compute(usable, **reading).placed(rows, len(samples))
        return replace(scores, reasons=np.where(scores.reasons == "", lacking, scores.reasons))

    def encoded_texts(self, samples: Sequence[Sample]) -> Iterator[str]:
        """The texts that `compute` reads of the samples through `encoder`, as far as they are known beforehand: from
        them a blend sees what several of its parts read. A text may come twice."""
        return iter(())

    @abstractmethod
    def compute(self, samples: Sequence[Sample]) -> Scores:
        """The parts of the score of samples that lack nothing, in order; a part without reference is NaN."""

    @abstractmethod
    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """Write safetensors and JSON into `folder`, and `card` to card.json."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Evaluator:
        """The evaluator that `save` wrote; EvaluatorError for another's folder and for missing or changed files."""
