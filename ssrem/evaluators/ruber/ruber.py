"""RUBER: unreferenced and hybrid (Tao et al. 2018; reimplemented by Zhao et al. 2020, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators.base import Scores
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.scaling import unit_range
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.ruber.config import COMBINATIONS, RuberConfig
from ssrem.evaluators.ruber.referenced import pooled_cosine
from ssrem.samples import TEST, Candidates, Floats, Sample
from ssrem.training import Training

_CHUNK = 10_000


class RuberUnref(Encoding[NetworkState]):
    """f = sigmoid(MLP([q; qᵀMr; r])), learned by telling true responses from random ones: a negative of kind Rand and
    the other responses of the batch.

    q and r are the last states of two bidirectional GRUs over frozen word vectors. The first reads the last
    `context_turns` turns as one text, the second reads the response. f lies in (0, 1); it is 0.5 if the context or the
    response has no known word. A sample is `truncated` if its context has more than `context_words` known words (the
    last ones are read) or its response more than `response_words` (the first ones are read). Speakers are not read, so
    a negative cannot be recognised by its speaker. What is read are the encoder's
    `units`.

    `fine_tuned` is semi-supervised RUBER (Zhao et al. 2020, section 5.2); it needs a fitted evaluator.
    """

    name: ClassVar[str] = "ruber-unref"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, unreferenced metric; turns and schedule of Zhao et al. 2020"
    parts: ClassVar[tuple[str, ...]] = ("f",)
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "candidates+labels"})
    config_class: ClassVar[type[Any]] = RuberConfig
    form: ClassVar[str] = "ssrem-ruber-2"
    config: RuberConfig

    def _about(self, state: NetworkState) -> str:
        settings = self.config
        return (
            f"f:gru|enc:{self.encoder.signature}|ctx:{settings.context_turns}"
            f"|{self.encoder.unit}:{settings.context_words}+{settings.response_words}|neg:Rand+batch{self._mixing()}"
            f"|tuned:{state.tuned}"
        )

    def _fit(self, candidates: Candidates, run: Run) -> tuple[NetworkState, Training]:
        from ssrem.evaluators.ruber.fit import fit

        return fit(self, candidates, run)

    def _tune(
        self, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float], run: Run
    ) -> tuple[NetworkState, Training]:
        from ssrem.evaluators.ruber.fit import tune

        return tune(self, annotated, scale, run)

    def compute(self, samples: Sequence[Sample]) -> Scores:
        f, truncated = self._f(samples)
        return Scores.of(truncated, f=f, f_unit=self.f_unit(f))

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        from ssrem.evaluators.ruber.model import lay_candidates, scores

        net = self.net
        columns = CandidateColumns.of(candidates, split)
        joined, present = columns.joined, columns.joined >= 0
        laid = lay_candidates(candidates, columns.rows, joined, self.encoder, self.config)
        f = np.full(joined.shape, np.nan)
        f[present] = scores(net, laid, np.stack([np.nonzero(present)[0], joined[present]], axis=1))
        return columns.by_kind(f)

    def _network(self, state: NetworkState) -> Any:
        from ssrem.evaluators.ruber.model import RuberNet

        return RuberNet.of(state.tensors, self.encoder.dimensions, self.config)

    def _state_of(self, saved: Saved) -> NetworkState:
        return NetworkState.of(saved)

    def _mixing(self) -> str:
        """The part of the signature about g and h."""
        return ""

    def _f(self, samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.bool_]]:
        """f, and whether a context or response was truncated, (n,) each."""
        from ssrem.evaluators.ruber.model import lay_samples, scores

        net = self.net
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            laid, pairs = lay_samples(samples[at], self.encoder, self.config)
            f[at] = scores(net, laid, pairs)
            truncated[at] = laid.contexts.cut[pairs[:, 0]] | laid.responses.cut[pairs[:, 1]]
        return f, truncated


class Ruber(RuberUnref):
    """h: minimum, maximum, arithmetic or geometric mean of f and g on the unit range, as the setting `combine` says.

    f is that of `RuberUnref`, g that of `RuberRef` with this evaluator's encoder. Each is scaled by its lowest and
    highest value on the validation split of the fit.
    """

    name: ClassVar[str] = "ruber"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    source: ClassVar[str] = "Tao et al. 2018; Zhao et al. 2020, section 3 and 5.2"

    def compute(self, samples: Sequence[Sample]) -> Scores:
        """All parts; g and h are NaN for samples without a reference."""
        f, truncated = self._f(samples)
        responses = [sample.response for sample in samples]
        references = [sample.reference or "" for sample in samples]
        g = pooled_cosine(responses, references, self.encoder)
        g[[sample.reference is None for sample in samples]] = np.nan
        f_unit, g_unit = self.f_unit(f), unit_range(g, self.state.bounds["g"])
        return Scores.of(
            truncated,
            f=f,
            g=g,
            h=COMBINATIONS[self.config.combine](f_unit, g_unit),
            f_unit=f_unit,
            g_unit=g_unit,
        )

    def _mixing(self) -> str:
        return f"|g:maxmin|h:{self.config.combine}"
