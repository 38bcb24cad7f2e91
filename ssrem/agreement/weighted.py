"""Coefficients under many weightings at once: a bootstrap resample is a weighting by how often each response is drawn.

weights (r, n), whole numbers from 0; x, y (n,). Each function returns (r,), NaN where it is not defined, and equals
what it is on the responses repeated as often as their weight says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats, Integers, Measure

_BLOCK = 2_000_000
_NOTHING = 1e-12
"""Share of the largest squared deviation below which a variance is rounding."""


def weighted_pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1]; NaN where a side does not vary."""
    a, b = x - x.mean(), y - y.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        mean_a, mean_b = weights @ a / total, weights @ b / total
        var_a = weights @ a**2 / total - mean_a**2
        var_b = weights @ b**2 / total - mean_b**2
        found = (weights @ (a * b) / total - mean_a * mean_b) / np.sqrt(var_a * var_b)
    flat = ~((var_a > _NOTHING * (a**2).max()) & (var_b > _NOTHING * (b**2).max()))
    return np.where(flat, np.nan, np.clip(found, -1, 1))


def weighted_spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1], ties at their mean rank; NaN where a side does not vary."""
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    a, b = _ranks(weights, x) - middle, _ranks(weights, y) - middle
    weighted = weights * a
    product = np.einsum("rn,rn->r", weighted, b)
    square_a, square_b = np.einsum("rn,rn->r", weighted, a), np.einsum("rn,rn,rn->r", weights, b, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = product / np.sqrt(square_a * square_b)
    return np.where((square_a == 0) | (square_b == 0), np.nan, np.clip(found, -1, 1))


def weighted_kendall(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1]; NaN where a side does not vary. Time r · n², memory a block of it."""
    excess = np.zeros(len(weights))
    for rows, dx, dy in _pair_blocks(x, y):
        agreement = np.sign(dx) * np.sign(dy)
        excess += np.einsum("rb,rb->r", weights @ agreement.T, weights[:, rows]) / 2
    total = _pairs(weights.sum(axis=1))
    untied = [total - _pairs(_masses(weights, one)[0]).sum(axis=1) for one in (x, y)]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = excess / np.sqrt(untied[0] * untied[1])
    return np.where((untied[0] <= 0) | (untied[1] <= 0), np.nan, np.clip(found, -1, 1))


def weighted_accuracy(weights: Floats, x: Floats, y: Floats, epsilon: float = 0.0) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does; x ties what differs by `epsilon` or less.

    NaN where there is no pair. A response drawn twice makes no pair with itself, which would always agree.
    """
    agreeing = np.zeros(len(weights))
    for rows, dx, dy in _pair_blocks(x, y):
        agreement = (np.where(np.abs(dx) <= epsilon, 0.0, np.sign(dx)) == np.sign(dy)).astype(np.float64)
        agreement[np.arange(len(agreement)), np.arange(rows.start, rows.stop)] = 0.0
        agreeing += np.einsum("rb,rb->r", weights @ agreement.T, weights[:, rows])
    pairs = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, agreeing / pairs, np.nan)


def weighted(measure: Measure, epsilon: float = 0.0) -> Callable[[Floats, Floats, Floats], Floats]:
    """The function of a measure; `epsilon` is of use to accuracy alone."""
    if measure == "accuracy":
        return lambda weights, x, y: weighted_accuracy(weights, x, y, epsilon)
    return {"pearson": weighted_pearson, "spearman": weighted_spearman, "kendall": weighted_kendall}[measure]


def _masses(weights: Floats, x: Floats) -> tuple[Floats, Integers]:
    """Weight of each distinct value (r, v), ascending, and each response's place among them (n,)."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    starts = np.cumsum(counts) - counts
    return np.add.reduceat(weights[:, order], starts, axis=1), place


def _ranks(weights: Floats, x: Floats) -> Floats:
    mass, place = _masses(weights, x)
    ranks: Floats = (np.cumsum(mass, axis=1) - mass / 2 + 0.5)[:, place]
    return ranks


def _pairs(count: NDArray[np.float64]) -> Floats:
    found: Floats = count * (count - 1) / 2
    return found


def _pair_blocks(x: Floats, y: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    step = max(1, _BLOCK // max(1, len(x)))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        yield rows, x[rows, None] - x[None, :], y[rows, None] - y[None, :]
