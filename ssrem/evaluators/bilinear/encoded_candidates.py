"""Contexts and candidate responses as rows of one table of vectors: held once, gathered a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.samples import Floats, Rows

_CHUNK = 5_000
ABSENT = -1e30
"""Score of a missing candidate: as minus infinity in a softmax, but its gradients are numbers."""


@dataclass(frozen=True)
class EncodedCandidates:
    """Responses with their contexts and candidates, as rows of `vectors`.

    vectors: float16 (m, d), one a turn; encoders give values that float16 holds exactly. start, stop (n,): the turns of
    the context. candidates (n, k): -1 for a missing one. turns: how many of the last turns of a context count.
    """

    vectors: NDArray[np.float16]
    start: Rows
    stop: Rows
    candidates: Rows
    turns: int

    def __len__(self) -> int:
        return len(self.candidates)

    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""
        return [self.vectors, self.start, self.stop, self.candidates]

    def last_turns(self, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Vectors of the last turns, newest first, float32 (b, turns, d), zero for those that are not known, and which
        are, (b, turns): they belong to the context and have a known word."""
        back = last_turns(self.start[rows], self.stop[rows], self.turns)
        taken = self.vectors[np.maximum(back, 0)].astype(np.float32)
        known = (back >= 0) & taken.any(axis=-1)
        taken *= known[:, :, None]
        return taken, known

    def contexts(self, rows: Rows) -> NDArray[np.float32]:
        """V(c), float32 (b, d): the mean over the last turns that have a known word; zero where none has."""
        taken, known = self.last_turns(rows)
        counts = np.maximum(known.sum(axis=1), 1).astype(np.float32)
        mean: NDArray[np.float32] = taken.sum(axis=1) / counts[:, None]
        return mean

    def responses(self, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """V(r) of the candidates, float32 (b, k, d), and which of them exist (b, k)."""
        wanted = self.candidates[rows]
        return self.vectors[np.maximum(wanted, 0)].astype(np.float32), wanted >= 0


def last_turns(start: Rows, stop: Rows, turns: int) -> Rows:
    """Rows of the last `turns` turns of each context start:stop, newest first (n, turns); -1 before its start."""
    back = stop[:, None] - np.arange(1, turns + 1)
    rows: Rows = np.where(back >= start[:, None], back, -1)
    return rows


def products(matrix: NDArray[Any], cases: EncodedCandidates) -> Floats:
    """V(c)ᵀ M V(r) of all candidates, float64 (n, k), NaN for -1; in doubles no order of sums shows."""
    result = np.empty(cases.candidates.shape)
    for first in range(0, len(cases), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(cases)))
        responses, present = cases.responses(rows)
        context = cases.contexts(rows).astype(np.float64) @ matrix.astype(np.float64)
        result[rows] = np.where(
            present, np.einsum("nd,nkd->nk", context, responses.astype(np.float64)), np.nan
        )
    return result
