"""Coefficients many at a time: of many rows of scores, and of the same scores under many weightings.

Rows: x (r, n), y (r, n) or (n,), to (r,). Weightings: weights (r, n), whole numbers from 0, x and y (n,), to (r,): a
bootstrap resample is a weighting by how often each response is drawn, and the coefficient equals that of the responses
repeated as often as their weight says. NaN where a side does not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ssrem.agreement.inputs import Floats, Integers, Measure

_BLOCK = 2_000_000
_FEW = 64
"""Up to this many values a row, all pairs of all rows are cheaper than a call of SciPy for each."""
_ROUNDING = 1e-12
"""Share of the largest squared deviation below which a variance is rounding."""


def row_coefficients(measure: Measure) -> Callable[[Floats, Floats], Floats]:
    """The function of rows of a measure."""
    return {
        "pearson": pearson_rows,
        "spearman": spearman_rows,
        "kendall": kendall_rows,
        "accuracy": accuracy_rows,
    }[measure]


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1]."""
    x, y = np.broadcast_arrays(x, y)
    a, b = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
    return _ratio(np.einsum("rn,rn->r", a, b), spread, undefined=_flat(x) | _flat(y))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1], ties at their mean rank."""
    from scipy import stats

    return pearson_rows(stats.rankdata(x, axis=1), stats.rankdata(np.atleast_2d(y), axis=1))


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1]."""
    from scipy import stats

    x, y = np.broadcast_arrays(x, y)
    if x.shape[1] <= _FEW:
        return _by_pairs(x, y, _kendall_of_signs)
    coefficients = [
        np.nan if constant else stats.kendalltau(a, b, method="asymptotic").statistic
        for a, b, constant in zip(x, y, _flat(x) | _flat(y), strict=True)
    ]
    return np.array(coefficients)


def accuracy_rows(x: Floats, y: Floats) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does, without calibration; NaN below two values."""
    x, y = np.broadcast_arrays(x, y)
    return _by_pairs(x, y, lambda a, b: (a == b).mean(axis=1) if a.shape[1] else np.full(len(a), np.nan))


def weighted_coefficients(
    measure: Measure, epsilon: float = 0.0
) -> Callable[[Floats, Floats, Floats], Floats]:
    """The function of weights, x and y of a measure; only accuracy uses `epsilon`."""
    if measure == "accuracy":
        return lambda weights, x, y: weighted_accuracy(weights, x, y, epsilon)
    return {"pearson": weighted_pearson, "spearman": weighted_spearman, "kendall": weighted_kendall}[measure]


def weighted_pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1]."""
    a, b = x - x.mean(), y - y.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        mean_a, mean_b = weights @ a / total, weights @ b / total
        var_a = weights @ a**2 / total - mean_a**2
        var_b = weights @ b**2 / total - mean_b**2
        covariance = weights @ (a * b) / total - mean_a * mean_b
        varying = (var_a > _ROUNDING * (a**2).max()) & (var_b > _ROUNDING * (b**2).max())
        return _ratio(covariance, np.sqrt(var_a * var_b), undefined=~varying)


def weighted_spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1], ties at their mean rank."""
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    a, b = _ranks(weights, x) - middle, _ranks(weights, y) - middle
    weighted = weights * a
    product = np.einsum("rn,rn->r", weighted, b)
    square_a, square_b = np.einsum("rn,rn->r", weighted, a), np.einsum("rn,rn,rn->r", weights, b, b)
    return _ratio(product, np.sqrt(square_a * square_b), undefined=(square_a == 0) | (square_b == 0))


def weighted_kendall(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1]. Time r · n², memory a block of it."""
    excess = np.zeros(len(weights))
    for rows, dx, dy in _pair_blocks(x, y):
        concordance = np.sign(dx) * np.sign(dy)
        excess += np.einsum("rb,rb->r", weights @ concordance.T, weights[:, rows]) / 2
    total = _pair_count(weights.sum(axis=1))
    untied = [total - _pair_count(_masses(weights, one)[0]).sum(axis=1) for one in (x, y)]
    with np.errstate(invalid="ignore"):
        return _ratio(excess, np.sqrt(untied[0] * untied[1]), undefined=(untied[0] <= 0) | (untied[1] <= 0))


def weighted_accuracy(weights: Floats, x: Floats, y: Floats, epsilon: float = 0.0) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does; x ties what differs by `epsilon` or less.

    NaN where there is no pair. A response drawn twice makes no pair with itself, which would always agree.
    """
    agreeing = np.zeros(len(weights))
    for rows, dx, dy in _pair_blocks(x, y):
        alike = (np.where(np.abs(dx) <= epsilon, 0.0, np.sign(dx)) == np.sign(dy)).astype(np.float64)
        alike[np.arange(len(alike)), np.arange(rows.start, rows.stop)] = 0.0
        agreeing += np.einsum("rb,rb->r", weights @ alike.T, weights[:, rows])
    pairs = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return _ratio(agreeing, pairs, undefined=pairs <= 0)


def _ratio(numerator: Floats, denominator: Floats, *, undefined: np.ndarray) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(undefined, np.nan, np.clip(numerator / denominator, -1, 1))


def _flat(values: Floats) -> np.ndarray:
    """Which rows do not vary, (r,)."""
    constant: np.ndarray = (values == values[:, :1]).all(axis=1)
    return constant


def _kendall_of_signs(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        tau: Floats = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.clip(tau, -1, 1)


def _by_pairs(x: Floats, y: Floats, of: Callable[[Floats, Floats], Floats]) -> Floats:
    """`of` the signs (r, pairs) of the differences of x and of y, in blocks of rows."""
    one, other = np.triu_indices(x.shape[1], 1)
    step = max(1, _BLOCK // max(1, len(one)))
    blocks = [
        of(np.sign(a[:, one] - a[:, other]), np.sign(b[:, one] - b[:, other]))
        for a, b in ((x[i : i + step], y[i : i + step]) for i in range(0, len(x), step))
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


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


def _pair_count(count: Floats) -> Floats:
    pairs: Floats = count * (count - 1) / 2
    return pairs


def _pair_blocks(x: Floats, y: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    step = max(1, _BLOCK // max(1, len(x)))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        yield rows, x[rows, None] - x[None, :], y[rows, None] - y[None, :]
