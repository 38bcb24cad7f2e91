"""Base classes of evaluators that learn nothing: their settings and the samples alone determine the scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ssrem.encoders import Encoder, load_encoder
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST, source_hash
from ssrem.evaluators.base import Evaluator, EvaluatorSettings, Provider, Scores
from ssrem.files import read_json, write_json
from ssrem.samples import Floats, Sample

# How far a score may lie outside its range, relative to the bounds: about the rounding error of sums of float32.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class MetricScores:
    """Result of a metric for n samples. values: float64 (n,). truncated: whether some text was not read, bool (n,).

    reasons: for each sample why its value is NaN, "" if it is a number; empty if all values are numbers.
    """

    values: Floats
    truncated: NDArray[np.bool_] | bool = False
    reasons: Sequence[str] = ()


class Metric(Evaluator):
    """An evaluator without training. It has one part: g if it reads the reference, otherwise f.

    Its settings, the keyword arguments, determine its scores; they are saved and part of the signature.
    """

    batch_samples: ClassVar[int] = 20_000
    batch_characters: ClassVar[float] = math.inf
    """The most samples, and characters of their responses and references, in a batch; one sample may have more."""
    in_engine: ClassVar[frozenset[str]] = frozenset()
    """Names of the settings that the signature does not list, because `engine` covers them."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.parts = ("g",) if "reference" in cls.needs else ("f",)

    def __init__(self, **settings: Any) -> None:
        self.settings: Any = self.settings_model(**settings)

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        return cls(**settings)

    def settings_of_run(self, options: Mapping[str, Any]) -> Any:
        """Its settings, changed by those options that are settings excluded from saving, such as a device.

        No score depends on such settings."""
        known = self.settings_model.model_fields
        own = {name: value for name, value in options.items() if name in known and known[name].exclude}
        return self.settings.model_copy(update=own)

    @property
    @abstractmethod
    def engine(self) -> str:
        """What computes the scores, with its version or a hash of its weights; it is part of the signature."""

    @abstractmethod
    def values(self, samples: Sequence[Sample]) -> MetricScores:
        """Scores of a batch of samples that lack nothing, in order; each is finite, or NaN with a reason.

        No score may depend on the other samples. A context may be empty. `compute` raises EvaluatorError for a score
        that is infinite, NaN without a reason, or outside `range` by more than rounding.
        """

    @property
    def signature(self) -> str:
        shown = self.settings.model_dump(exclude=self.in_engine)
        settings = "".join(f"|{name}:{value}" for name, value in sorted(shown.items()))
        return f"{self.name}{settings}|{self.engine}{source_hash(type(self))}"

    def compute(self, samples: Sequence[Sample]) -> Scores:
        values, truncated = np.full(len(samples), np.nan), np.zeros(len(samples), dtype=bool)
        reasons = [""] * len(samples)
        for rows in self._batches(samples):
            scored = self.values([samples[row] for row in rows])
            try:
                given = np.asarray(scored.values, dtype=np.float64)  # None becomes NaN
                fault = f"values of shape {given.shape}" if given.shape != (len(rows),) else ""
            except (TypeError, ValueError) as error:
                fault = f"values that are no numbers ({error})"
            if fault:
                wanted = "`values` returns an array with one number for each"
                raise EvaluatorError(f"{self.name}: {fault} for {len(rows)} samples; {wanted}")
            values[rows], truncated[rows] = self._in_range(given), scored.truncated
            for row, reason in zip(rows, scored.reasons, strict=False):  # empty if all values are numbers
                reasons[row] = reason
            for row in (rows[at] for at in np.flatnonzero(~np.isfinite(values[rows]))):
                if not reasons[row] or math.isinf(values[row]):
                    raise EvaluatorError(
                        f"{self.name} gave the score {values[row]} for {samples[row].response!r:.60}; give a number, "
                        "or NaN with a reason"
                    )
        return Scores.of(truncated, reasons, **{self.parts[0]: values})

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = self.settings.model_dump(mode="json")
        write_json(folder / MANIFEST, {"name": self.name, "settings": settings, "signature": self.signature})

    @classmethod
    def load(cls, folder: Path) -> Self:
        manifest = read_json(folder / MANIFEST, ("name", "settings", "signature"))
        if manifest["name"] != cls.name:
            raise EvaluatorError(f"{folder} holds {manifest['name']!r}, not {cls.name}")
        if not isinstance(manifest["settings"], dict):
            raise EvaluatorError(
                f"{folder / MANIFEST}: settings are no JSON object; save the evaluator again"
            )
        metric = cls(**manifest["settings"])
        if metric.signature != manifest["signature"]:
            raise EvaluatorError(
                f"{folder} was saved as {manifest['signature']}, but scores now as {metric.signature}; "
                "train it again, or install what it was saved with"
            )
        return metric

    def _in_range(self, values: Floats) -> Floats:
        """The values, moved to the bound if rounding took them beyond it; EvaluatorError for one farther outside."""
        low, high = self.range
        allowed = _ROUNDING * max(1.0, *(abs(bound) for bound in self.range if math.isfinite(bound)), 0.0)
        outside = (values < low - allowed) | (values > high + allowed)
        if outside.any():
            raise EvaluatorError(
                f"{self.name} gave the score {values[outside][0]:g}, outside of its range from {low:g} to {high:g}; "
                "correct the range of its class, or what computes the score"
            )
        return np.clip(values, low, high)

    def _batches(self, samples: Sequence[Sample]) -> Iterator[list[int]]:
        """Positions of the samples, a batch at a time; without those that lack a reference that is needed."""
        rows: list[int] = []
        characters = 0
        for row, sample in enumerate(samples):
            if "reference" in self.needs and sample.reference is None:
                continue
            size = len(sample.response) + len(sample.reference or "")
            if rows and (len(rows) == self.batch_samples or characters + size > self.batch_characters):
                yield rows
                rows, characters = [], 0
            rows.append(row)
            characters += size
        if rows:
            yield rows


class EncoderSettings(EvaluatorSettings):
    """Settings of a metric that uses an encoder's vectors."""

    encoder: str = Field(MINILM, min_length=1)
    """a spec for `load_encoder`"""


class EncodedMetric(Metric):
    """A metric that uses the vectors of the encoder that a setting names; these vectors may be cached."""

    batch_samples: ClassVar[int] = 16_384
    settings_model: ClassVar[type[EvaluatorSettings]] = EncoderSettings
    encoder: Encoder

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.encoder = load_encoder(self.settings.encoder)

    @property
    def engine(self) -> str:
        return self.encoder.signature
