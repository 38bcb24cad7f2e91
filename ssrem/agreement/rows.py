"""Coefficients of many rows at once: x (r, n), y (r, n) or (n,), to (r,); NaN where a side does not vary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from ssrem.agreement.inputs import Floats, Measure

_BLOCK = 2_000_000
_SMALL = 64
"""Up to this many values a row, all pairs of all rows are cheaper than a call of SciPy for each."""


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1]."""
    x, y = np.broadcast_arrays(x, y)
    a, b = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
        found = np.einsum("rn,rn->r", a, b) / spread
    flat = (x == x[:, :1]).all(axis=1) | (y == y[:, :1]).all(axis=1)
    return np.where(flat, np.nan, np.clip(found, -1, 1))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1], ties at their mean rank."""
    return pearson_rows(stats.rankdata(x, axis=1), stats.rankdata(np.atleast_2d(y), axis=1))


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1]."""
    x, y = np.broadcast_arrays(x, y)
    if x.shape[1] > _SMALL:
        flat = (x == x[:, :1]).all(axis=1) | (y == y[:, :1]).all(axis=1)
        return np.array(
            [
                np.nan if still else stats.kendalltau(a, b, method="asymptotic").statistic
                for a, b, still in zip(x, y, flat, strict=True)
            ]
        )
    return _by_pairs(x, y, _tau)


def accuracy_rows(x: Floats, y: Floats) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does, without calibration; NaN below two values."""
    x, y = np.broadcast_arrays(x, y)
    return _by_pairs(x, y, lambda a, b: (a == b).mean(axis=1) if a.shape[1] else np.full(len(a), np.nan))


def rows(measure: Measure) -> Callable[[Floats, Floats], Floats]:
    """The function of a measure."""
    return {
        "pearson": pearson_rows,
        "spearman": spearman_rows,
        "kendall": kendall_rows,
        "accuracy": accuracy_rows,
    }[measure]


def _tau(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.clip(found, -1, 1)


def _by_pairs(x: Floats, y: Floats, of: Callable[[Floats, Floats], Floats]) -> Floats:
    """`of` the signs (r, pairs) of the differences of x and of y, in blocks of rows."""
    one, other = np.triu_indices(x.shape[1], 1)
    step = max(1, _BLOCK // max(1, len(one)))
    found = [
        of(np.sign(a[:, one] - a[:, other]), np.sign(b[:, one] - b[:, other]))
        for a, b in ((x[i : i + step], y[i : i + step]) for i in range(0, len(x), step))
    ]
    return np.concatenate(found) if found else np.zeros(0)
