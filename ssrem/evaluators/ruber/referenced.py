"""RUBER's referenced part: cosine similarity of the pooled words of response and reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ssrem.encoders import load_encoder
from ssrem.encoders.base import Encoder
from ssrem.encoders.recurrent import Words
from ssrem.evaluators.core.metric import Metric, Scored, check_text
from ssrem.samples import Floats, Sample

_CHUNK = 20_000


class RuberRef(Metric):
    """g: cosine of response and reference, each pooled to the maximum and the minimum of its words' vectors.

    In [-1, 1]; 0 if either has no known word. Nothing is truncated or padded.
    """

    name: ClassVar[str] = "ruber-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "Tao et al. 2018, referenced metric"
    defaults: ClassVar[Mapping[str, Any]] = {"encoder": "glove-6b-50d"}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        check_text(cls.name, "encoder", chosen["encoder"])
        return chosen

    @cached_property
    def _encoder(self) -> Encoder:
        return load_encoder(self.settings["encoder"])

    @property
    def engine(self) -> str:
        return f"{self._encoder.signature}|{self._encoder.unit}"

    def values(self, samples: Sequence[Sample]) -> Scored:
        responses = [sample.response for sample in samples]
        references = [sample.reference or "" for sample in samples]
        return Scored(pooled_cosine(responses, references, self._encoder))


def pooled_cosine(responses: Sequence[str], references: Sequence[str], encoder: Encoder) -> Floats:
    """Cosine of [max; min] over the word vectors of each response and reference, float64 (n,) in [-1, 1].

    0 if a text has no known word (Tao et al. 2018, referenced metric).
    """
    result = np.zeros(len(responses))
    for first in range(0, len(responses), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        texts = list(dict.fromkeys([*responses[chunk], *references[chunk]]))
        place = {text: row for row, text in enumerate(texts)}
        unit = _pooled(Words.of(texts, encoder))
        for position, (one, other) in enumerate(zip(responses[chunk], references[chunk], strict=True)):
            result[first + position] = unit[place[one]] @ unit[place[other]]
    return np.clip(result, -1.0, 1.0)


def _pooled(words: Words) -> Floats:
    """[max; min] of each text's words, of unit length, float64 (m, 2d); zero for a text without a known word."""
    pooled = np.zeros((len(words.ends) - 1, 2 * words.vectors.shape[1]))
    for row in range(len(pooled)):
        vectors = words.text(row)
        if len(vectors):
            both = np.concatenate([vectors.max(axis=0), vectors.min(axis=0)])
            pooled[row] = both / np.linalg.norm(both)
    return pooled
