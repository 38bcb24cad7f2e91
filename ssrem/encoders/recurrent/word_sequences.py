"""Texts as sequences of word vectors, stored end to end and padded only in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.samples import Encode, Floats, Rows
from ssrem.tokenize import words


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

        needed: bool (m,), the texts that are split into words; the others become empty.
        """
        rows: dict[str, int] = {}
        ids: list[int] = []
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        for position in range(len(texts)):
            if needed is None or needed[position]:
                ids.extend(rows.setdefault(word, len(rows)) for word in words(texts[position]))
            ends[position + 1] = len(ids)
        # At least one text, so that the vectors have their dimensions.
        vectors = np.asarray(encode(list(rows) or [""]), dtype=np.float32)[: len(rows)]
        known = vectors.any(axis=1)
        renumbered = np.cumsum(known, dtype=np.int32) * known
        renamed = renumbered[np.asarray(ids, dtype=np.int64)]
        before = np.concatenate([[0], np.cumsum(renamed > 0)])
        padding = np.zeros((1, vectors.shape[1]), dtype=np.float32)
        known_ids = renamed[renamed > 0].astype(np.int32)
        return cls(known_ids, before[ends], np.concatenate([padding, vectors[known]]))

    def text(self, row: int) -> Floats:
        """Vectors of one text's words, float64 (k, d)."""
        return self.vectors[self.ids[self.ends[row] : self.ends[row + 1]]].astype(np.float64)


@dataclass(frozen=True)
class Stretches:
    """Stretches of `Words.ids`, ids[start:stop] each; int64 (n,). cut: bool (n,), whether words were cut off."""

    start: Rows
    stop: Rows
    cut: NDArray[np.bool_]

    def of(self, rows: Rows) -> Stretches:
        """The stretches at `rows`."""
        return Stretches(self.start[rows], self.stop[rows], self.cut[rows])

    @property
    def lengths(self) -> Rows:
        """Words in each, int64 (n,)."""
        return self.stop - self.start

    def padded(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """Their word ids, int64 (n, t), t the length of the longest, at least 1; 0 after the end of a stretch."""
        at = self.start[:, None] + np.arange(max(int(self.lengths.max(initial=0)), 1))
        taken = np.append(ids, np.int32(0)).astype(np.int64)[np.minimum(at, len(ids))]
        return np.where(at < self.stop[:, None], taken, 0)


def first_words(words: Words, count: int, limit: int) -> Stretches:
    """The first `limit` words of each of the first `count` texts."""
    first, last = words.ends[:count], words.ends[1 : count + 1]
    stop = np.minimum(last, first + limit)
    return Stretches(first, stop, stop < last)
