"""ADEM: the response compared with the context, the reference or both in a learned space (Lowe et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ssrem.encoders import DEFAULT_ENCODER, Encoder
from ssrem.evaluators.adem_space import MATRICES, Space
from ssrem.evaluators.base import EvaluatorSettings, Scores, Trained
from ssrem.samples import Sample
from ssrem.settings import Count, Natural, Positive, Seed

_CHUNK = 10_000


class AdemSettings(EvaluatorSettings):
    """Settings of ADEM.

    The paper's recurrent networks have 2,000 units and see 60,000 batches before the KL divergence has its full
    weight; these defaults train in minutes on a CPU.
    """

    pretrained: Literal["vhred", "encoder"] = "vhred"
    """where vectors of contexts and responses come from: vhred, a hierarchical recurrent encoder that `fit` trains as a
    dialogue model; encoder, the given encoder as it is"""
    context_turns: Count = 5
    """number of last turns that are read"""
    turn_words: Count = 50
    """number of known words of a turn that are read, the first ones, with vhred alone"""
    utterance: Count = 128
    """utterance, context, decoder: units of the three recurrent networks; latent: dimensions of a turn's Gaussian
    variable"""
    context: Count = 256
    decoder: Count = 128
    latent: Count = 32
    vocabulary: Count = 2_000
    """number of words that the decoder predicts, the most frequent ones; all others are one class"""
    word_drop: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """share of the decoder's input words that are hidden from it"""
    anneal_steps: Natural = 400
    """number of batches over which the weight of the KL divergence rises linearly from 0 to 1"""
    epochs: Count = 8
    batch_size: Count = 16
    learning_rate: Positive = 0.005
    max_train: Count = 1_600
    """stretches of conversation per epoch, each of at most `context_turns` + 1 turns; the next epoch takes those that
    follow"""
    max_valid: Count = 500
    """responses of the validation split that the loss, α and β are computed on"""
    patience: Count = 2
    """epochs without a lower validation loss before training stops, from the epoch in which the KL divergence has its
    full weight"""
    components: Count = 50
    """number of principal components that vectors are projected on"""
    pca_rows: Count = 2_000
    """responses of the training split that, with their contexts, give the principal components"""
    gamma: Annotated[float, Field(ge=0, le=1e9)] = 0.075
    """weight of ‖M‖ + ‖N‖ in the loss on human scores; this and the settings that follow, except seed, are for learning
    from human scores"""
    length_bins: Count = 4
    """bins of response length that are over-sampled to one size within each human score"""
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """share of the contexts that is held out to choose the epoch"""
    tune_epochs: Count = 60
    tune_batch_size: Count = 32
    tune_learning_rate: Positive = 0.01
    tune_patience: Count = 10
    seed: Seed = 0


class Adem(Trained):
    """score = (cᵀMr̂ + rᵀNr̂ - α) / β, with the vectors of context c, response r̂ and reference r (eq. 1).

    The vectors are projected on principal components, 50 by default. Before that they are the last states of a
    hierarchical recurrent encoder, which `fit` pretrains as a dialogue model (VHRED) over the encoder's frozen word
    vectors, or with pretrained=encoder the encoder's own vectors of texts. M and N are the identity until `tuned_on`
    learns them; it leaves the recurrent encoder as it is.

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
    settings_model: ClassVar[type[EvaluatorSettings]] = AdemSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "candidates+labels"})
    default_encoder: ClassVar[str | None] = DEFAULT_ENCODER
    form: ClassVar[str] = "ssrem-adem-2"
    learned_by: ClassVar[str] = "ssrem.evaluators.adem_training"
    encoder: Encoder
    space: Space
    net: Any = None
    """The recurrent encoder, a GruNetwork; None for pretrained=encoder."""

    @property
    def pieces(self) -> list[str]:
        """The parts of the score that have a matrix, M or N: "f", "g" or both."""
        return [part for part in self.parts if part in MATRICES]

    def _about(self) -> str:
        chosen = self.settings
        words = f"|{self.encoder.unit}:{chosen.turn_words}" if chosen.pretrained == "vhred" else ""
        return (
            f"{chosen.pretrained}|enc:{self.encoder.signature}|ctx:{chosen.context_turns}{words}"
            f"|pca:{self.space.axes.shape[1]}|tuned:{self.tuned}"
        )

    def _check(self) -> None:
        net, size = None, self.encoder.dimensions
        if self.settings.pretrained == "vhred":
            from ssrem.evaluators.adem_training import GruNetwork

            net = GruNetwork.of(self.tensors, size, self.settings.utterance, self.settings.context)
            size = self.settings.context
        self.net, self.space = net, Space.of(self.tensors, self.pieces, size)

    def compute(self, samples: Sequence[Sample]) -> Scores:
        products = {part: np.zeros(len(samples)) for part in self.pieces}
        truncated = np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at, chunk = slice(first, first + _CHUNK), samples[first : first + _CHUNK]
            vectors = self.space.read(chunk, self.encoder, self.net, self.settings)
            truncated[at] = vectors.cut if self.net else self._too_long(chunk)
            for part, values in self.space.products(vectors).items():
                products[part][at] = values
        if "g" in products:
            products["g"][[sample.reference is None for sample in samples]] = np.nan
        shares = self.space.shares(products)
        units = {f"{part}_unit": self.bounds[part].unit(share) for part, share in shares.items()}
        mixed = {"h": self.space.score(products)} if "h" in self.parts else {}
        return Scores.of(truncated, **shares, **units, **mixed)

    def _too_long(self, samples: Sequence[Sample]) -> NDArray[np.bool_]:
        """Whether the encoder truncates a text of the sample, bool (n,)."""
        read = [
            (
                sample.response,
                *(sample.context[-self.settings.context_turns :] if "f" in self.parts else ()),
                *([sample.reference or ""] if "g" in self.parts else ()),
            )
            for sample in samples
        ]
        texts = list({text: None for row in read for text in row})
        long = dict(zip(texts, self.encoder.truncated(texts), strict=True))
        return np.array([any(long[text] for text in row) for row in read], dtype=bool)


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
