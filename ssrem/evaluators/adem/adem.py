"""ADEM: the response compared with the context, the reference or both in a learned space (Lowe et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.state import MATRICES, Reader, State, bilinear, context_rows
from ssrem.evaluators.base import Scores
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.scaling import unit_range
from ssrem.evaluators.core.state import Run
from ssrem.samples import TEST, Candidates, Encode, Floats, Rows, Sample
from ssrem.training import Training

if TYPE_CHECKING:
    from ssrem.encoders.gru import GruNetwork

_CHUNK = 10_000


class Adem(Encoding[State]):
    """score = (cᵀMr̂ + rᵀNr̂ - α) / β of context c, response r̂ and reference r (eq. 1).

    The vectors are 50 principal components of the last states of a hierarchical recurrent encoder, which `fit`
    pretrains as a dialogue model (VHRED) over the encoder's frozen word vectors, or of the encoder's own vectors of
    texts. M and N are the identity until `fine_tuned` learns them, which leaves the recurrent encoder as it is.

    h is this score, NaN without a reference; f = cᵀMr̂ / β and g = rᵀNr̂ / β, so h = f + g - α / β. Scores are on the
    paper's scale, 1 to 5, but can lie beyond it. A context, response or reference without a known word has the mean
    of all vectors, so its product is 0. A sample is `truncated` if a turn that is read has more than `turn_words`
    known words or, without a recurrent encoder, is longer than the encoder reads.
    """

    name: ClassVar[str] = "adem"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    source: ClassVar[str] = "Lowe et al. 2017, section 4, eq. 1 and 2; pretraining of Serban et al. 2017"
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "candidates+labels"})
    config_class: ClassVar[type[Any]] = AdemConfig
    form: ClassVar[str] = "ssrem-adem-1"
    config: AdemConfig

    def _about(self, state: State) -> str:
        settings = self.config
        words = f"|{self.encoder.unit}:{settings.turn_words}" if settings.pretrained == "vhred" else ""
        return (
            f"{settings.pretrained}|enc:{self.encoder.signature}|ctx:{settings.context_turns}{words}"
            f"|pca:{state.projection.axes.shape[1]}|tuned:{state.tuned}"
        )

    def _fit(self, candidates: Candidates, run: Run) -> tuple[State, Training]:
        from ssrem.evaluators.adem.fit import fit

        return fit(self, candidates, run)

    def _tune(
        self, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float], run: Run
    ) -> tuple[State, Training]:
        from ssrem.evaluators.adem.tune import tune

        return tune(self.name, annotated, scale, self.state, self._reader(run.encode), run)

    def _network(self, state: State) -> GruNetwork | None:
        settings, size, net = self.config, self.encoder.dimensions, None
        if settings.pretrained == "vhred":
            from ssrem.encoders.gru import GruNetwork

            net = GruNetwork.of(state.encoder, size, settings.utterance, settings.context)
            size = settings.context
        if len(state.projection.mean) != size:
            raise EvaluatorError(
                f"{self.name}: a projection of {len(state.projection.mean)} dimensions does not fit {size}"
            )
        return net

    def compute(self, samples: Sequence[Sample]) -> Scores:
        state = self.state
        products = {part: np.zeros(len(samples)) for part in self._pieces()}
        truncated = np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            vectors = self._reader(self.encoder.encode).samples(samples[at], state.matrices, state.projection)
            truncated[at] = vectors.cut if self.net else self._too_long(samples[at])
            for part, values in state.products(vectors).items():
                products[part][at] = values
        if "g" in products:
            products["g"][[sample.reference is None for sample in samples]] = np.nan
        shares = state.shares(products)
        units = {f"{part}_unit": unit_range(share, state.bounds[part]) for part, share in shares.items()}
        mixed = {"h": state.score(products)} if "h" in self.parts else {}
        return Scores.of(truncated, **shares, **units, **mixed)

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        columns = CandidateColumns.of(candidates, split)
        f = np.full(columns.joined.shape, np.nan)
        for first in range(0, len(columns.rows), _CHUNK):
            at = slice(first, first + _CHUNK)
            f[at] = self._of_rows(
                candidates, columns.rows[at], columns.joined[at], self._reader(self.encoder.encode)
            )
        return columns.by_kind(f)

    def _state_of(self, saved: Saved) -> State:
        bounds = {part: saved.bounds[part] for part in self._pieces()}
        return State.of(saved.tensors, bounds, saved.about["tuned"])

    def _reader(self, encode: Encode | None) -> Reader:
        return Reader(self.encoder, encode or self.encoder.encode, self.config, self.net)

    @classmethod
    def _pieces(cls) -> tuple[str, ...]:
        """The parts with a matrix: "f", "g" or both."""
        return tuple(part for part in cls.parts if part in MATRICES)

    def _too_long(self, samples: Sequence[Sample]) -> NDArray[np.bool_]:
        """Whether the encoder truncates a text of the sample, bool (n,)."""
        read = [
            (
                sample.response,
                *(sample.context[-self.config.context_turns :] if "f" in self.parts else ()),
                *([sample.reference or ""] if "g" in self.parts else ()),
            )
            for sample in samples
        ]
        texts = list({text: None for row in read for text in row})
        long = dict(zip(texts, self.encoder.truncated(texts), strict=True))
        return np.array([any(long[text] for text in row) for row in read], dtype=bool)

    def _of_rows(self, candidates: Candidates, rows: Rows, joined: Rows, reader: Reader) -> Floats:
        """The first part, (n, k), of responses given as rows of the candidates' texts; NaN for a missing one (-1)."""
        state, part, turns = self.state, self.parts[0], self.config.context_turns
        used, place = np.unique(joined[joined >= 0], return_inverse=True)
        compared = candidates.response[rows, None] if part == "g" else context_rows(candidates, rows, turns)
        left, right = (
            state.projection.apply(reader.rows(candidates, dialogues))
            for dialogues in (compared, used[:, None])
        )
        at = np.nonzero(joined >= 0)[0]
        products = np.full(joined.shape, np.nan)
        products[joined >= 0] = bilinear(left[at], state.matrices[part], right[place])
        return state.shares(dict.fromkeys(self._pieces(), products))[part]


class AdemRef(Adem):
    """The referenced part as an evaluator: g = (rᵀNr̂ - α) / β, with α, β and N fitted without the other part."""

    name: ClassVar[str] = "adem-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    source: ClassVar[str] = "Lowe et al. 2017, eq. 1; the part alone as in Zhao et al. 2020, eq. 1"
    parts: ClassVar[tuple[str, ...]] = ("g",)


class AdemUnref(Adem):
    """The unreferenced part as an evaluator: f = (cᵀMr̂ - α) / β, with α, β and M fitted without the other part."""

    name: ClassVar[str] = "adem-unref"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    source: ClassVar[str] = "Lowe et al. 2017, eq. 1; the part alone as in Zhao et al. 2020, eq. 2"
    parts: ClassVar[tuple[str, ...]] = ("f",)
