"""Similarity of a response to the reference by vectors of texts, sentences or words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import Encoder, load_encoder
from ssrem.encoders.tokenize import sentences, words
from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear.similarity import similarity
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.samples import Floats, Sample

# Pairs, and their characters, that are scored together; a single pair may be longer.
_PAIRS = 2048
_CHARACTERS = 2**18
# Rows of a matrix of cosines that are computed together.
_ROWS = 1024


class PairMetric(Metric):
    """A metric of pairs (response, reference), scored in batches."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})

    def values(self, samples: Sequence[Sample]) -> Scored:
        values, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for here in _slices(samples):
            some = samples[here]
            scored = self._pairs([s.response for s in some], [s.reference or "" for s in some])
            # The cosine of equal vectors may round to slightly more than 1.
            values[here], truncated[here] = np.clip(scored.values, *self.range), scored.truncated
        return Scored(values, truncated)

    @abstractmethod
    def _pairs(self, responses: list[str], references: list[str]) -> Scored:
        """Scores of at least one pair, independent of one another."""


def _slices(samples: Sequence[Sample]) -> Iterator[slice]:
    start = held = 0
    for at, sample in enumerate(samples):
        size = len(sample.response) + len(sample.reference or "")
        if at > start and (at - start == _PAIRS or held + size > _CHARACTERS):
            yield slice(start, at)
            start, held = at, 0
        held += size
    if start < len(samples):
        yield slice(start, len(samples))


class EncoderMetric(PairMetric):
    """A metric over an encoder's vectors; 0 if the encoder knows nothing in one of the texts.

    encoder: a spec for `load_encoder`; the default needs no corpus and takes the papers' unweighted mean of words.
    """

    defaults: ClassVar[Mapping[str, Any]] = {"encoder": "glove-6b-50d:uniform"}

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_text(cls.name, "encoder", {**cls.defaults, **settings}["encoder"])

    @cached_property
    def _encoder(self) -> Encoder:
        return load_encoder(self.settings["encoder"])

    @property
    def engine(self) -> str:
        return self._encoder.signature

    def _pairs(self, responses: list[str], references: list[str]) -> Scored:
        pieces = {text: self._encoded(text) for text in (*responses, *references)}
        distinct = list(dict.fromkeys(piece for some in pieces.values() for piece in some))
        long = {piece for piece, cut in zip(distinct, self._encoder.truncated(distinct), strict=True) if cut}
        cut = {text: not long.isdisjoint(some) for text, some in pieces.items()}
        truncated = [cut[one] or cut[other] for one, other in zip(responses, references, strict=True)]
        return Scored(self._similarity(responses, references), np.array(truncated))

    @abstractmethod
    def _encoded(self, text: str) -> list[str]:
        """The parts of `text` that are encoded."""

    @abstractmethod
    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        """One score a pair."""


class EmbeddingAverage(EncoderMetric):
    """Cosine of the two texts' vectors."""

    name: ClassVar[str] = "emb-average"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.2"

    def _encoded(self, text: str) -> list[str]:
        return [text]

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        # Several responses often share a reference.
        row = {text: at for at, text in enumerate(dict.fromkeys((*responses, *references)))}
        vectors = self._encoder.encode(list(row))
        return similarity(
            "embedding-average",
            self._encoder,
            responses,
            references,
            encode=lambda texts: vectors[[row[text] for text in texts]],
        )


class SentenceMovers(EncoderMetric):
    """exp(-d), d the lowest cost of moving one text's words and sentences to the other's."""

    name: ClassVar[str] = "sms"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Clark et al. 2019, words and sentences; vectors of unit length"

    def _encoded(self, text: str) -> list[str]:
        return sentences(text)

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        return similarity("sms", self._encoder, responses, references)


class _WordMetric(EncoderMetric):
    """A metric over the vectors of words, each encoded on its own."""

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def _encoded(self, text: str) -> list[str]:
        return words(text)

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        words_of = {text: words(text) for text in (*responses, *references)}
        vocabulary = list(dict.fromkeys(word for some in words_of.values() for word in some))
        vectors = self._encoder.encode(vocabulary).astype(np.float64)
        row = {word: at for at, word in enumerate(vocabulary) if vectors[at].any()}
        # The distinct known words of each text, and how often each occurs.
        bags = {
            text: np.unique([row[word] for word in some if word in row], return_counts=True)
            for text, some in words_of.items()
        }
        scores = np.zeros(len(responses))
        for at, (response, reference) in enumerate(zip(responses, references, strict=True)):
            (one, count), (other, other_count) = bags[response], bags[reference]
            if len(one) and len(other):
                scores[at] = self._score((vectors[one], count), (vectors[other], other_count))
        return scores

    @abstractmethod
    def _score(self, one: _Bag, other: _Bag) -> float:
        """The score of two texts that have known words."""


_Bag = tuple[Floats, NDArray[np.int64]]
"""Vectors of distinct words (k, d), none of them zero, and how often each occurs (k,)."""


class EmbeddingGreedy(_WordMetric):
    """Mean over a text's words of the highest cosine with a word of the other, averaged over both directions."""

    name: ClassVar[str] = "emb-greedy"
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.1; Rus and Lintean 2012"

    def _score(self, one: _Bag, other: _Bag) -> float:
        (a, a_count), (b, b_count) = one, other
        nearest_a, nearest_b = nearest(_unit(a), _unit(b))
        return float(np.average(nearest_a, weights=a_count) + np.average(nearest_b, weights=b_count)) / 2


class EmbeddingExtrema(_WordMetric):
    """Cosine of the two texts' extremes: in each dimension the word's value that is farthest from 0."""

    name: ClassVar[str] = "emb-extrema"
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.3; Forgues et al. 2014"

    def _score(self, one: _Bag, other: _Bag) -> float:
        a, b = (_unit(_extremes(vectors)[None]) for vectors, _ in (one, other))
        return float(a[0] @ b[0])


def check_text(evaluator: str, name: str, value: object) -> None:
    """Raise EvaluatorError if the setting `name`, which names a model, is not text."""
    if not isinstance(value, str) or not value:
        raise EvaluatorError(f"{evaluator}: {name} is {value!r}, expected a name or a folder")


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _extremes(vectors: Floats) -> Floats:
    top, bottom = vectors.max(axis=0), vectors.min(axis=0)
    return np.asarray(np.where(top > -bottom, top, bottom))


def nearest(a: NDArray[Any], b: NDArray[Any]) -> tuple[Floats, Floats]:
    """The highest product of each row of a with a row of b, and of each row of b with a row of a."""
    nearest_a, nearest_b = np.empty(len(a)), np.full(len(b), -np.inf)
    for start in range(0, len(a), _ROWS):
        products = a[start : start + _ROWS] @ b.T
        nearest_a[start : start + _ROWS] = products.max(axis=1)
        np.maximum(nearest_b, products.max(axis=0), out=nearest_b)
    return nearest_a, nearest_b
