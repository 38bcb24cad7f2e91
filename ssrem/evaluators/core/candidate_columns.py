"""All that stands beside each other for a response: the true one, its negatives, and the copied context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssrem.samples import CONTEXT_ATTACK, Candidates, Floats, Rows


@dataclass(frozen=True)
class CandidateColumns:
    """rows (n,): a split's responses. start, stop (n,): their contexts. joined (n, m): rows of texts, kind by kind,
    -1 for one that is missing. widths: kind → how many columns it has."""

    rows: Rows
    start: Rows
    stop: Rows
    joined: Rows
    widths: dict[str, int]

    @classmethod
    def of(cls, candidates: Candidates, split: int | None) -> CandidateColumns:
        """GT, the kinds at hand and Context (the last turn copied) of a split's responses, in order."""
        rows = candidates.rows(split)
        start, stop = candidates.context_start[rows], candidates.context_stop[rows]
        wanted = {"GT": candidates.response[rows, None]}
        wanted |= {kind: negatives[rows] for kind, negatives in candidates.negatives.items()}
        wanted[CONTEXT_ATTACK] = np.where(stop > start, stop - 1, -1)[:, None]
        joined = np.concatenate(list(wanted.values()), axis=1)
        return cls(rows, start, stop, joined, {kind: column.shape[1] for kind, column in wanted.items()})

    def by_kind(self, values: Floats) -> dict[str, Floats]:
        """Kind → its columns of `values` (n, m)."""
        edges = np.cumsum(list(self.widths.values()))[:-1]
        return dict(zip(self.widths, np.split(values, edges, axis=1), strict=True))
