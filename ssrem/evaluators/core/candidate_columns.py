"""Selects responses of the candidates, and lays out their negatives and the copied context as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, Negative
from ssrem.samples import CONTEXT_ATTACK, SPLIT_NAMES, TRAIN, VALID, Candidates, Floats, Rows, Sample


@dataclass(frozen=True)
class CandidateColumns:
    """The candidates of a split's responses. rows (n,): the responses. start, stop (n,): their contexts.

    joined (n, m): rows of the texts, kind by kind, -1 for a missing candidate. widths: kind → number of its columns.
    """

    rows: Rows
    start: Rows
    stop: Rows
    joined: Rows
    widths: dict[str, int]

    @classmethod
    def of(cls, candidates: Candidates, split: int | None) -> CandidateColumns:
        """Of a split's responses, in order: GT, the kinds of `candidates.negatives` and Context (the last turn)."""
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


def score_as_samples(
    candidates: Candidates, split: int | None, score: Callable[[Sequence[Sample]], Floats], size: int
) -> dict[str, Floats]:
    """Kind → scores (n, k) of a split's candidates, NaN for missing ones. `score` is called with `size` samples."""
    columns = CandidateColumns.of(candidates, split)
    contexts = [
        tuple(candidates.texts[turn] for turn in range(first, last))
        for first, last in zip(columns.start.tolist(), columns.stop.tolist(), strict=True)
    ]
    places = np.argwhere(columns.joined >= 0)
    scores = np.full(columns.joined.shape, np.nan)
    for first in range(0, len(places), size):
        row, column = places[first : first + size].T
        texts = [candidates.texts[text] for text in columns.joined[row, column].tolist()]
        samples = [Sample(contexts[at], text) for at, text in zip(row.tolist(), texts, strict=True)]
        scores[row, column] = score(samples)
    return columns.by_kind(scores)


def usable_rows(
    name: str, candidates: Candidates, split: int, usable: NDArray[np.bool_], lacking: str
) -> Rows:
    """Positions of the split's responses that are `usable`, bool (all responses,).

    lacking: what the others lack, for the EvaluatorError if none is usable.
    """
    rows = candidates.rows(split)
    rows = rows[usable[rows]]
    if len(rows) == 0:
        raise EvaluatorError(
            f"{name}: no response of the {SPLIT_NAMES[split]} split has {lacking}; more conversations are needed"
        )
    return rows


def learned_and_valid(
    name: str, candidates: Candidates, usable: NDArray[np.bool_], lacking: str, config: Any
) -> tuple[Rows, Rows, list[str]]:
    """Usable responses of the training split, and `config.max_valid` of the validation split's; notes on the latter."""
    learned, valid = (usable_rows(name, candidates, split, usable, lacking) for split in (TRAIN, VALID))
    drawn = draw(valid, config.max_valid, [config.seed, 5])
    note = f"validation takes {len(drawn)} of {len(valid)} responses, drawn once (max_valid)"
    return learned, drawn, [note] if len(drawn) < len(valid) else []


def contents(texts: Sequence[str]) -> Rows:
    """For each text the number of the first that differs from it in no more than case and spaces, int64 (n,)."""
    same: dict[str, int] = {}
    return np.array([same.setdefault(" ".join(text.lower().split()), at) for at, text in enumerate(texts)])


def draw(rows: Rows, count: int, seed: Sequence[int]) -> Rows:
    """A random sample of `count` rows, in order; all if there are no more."""
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def negatives_by_response(
    name: str, candidates: Candidates, split: int, rows: Rows, generator: Generator, seed: int
) -> list[tuple[Sample, list[Negative]]]:
    """True response and negatives of those `rows` of a split that have a negative; EvaluatorError if none has."""
    by_row: dict[int, list[Negative]] = {int(row): [] for row in rows}
    for batch in generator.generate(candidates, rows, seed=seed):
        for negative in batch:
            by_row[negative.response].append(negative)
    if not any(by_row.values()):
        raise EvaluatorError(
            f"{name}: no response of the {SPLIT_NAMES[split]} split has a negative from {generator.name}; "
            "more conversations are needed, or other negatives"
        )
    cases = ((Case(candidates, row), negatives) for row, negatives in by_row.items() if negatives)
    return [(Sample(case.context, case.response), negatives) for case, negatives in cases]
