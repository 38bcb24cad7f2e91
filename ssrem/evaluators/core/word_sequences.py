"""Texts as sequences of word vectors, laid end to end: nothing is padded before a batch needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.tokenize import words
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.samples import Candidates, Encode, Floats, Rows, Sample

_CHUNK = 20_000


@dataclass(frozen=True)
class Words:
    """The known words of m texts, in order.

    ids: int32 (w,), rows of `vectors`; text t has ids[ends[t] : ends[t + 1]], so that neighbouring texts are
    one stretch. vectors: float32 (v + 1, d); row 0 is the padding, which no text contains.
    """

    ids: NDArray[np.int32]
    ends: Rows
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Sequence[str], encode: Encode, needed: NDArray[np.bool_] | None = None) -> Words:
        """A word's vector is what `encode` gives for the word by itself; a word with none is left out.

        needed: bool (m,), texts that are to be cut into words; the others become empty.
        """
        rows: dict[str, int] = {}
        ids: list[int] = []
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        for position in range(len(texts)):
            if needed is None or needed[position]:
                ids.extend(rows.setdefault(word, len(rows)) for word in words(texts[position]))
            ends[position + 1] = len(ids)
        # One text at least, for the vectors' size.
        found = np.asarray(encode(list(rows) or [""]), dtype=np.float32)[: len(rows)]
        known = found.any(axis=1)
        renumbered = np.cumsum(known, dtype=np.int32) * known
        renamed = renumbered[np.asarray(ids, dtype=np.int64)]
        kept = np.concatenate([[0], np.cumsum(renamed > 0)])
        padding = np.zeros((1, found.shape[1]), dtype=np.float32)
        return cls(renamed[renamed > 0].astype(np.int32), kept[ends], np.concatenate([padding, found[known]]))

    def text(self, row: int) -> Floats:
        """Vectors of one text's words, float64 (k, d)."""
        return self.vectors[self.ids[self.ends[row] : self.ends[row + 1]]].astype(np.float64)


@dataclass(frozen=True)
class Stretches:
    """Stretches of `Words.ids`, ids[start:stop] each; int64 (n,). cut: bool (n,), whether words fell away."""

    start: Rows
    stop: Rows
    cut: NDArray[np.bool_]

    def of(self, rows: Rows) -> Stretches:
        """Those at `rows`."""
        return Stretches(self.start[rows], self.stop[rows], self.cut[rows])

    @property
    def lengths(self) -> Rows:
        """Words in each, int64 (n,)."""
        return self.stop - self.start

    def padded(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """Side by side, int64 (n, the longest but at least 1), 0 behind their ends."""
        at = self.start[:, None] + np.arange(max(int(self.lengths.max(initial=0)), 1))
        found = np.append(ids, np.int32(0)).astype(np.int64)[np.minimum(at, len(ids))]
        return np.where(at < self.stop[:, None], found, 0)


@dataclass(frozen=True)
class Laid:
    """Words with the contexts and the responses among them."""

    words: Words
    contexts: Stretches
    responses: Stretches

    def known(self, contexts: Rows, responses: Rows) -> NDArray[np.bool_]:
        """Whether both sides of each pair have a known word, bool (n,)."""
        there = (self.contexts.lengths[contexts] > 0) & (self.responses.lengths[responses] > 0)
        return np.asarray(there)


def lay_candidates(
    candidates: Candidates, rows: Rows, wanted: Rows, encode: Encode, config: RuberConfig
) -> Laid:
    """Contexts of `rows`, in order; responses are all texts, those not in `wanted` (any shape, -1: none) empty."""
    start, stop = candidates.context_start[rows], candidates.context_stop[rows]
    start = np.maximum(start, stop - config.context_turns)
    needed = np.zeros(len(candidates.texts), dtype=bool)
    needed[wanted[wanted >= 0]] = True
    for back in range(1, config.context_turns + 1):
        needed[(stop - back)[stop - back >= start]] = True
    words = Words.of(candidates.texts, encode, needed)
    return Laid(words, _contexts(words, start, stop, config), _responses(words, len(needed), config))


def lay_samples(
    samples: Sequence[Sample], encode: Encode, config: RuberConfig
) -> tuple[Laid, NDArray[np.int64]]:
    """Distinct contexts and responses, and each sample's pair of them, int64 (n, 2)."""
    responses = {text: row for row, text in enumerate(dict.fromkeys(sample.response for sample in samples))}
    turns = [sample.context[-config.context_turns :] for sample in samples]
    contexts = {context: row for row, context in enumerate(dict.fromkeys(turns))}
    texts = [*responses, *(turn for context in contexts for turn in context)]
    edges = len(responses) + np.cumsum([0, *(len(context) for context in contexts)])
    words = Words.of(texts, encode)
    laid = Laid(
        words,
        _contexts(words, edges[:-1], edges[1:], config),
        _responses(words, len(responses), config),
    )
    pairs = [
        (contexts[turn], responses[sample.response]) for turn, sample in zip(turns, samples, strict=True)
    ]
    return laid, np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _contexts(words: Words, start: Rows, stop: Rows, config: RuberConfig) -> Stretches:
    first, last = words.ends[start], words.ends[stop]
    kept = np.maximum(first, last - config.context_words)
    return Stretches(kept, last, kept > first)


def _responses(words: Words, count: int, config: RuberConfig) -> Stretches:
    first, last = words.ends[:count], words.ends[1 : count + 1]
    kept = np.minimum(last, first + config.response_words)
    return Stretches(first, kept, kept < last)


def pooled_cosine(responses: Sequence[str], references: Sequence[str], encode: Encode) -> Floats:
    """RUBER's referenced part, float64 (n,) in [-1, 1]: cosine of [max; min] over each text's word vectors.

    0 where a text has no known word (Tao et al. 2018, referenced metric).
    """
    result = np.zeros(len(responses))
    for first in range(0, len(responses), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        texts = list(dict.fromkeys([*responses[chunk], *references[chunk]]))
        place = {text: row for row, text in enumerate(texts)}
        unit = _pooled(Words.of(texts, encode))
        for position, (one, other) in enumerate(zip(responses[chunk], references[chunk], strict=True)):
            result[first + position] = unit[place[one]] @ unit[place[other]]
    return np.clip(result, -1.0, 1.0)


def _pooled(words: Words) -> Floats:
    """[max; min] of each text's words at unit length, float64 (m, 2d); zero where there is no known word."""
    pooled = np.zeros((len(words.ends) - 1, 2 * words.vectors.shape[1]))
    for row in range(len(pooled)):
        vectors = words.text(row)
        if len(vectors):
            both = np.concatenate([vectors.max(axis=0), vectors.min(axis=0)])
            pooled[row] = both / np.linalg.norm(both)
    return pooled
