"""Likelihood of a response under a language model: GPT2-coherence and BERT-MLM of Park et al. 2021, and others.

A mean log-probability depends on a response's wording and length as well as on its fit: on sets in which good
responses are long, `lm-coherence` can fall as human scores rise, so check its correlation with the length. `lm-pmi`
subtracts the log-probability of the response without the context.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ssrem import trusted_sources
from ssrem.encoders.pretrained import BF16
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.metric import Metric, Scored, check_whole
from ssrem.evaluators.language_model.causal import CausalModel
from ssrem.evaluators.language_model.gemma import GEMMA, gemma_folder
from ssrem.evaluators.language_model.language_model import LanguageModel, Tokens
from ssrem.evaluators.language_model.masked import MaskedModel
from ssrem.samples import Floats, Sample

# Below this, scores differ only by rounding.
_LEAST_DEVIATION = 1e-4
_AGGREGATES = ("mean", "sum")
_SCALES = ("coherence_mean", "coherence_deviation", "pmi_mean", "pmi_deviation")

# Model → the values of _SCALES that `calibrate` gives with the default settings on 300 responses of the default
# corpus's validation split (benchmarks/calibrate.py).
CALIBRATIONS: Mapping[str, tuple[float, float, float, float]] = {
    GEMMA: (-3.89067, 1.35996, 0.963793, 1.11406)
}


class Likelihood(Metric):
    """An evaluator by a language model: loads the model, turns samples into tokens and scores them in batches.

    Settings. model: name or folder of one that `model_class` reads; ":bf16" after it for products of bfloat16, which
    are other scores, in less time where the processor has them. context_turns: how many of the last turns precede the
    response.
    separator: text or special token of the model between turns. max_length: tokens of a sample, including special
    ones; None is what the model takes, at most 512. A longer sample is `truncated`: the context's oldest tokens are
    dropped first, then the response's last. batch_size: samples of 64 tokens that are read at once, and up to four
    times as many shorter ones. Neither it nor device changes a score or is part of the signature.

    Blanks around turns and responses are removed, and blank turns are left out. A response without a token counts as
    one token of probability 1 / vocabulary, with and without a context.
    """

    defaults: ClassVar[Mapping[str, Any]] = {
        "model": None,
        "context_turns": 5,
        "separator": "\n",
        "max_length": None,
        "device": None,
        "batch_size": 8,
    }
    range: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    batch_samples: ClassVar[int] = 2_048
    model_class: ClassVar[type[LanguageModel]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.device: str | None = self.settings.pop("device")
        self.batch_size: int = self.settings.pop("batch_size")
        self.settings["model"] = str(self.settings["model"])

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        if chosen["model"] is None:
            raise EvaluatorError(
                f"{cls.name} has no default model; set model to the name or the folder of a {cls.model_class.kind} "
                "language model, for example bert-base-uncased"
            )
        for name in ("context_turns", "batch_size", "max_length"):
            if name != "max_length" or chosen[name] is not None:
                check_whole(cls.name, name, chosen[name])
        if not isinstance(chosen["separator"], str):
            raise EvaluatorError(f"{cls.name}: separator is {chosen['separator']!r}; expected text")
        if chosen.get("aggregate", "mean") not in _AGGREGATES:
            raise EvaluatorError(
                f"{cls.name}: aggregate is {chosen['aggregate']!r}; expected {' or '.join(_AGGREGATES)}"
            )
        return chosen

    @cached_property
    def model(self) -> LanguageModel:
        """The language model, loaded on first use and shared by the evaluators that use it."""
        spec: str = self.settings["model"]
        bare = spec.removesuffix(BF16)
        source = trusted_sources.trust(str(gemma_folder())) if bare == GEMMA else bare
        trusted_sources.check(source)
        return self.model_class.shared(source + spec.removeprefix(bare), self.device, name=spec)

    @property
    def engine(self) -> str:
        return f"w:{'+'.join(self.model.hashes)}"

    @property
    def signature(self) -> str:
        return super().signature.encode("unicode_escape").decode("ascii")  # a separator may be a line break

    def values(self, samples: Sequence[Sample]) -> Scored:
        tokens = self._tokens(samples)
        return Scored(self._values(tokens), np.array([sample.truncated for sample in tokens]))

    def _values(self, tokens: Sequence[Tokens]) -> Floats:
        """Scores of tokenised samples, float64 (n,)."""
        return self._log_p(tokens)

    def _tokens(self, samples: Sequence[Sample]) -> list[Tokens]:
        turns = self.settings["context_turns"]
        return self.model.tokens(
            [(sample.context[-turns:], sample.response) for sample in samples],
            separator=self.settings["separator"],
            max_length=self.settings["max_length"],
            speakers=_names(self.settings.get("speakers", "")),
        )

    def _log_p(self, tokens: Sequence[Tokens]) -> Floats:
        """Mean, or sum, of the log-probabilities (natural) of each response's tokens, float64 (n,)."""
        counts = np.array([len(sample.response) for sample in tokens])
        sums = self.model.log_likelihoods(tokens, self.batch_size)
        per = np.maximum(counts, 1) if self.settings.get("aggregate", "mean") == "mean" else 1
        return np.where(counts > 0, sums / per, -math.log(self.model.vocabulary))


