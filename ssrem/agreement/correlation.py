"""Correlations of scores with human scores, each with its p-value, 95% interval and n."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from typing import Any, Literal

import numpy as np

from ssrem.agreement.inputs import Floats, Numbers, Outcome, unvarying

Z_95 = 1.959963984540054
_SMALLEST = sys.float_info.min


@dataclass(frozen=True)
class Correlation:
    """statistic in [-1, 1], two-sided p in (0, 1], 95% interval low to high, over n pairs.

    outcome: 'ok'; 'constant' where one side does not vary; 'too_few' below three pairs. The figures are None
    unless it is 'ok'; the interval is also None where it is not defined (below four pairs; five for Kendall).
    """

    statistic: float | None
    p: float | None
    low: float | None
    high: float | None
    n: int
    outcome: Outcome


@dataclass(frozen=True)
class Line:
    """Least squares: y = slope · x + intercept."""

    slope: float
    intercept: float


def pearson(x: Numbers, y: Numbers) -> Correlation:
    """Pearson's r. p from the t distribution; interval by Fisher's z, standard error 1 / √(n - 3).

    ValueError where a value is not finite: nothing is dropped in silence.
    """
    from scipy import stats

    return _correlated(stats.pearsonr, x, y, lambda r, n: 1 / sqrt(n - 3), fewest=4)


def spearman(x: Numbers, y: Numbers) -> Correlation:
    """Spearman's ρ, ties at their mean rank. p from the t distribution; interval by Fisher's z with Bonett
    and Wright's (2000) standard error √((1 + ρ²/2) / (n - 3)). ValueError as in `pearson`.
    """
    from scipy import stats

    return _correlated(stats.spearmanr, x, y, lambda rho, n: sqrt((1 + rho**2 / 2) / (n - 3)), fewest=4)


def kendall(x: Numbers, y: Numbers) -> Correlation:
    """Kendall's τ-b. p by SciPy (exact for small n without ties, otherwise normal); interval by Fisher's z
    with Fieller, Hartley and Pearson's (1957) standard error √(.437 / (n - 4)). ValueError as in `pearson`.
    """
    from scipy import stats

    return _correlated(stats.kendalltau, x, y, lambda tau, n: sqrt(0.437 / (n - 4)), fewest=5)


CORRELATIONS: dict[Literal["pearson", "spearman", "kendall"], Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
"""Measure to its function."""


def regression_line(x: Numbers, y: Numbers) -> Line | None:
    """Least squares line of y on x; None below two pairs or if x is constant. ValueError as in `pearson`."""
    a, b = _finite(x, y)
    if len(a) < 2 or unvarying(a):
        return None
    centred = a - a.mean()
    slope = float(centred @ (b - b.mean()) / (centred @ centred))
    return Line(slope, float(b.mean() - slope * a.mean()))


def _finite(x: Numbers, y: Numbers) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not two rows of the same length")
    if broken := int((~np.isfinite(a) | ~np.isfinite(b)).sum()):
        raise ValueError(f"{broken} of {len(a)} pairs hold NaN or infinity")
    return a, b


def _correlated(
    test: Callable[[Floats, Floats], Any],
    x: Numbers,
    y: Numbers,
    error: Callable[[float, int], float],
    *,
    fewest: int,
) -> Correlation:
    """test: SciPy's; error: the standard error of z from the statistic and n, defined from `fewest` pairs on."""
    a, b = _finite(x, y)
    n = len(a)
    if n < 3 or unvarying(a, b):
        return Correlation(None, None, None, None, n, "too_few" if n < 3 else "constant")
    result = test(a, b)
    statistic = max(-1.0, min(1.0, float(result.statistic)))
    p = min(max(float(result.pvalue), _SMALLEST), 1.0)  # one that underflows is small, not zero
    if n < fewest:
        return Correlation(statistic, p, None, None, n, "ok")
    if abs(statistic) == 1:
        return Correlation(statistic, p, statistic, statistic, n, "ok")
    centre, half = atanh(statistic), Z_95 * error(statistic, n)
    return Correlation(statistic, p, tanh(centre - half), tanh(centre + half), n, "ok")
