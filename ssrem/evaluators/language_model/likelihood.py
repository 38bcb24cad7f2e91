"""Likelihood of a response under a language model: GPT2-coherence and BERT-MLM of Park et al. 2021, and others.

A mean log-probability depends on a response's wording and length as well as on its fit: on sets in which good
responses are long, `lm-coherence` can fall as human scores rise, so check its correlation with the length. `lm-pmi`
subtracts the log-probability of the response without the context.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ssrem import trusted_sources
from ssrem.encoders.hub import BF16
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.language_model.models import (
    GEMMA,
    CausalModel,
    LanguageModel,
    MaskedModel,
    Tokens,
    gemma_folder,
)
from ssrem.evaluators.metric import Metric, MetricScores
from ssrem.samples import Floats, Sample
from ssrem.settings import Count


def _names(speakers: str) -> str:
    if speakers and not all(name.strip() for name in speakers.split("+")):
        raise ValueError(f"{speakers!r} is no list of names joined by +, and not empty either")
    return speakers


Model = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]
"""The name or folder of a language model; with ":bf16" after it the model multiplies in bfloat16, which gives other
scores and takes less time if the processor supports it."""


class LikelihoodSettings(EvaluatorSettings):
    """Settings of an evaluator that uses a language model. Settings that change no score are not saved."""

    model: Model = ""
    """name or folder of the language model"""
    context_turns: Count = 5
    """number of last turns that are put before the response"""
    separator: str = "\n"
    """text or special token of the model between turns"""
    max_length: Count | None = None
    """tokens of a sample at most, with special ones; None is what the model takes, at most 512. Of a longer sample the
    oldest tokens of the context are dropped first, then the last of the response"""
    aggregate: Literal["mean", "sum"] = "mean"
    """mean or sum over the response's tokens"""
    device: str | None = Field(None, exclude=True)
    """cpu, cuda, mps, or map: layers over all GPUs, for which accelerate is needed (default: the best available)"""
    batch_size: Count | None = Field(None, exclude=True)
    """samples of 64 tokens that are read at once, and up to four times as many shorter ones (default: 8, or 16 for a
    masked model; four times as many on a GPU)"""


class CausalSettings(LikelihoodSettings):
    """Settings of an evaluator that uses a causal language model."""

    model: Model = GEMMA
    """name or folder of a causal language model; by default Gemma 3 270M (4 bits, packaged)"""
    speakers: Annotated[str, AfterValidator(_names)] = "A+B"
    """names joined by "+" that alternate, as in a script: "A+B" gives "B: how are you?", then "A:" and the response, so
    that a model that was trained on scripts expects an answer; "" for turns without names"""


class MaskedSettings(LikelihoodSettings):
    """Settings of an evaluator that uses a masked language model."""

    model: Model = ""
    """name or folder of a masked language model with a trained head, such as bert-base-uncased"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model:
            raise EvaluatorError(
                "mlm-likelihood has no default model; set model to the name or the folder of a masked language model, "
                "for example bert-base-uncased"
            )
        return self


class Likelihood(Metric):
    """Base of evaluators that use a language model: loads it, turns samples into tokens and scores them in batches.

    Blanks around turns and responses are removed, and blank turns are left out; a blank response has no score. One
    without a token counts as one token of probability 1 / vocabulary, with and without a context. A sample that is cut
    is `truncated`.
    """

    range: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    batch_samples: ClassVar[int] = 2_048
    model_class: ClassVar[type[LanguageModel]]
    usual_batch: ClassVar[int] = 8

    @cached_property
    def model(self) -> LanguageModel:
        """The language model, loaded on first use and shared by the evaluators that use it."""
        spec: str = self.settings.model
        bare = spec.removesuffix(BF16)
        source = trusted_sources.trust(str(gemma_folder())) if bare == GEMMA else bare
        trusted_sources.check(source)
        return self.model_class.shared(source + spec.removeprefix(bare), self.settings.device, name=spec)

    @property
    def engine(self) -> str:
        return f"w:{'+'.join(self.model.hashes)}"

    @property
    def signature(self) -> str:
        return super().signature.encode("unicode_escape").decode("ascii")  # a separator may be a line break

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        speakers: str = getattr(self.settings, "speakers", "")
        tokens = self.model.tokens(
            [(sample.context[-self.settings.context_turns :], sample.response) for sample in samples],
            separator=self.settings.separator,
            max_length=self.settings.max_length,
            speakers=tuple(name.strip() for name in speakers.split("+")) if speakers else (),
        )
        return MetricScores(self._values(tokens), np.array([sample.truncated for sample in tokens]))

    def _values(self, tokens: Sequence[Tokens]) -> Floats:
        """Mean or sum of the natural log-probabilities of each response's tokens, float64 (n,)."""
        counts = np.array([len(sample.response) for sample in tokens])
        usual = self.usual_batch * (4 if self.model.device.type == "cuda" else 1)
        sums = self.model.log_likelihoods(tokens, self.settings.batch_size or usual)
        per = np.maximum(counts, 1) if self.settings.aggregate == "mean" else 1
        return np.where(counts > 0, sums / per, -math.log(self.model.vocabulary))


class LmCoherence(Likelihood):
    """Mean log-probability of the response's tokens given the context, by a causal model (GPT2-coherence).

    log p(token | the context's last turns and the response so far). The text starts with the model's begin-of-text
    token (its end-of-text token if it has no other), each turn ends with the separator, and the response follows. The
    response's end is not scored.
    """

    name: ClassVar[str] = "lm-coherence"
    source: ClassVar[str] = "Pang et al. 2020, context coherence; GPT2-coherence of Park et al. 2021"
    settings_model: ClassVar[type[EvaluatorSettings]] = CausalSettings
    model_class: ClassVar[type[LanguageModel]] = CausalModel


class LmPmi(LmCoherence):
    """Pointwise mutual information of response and context: log p(response | context) − log p(response).

    The score is the mean over the response's tokens, or the sum. There is none without a context.
    """

    name: ClassVar[str] = "lm-pmi"
    source: ClassVar[str] = "MMI-antiLM of Li et al. 2016 with λ = 1, per token"
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def _values(self, tokens: Sequence[Tokens]) -> Floats:
        alone = [replace(sample, context=sample.opening) for sample in tokens]
        return super()._values(tokens) - super()._values(alone)


class MlmLikelihood(Likelihood):
    """Pseudo-log-likelihood of the response given the context (BERT-MLM): each of its tokens is masked in turn.

    The model runs once for each token. The score is the mean over the tokens, or the sum, as Park et al. 2021 describe
    BERT-MLM.
    """

    name: ClassVar[str] = "mlm-likelihood"
    source: ClassVar[str] = "Salazar et al. 2020, section 2; BERT-MLM of Park et al. 2021"
    settings_model: ClassVar[type[EvaluatorSettings]] = MaskedSettings
    model_class: ClassVar[type[LanguageModel]] = MaskedModel
    usual_batch: ClassVar[int] = 16
