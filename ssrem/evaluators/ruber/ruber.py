"""RUBER: referenced, unreferenced and hybrid (Tao et al. 2018; reimplemented by Zhao et al. 2020, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores, Training
from ssrem.evaluators.core import saved as checkpoint
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.evaluators.core.scaling import Bounds, unit_range
from ssrem.evaluators.core.word_sequences import lay_candidates, lay_samples, pooled_cosine
from ssrem.evaluators.ruber.config import COMBINATIONS, RuberConfig
from ssrem.samples import TEST, Candidates, Encode, Floats, Progress, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.ruber.model import RuberNet

FORMAT = "ssrem-ruber-1"
_CHUNK = 10_000


class RuberRef(Metric):
    """g: cosine of response and reference, each the maximum and the minimum over its words' vectors.

    In [-1, 1]; 0 where either has no known word. Nothing is truncated, and no padding takes part.
    """

    name: ClassVar[str] = "ruber-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, referenced metric"
    defaults: ClassVar[Mapping[str, Any]] = {"encoder": "glove-6b-50d"}

    @cached_property
    def _encoder(self) -> Encoder:
        from ssrem.encoders import load_encoder

        spec = self.settings["encoder"]
        if not isinstance(spec, str) or not spec:
            raise EvaluatorError(f"{self.name}: encoder is {spec!r}; expected a spec such as glove-6b-50d")
        return load_encoder(spec)

    @property
    def engine(self) -> str:
        return self._encoder.signature

    def values(self, samples: Sequence[Sample]) -> Scored:
        responses = [sample.response for sample in samples]
        references = [sample.reference or "" for sample in samples]
        found = pooled_cosine(responses, references, self._encoder.encode)
        return Scored(found, np.zeros(len(samples), dtype=bool))


@dataclass(frozen=True)
class State:
    """What a fit leaves: the network's weights, the bounds of f and g, on how many human scores it was tuned."""

    weights: Mapping[str, NDArray[np.float32]]
    f_bounds: Bounds
    g_bounds: Bounds
    tuned: int = 0

    @property
    def bounds(self) -> dict[str, Bounds]:
        return {"f": self.f_bounds, "g": self.g_bounds}


