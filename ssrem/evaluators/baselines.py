"""Baselines that learn nothing: the similarity of a response to the last turns, and the length of a response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.metric import EncodedMetric, EncoderSettings, Metric, MetricScores
from ssrem.evaluators.similarity import row_cosines
from ssrem.samples import Sample
from ssrem.settings import Count


class CosineSettings(EncoderSettings):
    """Settings of `Cosine`."""

    context_turns: Count = 2
    """how many of the last turns are read"""
    join: Literal["mean", "text"] = "mean"
    """text: the cosine with those turns joined to one text by a space; mean: the mean of that and of the cosine with
    the last turn only"""


class Cosine(EncodedMetric):
    """Cosine of the vectors of the last turns and of the response.

    A response answers the last turn, but if that is "yes, I do", only the turn before shows the topic. So the default,
    'mean' of 2 turns, uses both; it was not tuned. Blank turns are skipped. The score is 0 if no turn is left, or if
    one of the vectors is zero because the encoder knows no word of the text. A sample is `truncated` if one of its
    texts is longer than the encoder reads; the end of that text is left out.
    """

    name: ClassVar[str] = "cosine"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "a sentence encoder as it comes (Reimers and Gurevych 2019, section 3)"
    settings_model: ClassVar[type[EvaluatorSettings]] = CosineSettings

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        row: dict[str, int] = {}
        responses = np.array(
            [row.setdefault(sample.response, len(row)) for sample in samples], dtype=np.int64
        )
        queries = [
            (at, query) for at, sample in enumerate(samples) for query in self._queries(sample.context)
        ]
        position = np.array([at for at, _ in queries], dtype=np.int64)
        read = np.array([row.setdefault(query, len(row)) for _, query in queries], dtype=np.int64)
        vectors, long = self.encoder.encode(list(row)), self.encoder.truncated(list(row))
        cosines = np.clip(row_cosines(vectors[read], vectors[responses[position]]), -1, 1)
        totals = np.bincount(position, weights=cosines, minlength=len(samples))
        counts = np.bincount(position, minlength=len(samples))
        cut = long[responses]
        np.logical_or.at(cut, position, long[read])
        return MetricScores(totals / np.maximum(counts, 1), cut)

    def _queries(self, context: Sequence[str]) -> list[str]:
        """The texts to compare the response with; none if all turns are blank."""
        turns = [turn for turn in context if turn.strip()][-self.settings.context_turns :]
        if not turns:
            return []
        joined = " ".join(turns)
        return [joined] if self.settings.join == "text" else [turns[-1], joined]


class Length(Metric):
    """log(1 + number of words of the response): shows how well length alone agrees with human ratings.

    Whether raters prefer long or short responses differs between annotated sets, even in sign, so an evaluator that
    depends on the length agrees with some sets and not with others. A blend uses `length` as a control, see `Blend`.
    Words are separated by blanks.
    """

    name: ClassVar[str] = "length"
    needs: ClassVar[frozenset[str]] = frozenset()
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    source: ClassVar[str] = "ssrem: a control; correlation with length in Lowe et al. 2017, section 5.1"
    engine = "words:blanks"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        words = np.array([len(sample.response.split()) for sample in samples], dtype=np.float64)
        return MetricScores(np.log1p(words))
