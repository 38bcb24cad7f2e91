"""Texts as sequences of word vectors, as the recurrent networks of RUBER and ADEM read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError, one_line
from ssrem.samples import Floats, Rows

if TYPE_CHECKING:
    from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True)
class Words:
    """The known words of m texts, in order, or their tokens if the encoder has vectors of tokens.

    ids: int32 (w,), rows of `vectors`. ends: int64 (m + 1,); text t has ids[ends[t] : ends[t + 1]], so that adjacent
    texts are one stretch. vectors: float32 (v + 1, d); row 0 is the padding, which no text contains.
    """

    ids: NDArray[np.int32]
    ends: Rows
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Sequence[str], encoder: Encoder) -> Words:
        """The texts, split into the `units` of the encoder; units with a zero vector are left out."""
        rows, vectors = encoder.units(texts)
        ends = np.concatenate([[0], np.cumsum([len(text) for text in rows], dtype=np.int64)])
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
        known = vectors.any(axis=1)
        renamed = (np.cumsum(known, dtype=np.int32) * known)[ids]
        before = np.concatenate([[0], np.cumsum(renamed > 0)])
        padding = np.zeros((1, vectors.shape[1]), dtype=np.float32)
        known_ids = renamed[renamed > 0].astype(np.int32)
        return cls(known_ids, before[ends], np.concatenate([padding, vectors[known]]))

    def text(self, row: int) -> Floats:
        """The vectors of the words of the text at `row`, float64 (k, d)."""
        return self.vectors[self.ids[self.ends[row] : self.ends[row + 1]]].astype(np.float64)

    def first(self, count: int, limit: int) -> Stretches:
        """The first `limit` words of each of the first `count` texts."""
        first, last = self.ends[:count], self.ends[1 : count + 1]
        stop = np.minimum(last, first + limit)
        return Stretches(first, stop, stop < last)


@dataclass(frozen=True)
class Stretches:
    """Stretches of `Words.ids`. start, stop: int64 (n,), the bounds of each stretch, ids[start:stop]. cut: bool (n,),
    whether words of its text were cut off."""

    start: Rows
    stop: Rows
    cut: NDArray[np.bool_]

    def of(self, rows: Rows) -> Stretches:
        """The stretches at `rows`."""
        return Stretches(self.start[rows], self.stop[rows], self.cut[rows])

    @property
    def lengths(self) -> Rows:
        """Number of words in each stretch, int64 (n,)."""
        return self.stop - self.start

    def padded(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """The word ids of each stretch, int64 (n, t), with 0 after its end; t is the longest length, at least 1."""
        at = self.start[:, None] + np.arange(max(int(self.lengths.max(initial=0)), 1))
        taken = np.append(ids, np.int32(0)).astype(np.int64)[np.minimum(at, len(ids))]
        return np.where(at < self.stop[:, None], taken, 0)

    def packed(self, words: Words) -> PackedSequence:
        """The word vectors of each stretch, without padding after its end; one padding vector for an empty stretch."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        vectors = torch.from_numpy(words.vectors)[torch.from_numpy(self.padded(words.ids))]
        lengths = torch.from_numpy(np.maximum(self.lengths, 1))
        return pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)


def take_weights(net: Any, weights: Mapping[str, NDArray[Any]], whose: str, dimensions: int) -> None:
    """Set the weights of a network that reads word vectors; EvaluatorError, naming `whose`, if they do not fit."""
    import torch

    try:
        net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    except RuntimeError as error:
        raise EvaluatorError(
            f"{whose} weights do not fit its settings and word vectors of {dimensions} dimensions: {one_line(error)}"
        ) from error


def learned_weights(net: Any) -> dict[str, NDArray[np.float32]]:
    """Copies of the weights of a network, by name."""
    return {name: tensor.detach().numpy().copy() for name, tensor in net.state_dict().items()}
