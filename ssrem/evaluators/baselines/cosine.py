"""Similarity of a response to the last turns by an encoder without training: a baseline for trained evaluators."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ssrem.encoders import Encoder, load_encoder
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.evaluators.reference_based.embedding import check_text
from ssrem.samples import Encode, Floats, Sample

JOINS = ("mean", "text")
# Samples that are scored together. A score does not depend on it.
_SAMPLES = 16_384


class Cosine(Metric):
    """Cosine of the vectors of the last turns and of the response.

    encoder: a spec for `load_encoder`. context_turns: how many of the last turns are read, 1 or more.
    join: 'text', the cosine with those turns joined to one text by a space, or 'mean', the mean of that and of
    the cosine with the last turn only. A response answers the last turn, but if that is "yes, I do", only the turn
    before shows the topic: the default, 'mean' of 2 turns, uses both, and was not tuned.

    Blank turns are skipped. The score is 0 if no turn is left, or the encoder knows nothing in a text. A sample is
    `truncated` if one of its texts is longer than the encoder reads; its end is left out.
    """

    name: ClassVar[str] = "cosine"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "a sentence encoder as it comes (Reimers and Gurevych 2019, section 3)"
    defaults: ClassVar[Mapping[str, Any]] = {"encoder": MINILM, "context_turns": 2, "join": "mean"}
    encoder: Encoder

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.encoder = load_encoder(self.settings["encoder"])
        self._encode: Encode | None = None

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        encoder, turns, join = ({**cls.defaults, **settings}[name] for name in cls.defaults)
        check_text(cls.name, "encoder", encoder)
        if type(turns) is not int or turns < 1:
            raise EvaluatorError(f"{cls.name}: context_turns is {turns!r}, expected a whole number from 1")
        if join not in JOINS:
            raise EvaluatorError(f"{cls.name}: no join {join!r}; one of {', '.join(JOINS)}")

    @property
    def engine(self) -> str:
        return self.encoder.signature

    def components(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        return Metric.components(self._through(encode), samples)

    def values(self, samples: Sequence[Sample]) -> Scored:
        values, cut = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for start in range(0, len(samples), _SAMPLES):
            here = slice(start, start + _SAMPLES)
            scored = self._block(samples[here])
            values[here], cut[here] = scored.values, scored.truncated
        return Scored(values, cut)

    def _block(self, samples: Sequence[Sample]) -> Scored:
        row: dict[str, int] = {}
        queries = [self._queries(sample.context) for sample in samples]
        responses = [row.setdefault(sample.response, len(row)) for sample in samples]
        pairs = np.array(
            [
                (row.setdefault(query, len(row)), response, position)
                for position, response in enumerate(responses)
                for query in queries[position]
            ],
            dtype=np.int64,
        ).reshape(-1, 3)
        texts = list(row)
        vectors = (self._encode or self.encoder.encode)(texts)
        cosines = _cosines(vectors[pairs[:, 0]].astype(np.float64), vectors[pairs[:, 1]].astype(np.float64))
        totals = np.bincount(pairs[:, 2], weights=cosines, minlength=len(samples))
        counts = np.bincount(pairs[:, 2], minlength=len(samples))
        long = self.encoder.truncated(texts)
        cut = long[responses]
        np.logical_or.at(cut, pairs[:, 2], long[pairs[:, 0]])
        return Scored(totals / np.maximum(counts, 1), cut)

    def _queries(self, context: Sequence[str]) -> list[str]:
        """The texts to compare the response with; none if there is no turn."""
        turns = [turn for turn in context if turn.strip()][-self.settings["context_turns"] :]
        if not turns:
            return []
        joined = " ".join(turns)
        return [turns[-1], joined] if self.settings["join"] == "mean" else [joined]

    def _through(self, encode: Encode | None) -> Self:
        """This metric with `encode` instead of the encoder's own."""
        if encode is None:
            return self
        other = copy.copy(self)
        other._encode = encode
        return other


def _cosines(left: Floats, right: Floats) -> Floats:
    """Cosines of the rows, float64 (n,); 0 for a zero vector."""
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = np.einsum("nd,nd->n", left, right)
    cosines = np.divide(products, norms, out=np.zeros(len(norms)), where=norms > 0)
    return np.asarray(np.clip(cosines, -1, 1))