class RuberUnref(Fitted[State]):
    """f = sigmoid(MLP([q; qᵀMr; r])), learned by telling true responses from random ones.

    q reads the last `context_turns` turns as one text, r the response, each a bidirectional GRU over frozen
    word vectors. f lies in (0, 1), and is 0.5 where the context or the response has no known word. Known words
    beyond `context_words` (the first ones fall away) or `response_words` (the last ones) are `truncated`.
    It does not see who speaks, so no negative is given away by its speaker. encode: stands in for the encoder,
    as elsewhere, and is given single words.
    """

    name: ClassVar[str] = "ruber-unref"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, unreferenced metric; turns and schedule of Zhao et al. 2020"
    parts: ClassVar[tuple[str, ...]] = ("f",)
    draws: ClassVar[Mapping[str, int]] = {"Rand": 1}
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels"})
    config_class: ClassVar[type[Any]] = RuberConfig
    encoder: Encoder

    config: RuberConfig

    def __init__(self, encoder: Encoder, config: RuberConfig | None = None) -> None:
        super().__init__(encoder, config)
        self._net: RuberNet | None = None

    def keep(self, state: State) -> None:
        """Take over a fitted state."""
        from ssrem.evaluators.ruber.model import RuberNet

        self._net = RuberNet.of(state.weights, self.encoder.dimensions, self.config)
        self._state = state
        self._weights_hash = checkpoint.tensors_hash(state.weights, state.bounds)

    def _about(self, state: State) -> str:
        settings = self.config
        return (
            f"f:gru|enc:{self.encoder.signature}|ctx:{settings.context_turns}"
            f"|words:{settings.context_words}+{settings.response_words}|neg:Rand{self._mixing()}"
            f"|tuned:{state.tuned}"
        )

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, encode: Encode | None = None
    ) -> Training:
        """Learn the network on the train split; choose the epoch and fit the bounds on the valid split."""
        from ssrem.evaluators.ruber import fit as ruber_fit

        reading = (encode or self.encoder.encode, self.encoder.dimensions)
        state, self.training = ruber_fit.fit(self.name, candidates, *reading, self.config, progress)
        self.keep(state)
        return self.training

    def fine_tuned(
        self,
        annotated: Sequence[tuple[Sample, float]],
        *,
        scale: tuple[float, float] = (1.0, 5.0),
        progress: Progress | None = None,
        encode: Encode | None = None,
    ) -> Self:
        """A copy that has learned from human scores too: semi-supervised RUBER (Zhao et al. 2020, section 5.2).

        annotated: samples with their human score. scale: the lowest and highest score a rater could give; f
        learns (score - low) / (high - low) by mean squared error, all weights moving. A tenth of the contexts,
        with all of their responses, is held out and chooses the epoch. The bounds of f become those of
        the annotated samples, the bounds of g stay. This evaluator is left as it is. EvaluatorError for scores
        beyond the scale, or fewer than 10 samples or 5 contexts.
        """
        from ssrem.evaluators.ruber import fit as ruber_fit

        tuned = type(self)(self.encoder, self.config)
        reading = (encode or self.encoder.encode, self.encoder.dimensions)
        state, tuned.training = ruber_fit.tune(
            self.name, annotated, scale, self.state, *reading, self.config, progress
        )
        tuned.keep(state)
        return tuned

    def score(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Floats:
        """f of each sample."""
        return self._f(samples, encode)[0]

    def components(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        """f and f_unit; the other parts are NaN."""
        f, truncated = self._f(samples, encode)
        absent = np.full(len(samples), np.nan)
        return Scores(f, absent, absent, self.f_unit(f), absent, truncated)

    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by the bounds that were fitted once."""
        return unit_range(f, self.state.f_bounds)

    def score_candidates(
        self, candidates: Candidates, split: int | None = TEST, *, encode: Encode | None = None
    ) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing."""
        from ssrem.evaluators.ruber.model import scores

        net = self._network
        found = CandidateColumns.of(candidates, split)
        there = found.joined >= 0
        laid = lay_candidates(
            candidates, found.rows, found.joined, encode or self.encoder.encode, self.config
        )
        pairs = np.stack([np.nonzero(there)[0], found.joined[there]], axis=1)
        f = np.full(found.joined.shape, np.nan)
        f[there] = scores(net, laid, pairs)
        return found.by_kind(f)

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        state = self.state
        checkpoint.write(folder, self, FORMAT, state.weights, state.bounds, card, tuned=state.tuned)

    @classmethod
    def load(cls, folder: Path, *, encoder: Encoder | None = None) -> Self:
        """encoder: one that is loaded already, used where its signature is the model's."""
        saved = checkpoint.read(folder, cls.name, FORMAT, (), encoder, keys=("tuned",))
        evaluator = cls(saved.encoder, RuberConfig.of(saved.about["config"]))
        try:
            evaluator.keep(State(saved.tensors, saved.bounds["f"], saved.bounds["g"], saved.about["tuned"]))
        except EvaluatorError as error:
            raise EvaluatorError(f"{folder}: {error}") from error
        evaluator.training = saved.training
        checkpoint.check_signature(folder, evaluator, saved)
        return evaluator

    def _mixing(self) -> str:
        """What the signature says of the referenced part and the mix."""
        return ""

    @property
    def _network(self) -> RuberNet:
        if self._net is None:
            raise EvaluatorError(f"{self.name} is not trained yet; call fit, or load a saved model")
        return self._net

    def _f(self, samples: Sequence[Sample], encode: Encode | None) -> tuple[Floats, NDArray[np.bool_]]:
        """f, and whether a context or response was cut; a chunk of samples at a time."""
        from ssrem.evaluators.ruber.model import scores

        net = self._network
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            laid, pairs = lay_samples(samples[at], encode or self.encoder.encode, self.config)
            f[at] = scores(net, laid, pairs)
            truncated[at] = laid.contexts.cut[pairs[:, 0]] | laid.responses.cut[pairs[:, 1]]
        return f, truncated


class Ruber(RuberUnref):
    """h: the mix of f and g on the unit range; `combine` says how (min, max, arithmetic, geometric).

    f is `RuberUnref`'s, g is `RuberRef`'s with this evaluator's encoder. Each is scaled by the lowest and the
    highest value seen on the validation split when it was fitted. `score` is h, NaN without a reference.
    """

    name: ClassVar[str] = "ruber"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    source: ClassVar[str] = "Tao et al. 2018; Zhao et al. 2020, section 3 and 5.2"

    def score(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Floats:
        """h of each sample."""
        return self.components(samples, encode=encode).h

    def components(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        """All parts; g and h are NaN for samples without a reference."""
        f, truncated = self._f(samples, encode)
        referenced = np.array([sample.reference is not None for sample in samples], dtype=bool)
        pairs = [(sample.response, sample.reference) for sample in samples if sample.reference is not None]
        g = np.full(len(samples), np.nan)
        g[referenced] = pooled_cosine(
            [pair[0] for pair in pairs], [pair[1] for pair in pairs], encode or self.encoder.encode
        )
        f_unit, g_unit = self.f_unit(f), unit_range(g, self.state.g_bounds)
        return Scores(f, g, combine(self.config.combine, f_unit, g_unit), f_unit, g_unit, truncated)

    def _mixing(self) -> str:
        return f"|g:maxmin|h:{self.config.combine}"


def combine(how: str, f_unit: Floats, g_unit: Floats) -> Floats:
    """The mix of two parts on the unit range, float64 (n,); NaN where one is."""
    if how == "min":
        return np.minimum(f_unit, g_unit)
    if how == "max":
        return np.maximum(f_unit, g_unit)
    if how == "arithmetic":
        return (f_unit + g_unit) / 2
    if how == "geometric":
        return np.sqrt(f_unit * g_unit)
    raise EvaluatorError(f"combine is {how!r}; expected one of {', '.join(COMBINATIONS)}")
