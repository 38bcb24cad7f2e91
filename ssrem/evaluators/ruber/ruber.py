"""RUBER: unreferenced and hybrid (Tao et al. 2018; reimplemented by Zhao et al. 2020, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores, Training
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.scaling import unit_range
from ssrem.evaluators.ruber.config import COMBINATIONS, RuberConfig
from ssrem.evaluators.ruber.layout import lay_candidates, lay_samples
from ssrem.evaluators.ruber.referenced import pooled_cosine
from ssrem.evaluators.ruber.state import State
from ssrem.samples import TEST, Candidates, Encode, Floats, Progress, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.ruber.model import RuberNet

_CHUNK = 10_000


class RuberUnref(Encoding[State]):
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
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels"})
    config_class: ClassVar[type[Any]] = RuberConfig
    form: ClassVar[str] = "ssrem-ruber-1"
    config: RuberConfig

    def __init__(self, encoder: Encoder | None, config: RuberConfig | None = None) -> None:
        super().__init__(encoder, config)
        self._net: RuberNet | None = None

    def set_state(self, state: State) -> None:
        from ssrem.evaluators.ruber.model import RuberNet

        self._net = RuberNet.of(state.tensors, self.encoder.dimensions, self.config)
        super().set_state(state)

    def _about(self, state: State) -> str:
        settings = self.config
        return (
            f"f:gru|enc:{self.encoder.signature}|ctx:{settings.context_turns}"
            f"|words:{settings.context_words}+{settings.response_words}|neg:Rand{self._mixing()}"
            f"|tuned:{state.tuned}"
        )

    def fit(
        self,
        candidates: Candidates,
        *,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        encode: Encode | None = None,
    ) -> Training:
        """Learn the network on the train split; choose the epoch and fit the bounds on the valid split."""
        from ssrem.evaluators.ruber.fit import fit

        reading = (encode or self.encoder.encode, self.encoder.dimensions)
        state, self.training = fit(self.name, candidates, *reading, self.config, progress, checkpoint)
        self.set_state(state)
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
        from ssrem.evaluators.ruber.fit import tune

        tuned = type(self)(self.encoder, self.config)
        reading = (encode or self.encoder.encode, self.encoder.dimensions)
        state, tuned.training = tune(self.name, annotated, scale, self.state, *reading, self.config, progress)
        tuned.set_state(state)
        return tuned

    def components(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        """f and f_unit; the other parts are NaN."""
        f, truncated = self._f(samples, encode)
        return Scores.of(truncated, f=f, f_unit=self.f_unit(f))

    def score_candidates(
        self, candidates: Candidates, split: int | None = TEST, *, encode: Encode | None = None
    ) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing."""
        from ssrem.evaluators.ruber.model import scores

        net = self._network
        columns = CandidateColumns.of(candidates, split)
        joined, present = columns.joined, columns.joined >= 0
        laid = lay_candidates(candidates, columns.rows, joined, encode or self.encoder.encode, self.config)
        f = np.full(joined.shape, np.nan)
        f[present] = scores(net, laid, np.stack([np.nonzero(present)[0], joined[present]], axis=1))
        return columns.by_kind(f)

    def _state_of(self, saved: Saved) -> State:
        return State(saved.tensors, saved.bounds["f"], saved.bounds["g"], saved.about["tuned"])

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
    highest value seen on the validation split when it was fitted.
    """

    name: ClassVar[str] = "ruber"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    source: ClassVar[str] = "Tao et al. 2018; Zhao et al. 2020, section 3 and 5.2"

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