class Causal(Likelihood):
    """An evaluator by a causal model: log p(token | the context's last turns and the response so far).

    The default model is Gemma 3 270M (4 bits, packaged; pip install 'ssrem[lm]'); others are named by name or
    folder. The text starts with the model's begin-of-text token (its end-of-text token if it has no other), each turn
    ends with the separator, and the response follows. The response's end is not scored.

    speakers: names joined by "+" that alternate, as in a script: "A+B" gives "B: how are you?", then "A:" and the
    response, so that a model that was trained on scripts expects an answer. "" for turns without names.
    """

    model_class: ClassVar[type[LanguageModel]] = CausalModel
    defaults: ClassVar[Mapping[str, Any]] = {**Likelihood.defaults, "model": GEMMA, "speakers": "A+B"}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        if not isinstance(chosen["speakers"], str) or not all(_names(chosen["speakers"])):
            raise EvaluatorError(
                f"{cls.name}: speakers is {chosen['speakers']!r}; expected names joined by +, or nothing"
            )
        return chosen

    def _pmi(self, tokens: Sequence[Tokens], coherence: Floats) -> Floats:
        """`coherence`, the tokens' log-probability after the context, minus that without a context."""
        return coherence - self._log_p([replace(sample, context=sample.opening) for sample in tokens])


class LmCoherence(Causal):
    """Mean log-probability of the response's tokens given the context (GPT2-coherence).

    aggregate: 'mean', or 'sum' over the tokens.
    """

    name: ClassVar[str] = "lm-coherence"
    source: ClassVar[str] = "Pang et al. 2020, context coherence; GPT2-coherence of Park et al. 2021"
    defaults: ClassVar[Mapping[str, Any]] = {**Causal.defaults, "aggregate": "mean"}


class LmPmi(Causal):
    """Pointwise mutual information of response and context: log p(response | context) − log p(response).

    aggregate: 'mean' over the response's tokens, or 'sum'. 0 without a context.
    """

    name: ClassVar[str] = "lm-pmi"
    source: ClassVar[str] = "MMI-antiLM of Li et al. 2016 with λ = 1, per token"
    defaults: ClassVar[Mapping[str, Any]] = {**Causal.defaults, "aggregate": "mean"}
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def _values(self, tokens: Sequence[Tokens]) -> Floats:
        return self._pmi(tokens, self._log_p(tokens))


class LmSum(Causal):
    """`lm-coherence` plus `lm-pmi`, each standardised by a mean and a standard deviation.

    These are settings, never computed from the samples that are scored: they are known for the packaged model;
    for another model use `calibrate`.
    """

    name: ClassVar[str] = "lm-sum"
    source: ClassVar[str] = "ssrem: standardised sum of lm-coherence and lm-pmi"
    defaults: ClassVar[Mapping[str, Any]] = {**Causal.defaults, **dict.fromkeys(_SCALES)}
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.settings[_SCALES[0]] is None and (
            known := CALIBRATIONS.get(self.settings["model"].removesuffix(BF16))
        ):
            self.settings |= zip(_SCALES, known, strict=True)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        scales = {name: chosen[name] for name in _SCALES if chosen[name] is not None}
        if 0 < len(scales) < len(_SCALES):
            raise EvaluatorError(
                f"lm-sum: {', '.join(scales)} given, but all are needed: {', '.join(_SCALES)}"
            )
        for name, value in scales.items():
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number or (name.endswith("deviation") and value <= 0):
                wanted = "a number above 0" if name.endswith("deviation") else "a number"
                raise EvaluatorError(f"lm-sum: {name} is {value!r}; expected {wanted}")
        return chosen

    def calibrate(self, samples: Sequence[Sample]) -> Self:
        """A copy of the evaluator with the means and deviations of these samples' scores.

        samples: some hundred responses, without human ratings; not those that will be scored.
        """
        tokens = self._tokens([sample for sample in samples if sample.context])
        coherence = self._log_p(tokens)
        pmi = self._pmi(tokens, coherence)
        if not tokens or min(coherence.std(), pmi.std()) < _LEAST_DEVIATION:
            raise EvaluatorError(
                f"lm-sum: {len(tokens)} samples with a context do not suffice for a calibration, their scores do "
                "not differ; give some hundred different responses"
            )
        values = (coherence.mean(), coherence.std(), pmi.mean(), pmi.std())
        scales = {name: float(f"{value:.6g}") for name, value in zip(_SCALES, values, strict=True)}
        settings = {**self.settings, **scales, "device": self.device, "batch_size": self.batch_size}
        return type(self)(**settings)

    def _values(self, tokens: Sequence[Tokens]) -> Floats:
        scales = [self.settings[name] for name in _SCALES]
        if None in scales:
            raise EvaluatorError(
                f"lm-sum is not calibrated for model {self.settings['model']}: call calibrate on some hundred "
                f"unlabelled samples and use what it returns, or give {', '.join(_SCALES)}"
            )
        coherence = self._log_p(tokens)
        pmi = self._pmi(tokens, coherence)
        value: Floats = (coherence - scales[0]) / scales[1] + (pmi - scales[2]) / scales[3]
        return value


class MlmLikelihood(Likelihood):
    """Pseudo-log-likelihood of the response given the context (BERT-MLM): each of its tokens is masked in turn.

    `model` must be a masked language model with a trained head, and is run once a token. aggregate: 'mean' over the
    tokens, or 'sum' as Park et al. 2021 describe BERT-MLM.
    """

    name: ClassVar[str] = "mlm-likelihood"
    source: ClassVar[str] = "Salazar et al. 2020, section 2; BERT-MLM of Park et al. 2021"
    defaults: ClassVar[Mapping[str, Any]] = {**Likelihood.defaults, "batch_size": 16, "aggregate": "mean"}
    model_class: ClassVar[type[LanguageModel]] = MaskedModel


def _names(speakers: str) -> tuple[str, ...]:
    """The names of the setting `speakers`."""
    return tuple(name.strip() for name in speakers.split("+")) if speakers else ()
