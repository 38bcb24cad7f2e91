"""g: how similar a response is to the reference (the true response)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, unit_length
from ssrem.encoders.recurrent import Words
from ssrem.samples import Floats


def similarity(
    metric: str, encoder: Encoder, responses: Sequence[str], references: Sequence[str | None]
) -> Floats:
    """g(r̂, r) of each pair of response and reference by one of METRICS, float64 (n,); NaN without a reference."""
    result = np.full(len(responses), np.nan)
    pairs = [(response, ref) for response, ref in zip(responses, references, strict=True) if ref is not None]
    if pairs:
        result[[ref is not None for ref in references]] = METRICS[metric](
            encoder, [response for response, _ in pairs], [ref for _, ref in pairs]
        )
    return result


def row_cosines(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    """Cosine of each row of `left` with the same row of `right`, (n, d) each, float64 (n,); 0 if a row is zero."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines: Floats = np.divide(np.einsum("nd,nd->n", a, b), norms, out=np.zeros(len(a)), where=norms > 0)
    return cosines


def average_similarity(encoder: Encoder, responses: Sequence[str], references: Sequence[str]) -> Floats:
    """Embedding average (Liu et al. 2016) in [-1, 1]: cosine of the texts' vectors, 0 where one has no known word."""
    row = {text: at for at, text in enumerate(dict.fromkeys((*responses, *references)))}
    vectors = encoder.encode(list(row))
    left, right = ([row[text] for text in texts] for texts in (responses, references))
    return np.clip(row_cosines(vectors[left], vectors[right]), -1, 1)  # equal texts may give 1 + 2e-16


def movers_similarity(encoder: Encoder, responses: Sequence[str], references: Sequence[str]) -> Floats:
    """Sentence mover's similarity in [0, 1]: exp(-d), d the least cost of moving one text's units to the other's.

    The units are words and sentences, see `Encoder.bag`. A word's weight is its number of occurrences, a sentence's its
    number of words; then the weights of each text are scaled to sum to 1 (Clark et al. 2019). Vectors are brought to
    unit length first, so that d lies in [0, 2] with any encoder and exp(-d) neither vanishes nor depends on the scale
    of the vectors. The similarity is 0 if a text has no known word.
    """
    bags: dict[str, tuple[Floats, Floats]] = {}
    for text in dict.fromkeys((*responses, *references)):
        vectors, weights = encoder.bag(text)
        unit = unit_length(vectors.astype(np.float64))
        known = unit.any(axis=1)
        bags[text] = unit[known], weights[known] / max(weights[known].sum(), 1e-300)
    result = np.zeros(len(responses))
    moves: list[tuple[Floats, Floats, Floats]] = []
    known_both = []
    for position, (response, reference) in enumerate(zip(responses, references, strict=True)):
        (a, weight_a), (b, weight_b) = bags[response], bags[reference]
        if len(a) and len(b):
            distance = np.sqrt(np.maximum(2 - 2 * (a @ b.T), 0))
            distance[distance < 1e-7] = 0
            moves.append((weight_a, weight_b, distance))
            known_both.append(position)
    sizes = np.cumsum([cost.size for *_, cost in moves]) // FLOWS_AT_ONCE
    parts = np.split(np.arange(len(moves)), np.flatnonzero(np.diff(sizes)) + 1) if moves else []
    costs = [moving_costs([moves[at] for at in part]) for part in parts]
    result[known_both] = np.exp(-np.concatenate([*costs, np.zeros(0)]))
    return result


FLOWS_AT_ONCE = 5_000
"""Approximate number of flows, from a unit of the response to a unit of the reference, in one linear program. A program
for each pair of texts takes four times as long; larger programs gain nothing."""


def moving_costs(moves: Sequence[tuple[Floats, Floats, Floats]]) -> Floats:
    """The least cost of moving all weight (earth mover's distance) for each of `moves`, float64.

    moves: weights of the one side (n,) and of the other side (m,), of sum 1 each, and costs of moving (n, m)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    rows, columns, totals, starts = [], [], [], [0]
    row = 0
    for left, right, cost in moves:
        n, m = cost.shape
        flow = np.arange(n * m)
        received = flow % m < m - 1  # without the last sum, which follows from the others
        rows += [row + flow // m, (row + n + flow % m)[received]]
        columns += [starts[-1] + flow, (starts[-1] + flow)[received]]
        totals += [left, right[:-1]]
        row, starts = row + n + m - 1, [*starts, starts[-1] + n * m]
    row_of, column_of = np.concatenate(rows), np.concatenate(columns)
    sums = coo_array((np.ones(len(row_of)), (row_of, column_of)), shape=(row, starts[-1])).tocsc()
    costs = np.concatenate([cost.ravel() for _, _, cost in moves])
    solved = linprog(costs, A_eq=sums, b_eq=np.concatenate(totals), method="highs-ds")
    assert solved.status == 0, solved.message  # weights that sum to 1 can always be moved
    least: Floats = np.add.reduceat(solved.x * costs, starts[:-1])
    return least.round(12)  # rounded, so that a cost does not depend on other pairs in its program


METRICS: dict[str, Callable[[Encoder, Sequence[str], Sequence[str]], Floats]] = {
    "sms": movers_similarity,
    "embedding-average": average_similarity,
}


def pooled_cosine(responses: Sequence[str], references: Sequence[str], encoder: Encoder) -> Floats:
    """Cosine of response and reference, each as [max; min] over its word vectors, float64 (n,) in [-1, 1].

    It is 0 if a text has no known word (Tao et al. 2018, referenced metric).
    """
    texts = list(dict.fromkeys([*responses, *references]))
    place = {text: row for row, text in enumerate(texts)}
    words = Words.of(texts, encoder)
    pooled = np.zeros((len(texts), 2 * words.vectors.shape[1]))
    for row in range(len(texts)):
        vectors = words.text(row)
        if len(vectors):
            both = np.concatenate([vectors.max(axis=0), vectors.min(axis=0)])
            pooled[row] = both / np.linalg.norm(both)
    pairs = zip(responses, references, strict=True)
    cosines = np.array([pooled[place[one]] @ pooled[place[other]] for one, other in pairs], dtype=np.float64)
    return np.clip(cosines, -1.0, 1.0)
