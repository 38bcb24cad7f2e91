"""RUBER: unreferenced, referenced and hybrid (Tao et al. 2018; reimplemented by Zhao et al. 2020, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ssrem.encoders import DEFAULT_ENCODER, Encoder
from ssrem.encoders.recurrent import take_weights
from ssrem.evaluators.base import EvaluatorSettings, Scores, Trained
from ssrem.evaluators.metric import EncodedMetric, EncoderSettings, MetricScores
from ssrem.evaluators.similarity import pooled_cosine
from ssrem.samples import Floats, Sample
from ssrem.settings import Count, Natural, Positive, Seed

_CHUNK = 10_000
COMBINATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "min": np.minimum,
    "max": np.maximum,
    "arithmetic": lambda f, g: (f + g) / 2,
    "geometric": lambda f, g: np.sqrt(f * g),
}
"""Ways to mix two parts on the unit range, float64 (n,); the result is NaN where a part is NaN."""


class RuberSettings(EvaluatorSettings):
    """Settings of RUBER."""

    context_turns: Count = 5
    """number of last turns that are read"""
    context_words: Count = 100
    """number of known words of a context that are read, the last ones"""
    response_words: Count = 50
    """number of known words of a response that are read, the first ones"""
    hidden: Count = 64
    """units of each direction of the recurrent networks"""
    mlp: Count = 128
    """units of the layer before the score"""
    margin: Positive = 0.5
    """the loss is zero for a true response that scores this much higher than a random one"""
    epochs: Count = 20
    batch_size: Count = 64
    learning_rate: Positive = 0.001
    """lower for more units: with 300, training at .001 may stay at chance, at .0003 it learns"""
    max_train: Count = 20_000
    """responses per epoch; the next epoch takes those that follow, so that all are read in turn"""
    max_valid: Count = 4_000
    """responses of the validation split that the loss is computed on"""
    decay_patience: Natural = 2
    """epochs without a lower validation loss that are tolerated; after one more the learning rate falls to a tenth"""
    patience: Count = 5
    """epochs without a lower validation loss before training stops"""
    combine: Literal["min", "max", "arithmetic", "geometric"] = "arithmetic"
    """how `ruber` mixes its parts: minimum, maximum, arithmetic or geometric mean"""
    tune_epochs: Count = 50
    """epochs of learning from human scores; the next two settings are for that, too"""
    tune_batch_size: Count = 30
    tune_learning_rate: Positive = 0.0001
    seed: Seed = 0


class RuberUnref(Trained):
    """f = sigmoid(MLP([q; qᵀMr; r])), learned by telling true responses from random ones, which are a negative of kind
    Rand and the other responses of the batch.

    q and r are the last states of two bidirectional GRUs over frozen word vectors, the encoder's `units`. The first
    reads the last `context_turns` turns as one text, the second reads the response. f lies in (0, 1); it is 0.5 if the
    context or the response has no known word. A sample is `truncated` if its context has more than `context_words`
    known words or its response more than `response_words`. Speakers are not read, so a negative cannot be recognised by
    its speaker.

    `tuned_on` is semi-supervised RUBER (Zhao et al. 2020, section 5.2); it needs a fitted evaluator.
    """

    name: ClassVar[str] = "ruber-unref"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, unreferenced metric; turns and schedule of Zhao et al. 2020"
    settings_model: ClassVar[type[EvaluatorSettings]] = RuberSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "candidates+labels"})
    default_encoder: ClassVar[str | None] = DEFAULT_ENCODER
    form: ClassVar[str] = "ssrem-ruber-3"
    learned_by: ClassVar[str] = "ssrem.evaluators.ruber_training"
    encoder: Encoder
    net: Any = None
    """The network with the learned weights."""

    def _about(self) -> str:
        chosen, mixing = self.settings, ""
        if "g" in self.parts:
            mixing = f"|g:maxmin|h:{chosen.combine}"
        return (
            f"f:gru|enc:{self.encoder.signature}|ctx:{chosen.context_turns}"
            f"|{self.encoder.unit}:{chosen.context_words}+{chosen.response_words}|neg:Rand+batch{mixing}"
            f"|tuned:{self.tuned}"
        )

    def _check(self) -> None:
        from ssrem.evaluators.ruber_training import RuberNet

        net = RuberNet.seeded(self.encoder.dimensions, self.settings)
        take_weights(net, self.tensors, "RUBER's", self.encoder.dimensions)
        self.net = net

    def compute(self, samples: Sequence[Sample]) -> Scores:
        """All parts; g and h are NaN for samples without a reference."""
        from ssrem.evaluators.ruber_training import lay_samples, scores

        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        g = np.full(len(samples), np.nan)
        for first in range(0, len(samples), _CHUNK):
            at, chunk = slice(first, first + _CHUNK), samples[first : first + _CHUNK]
            laid, pairs = lay_samples(chunk, self.encoder, self.settings)
            f[at] = scores(self.net, laid, pairs)
            truncated[at] = laid.contexts.cut[pairs[:, 0]] | laid.responses.cut[pairs[:, 1]]
            if "g" in self.parts:
                references = [sample.reference or "" for sample in chunk]
                g[at] = pooled_cosine([sample.response for sample in chunk], references, self.encoder)
        f_unit = self.f_unit(f)
        if "g" not in self.parts:
            return Scores.of(truncated, f=f, f_unit=f_unit)
        g[[sample.reference is None for sample in samples]] = np.nan
        g_unit = self.bounds["g"].unit(g)
        h = COMBINATIONS[self.settings.combine](f_unit, g_unit)
        return Scores.of(truncated, f=f, g=g, h=h, f_unit=f_unit, g_unit=g_unit)


class Ruber(RuberUnref):
    """h = minimum, maximum, arithmetic or geometric mean of f and g on the unit range, as the setting `combine` says.

    f is that of `RuberUnref`, g that of `RuberRef` with this evaluator's encoder. Each is scaled by its lowest and
    highest value on the validation split of the fit.
    """

    name: ClassVar[str] = "ruber"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    source: ClassVar[str] = "Tao et al. 2018; Zhao et al. 2020, section 3 and 5.2"


class RuberRefSettings(EncoderSettings):
    """Settings of RUBER's referenced part."""

    encoder: str = Field("glove-6b-50d", min_length=1)
    """a spec for `load_encoder`"""


class RuberRef(EncodedMetric):
    """g = cosine of response and reference, each pooled to the maximum and the minimum of its words' vectors.

    g lies in [-1, 1]; it is 0 if either has no known word. Nothing is truncated or padded.
    """

    name: ClassVar[str] = "ruber-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, referenced metric"
    settings_model: ClassVar[type[EvaluatorSettings]] = RuberRefSettings

    @property
    def engine(self) -> str:
        return f"{super().engine}|{self.encoder.unit}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        responses = [sample.response for sample in samples]
        references = [sample.reference or "" for sample in samples]
        return MetricScores(pooled_cosine(responses, references, self.encoder))
