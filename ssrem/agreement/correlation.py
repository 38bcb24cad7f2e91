"""Correlations of scores with human scores, each with its p-value, 95% interval and n."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["ok", "constant", "too_few"]
Numbers = Sequence[float] | NDArray[np.float64]

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

    a, b, unusable = _checked(x, y)
    if unusable:
        return unusable
    r = stats.pearsonr(a, b)
    error = 1 / sqrt(len(a) - 3) if len(a) > 3 else None
    return _correlation(float(r.statistic), float(r.pvalue), len(a), error)


def spearman(x: Numbers, y: Numbers) -> Correlation:
    """Spearman's ρ, ties at their mean rank. p from the t distribution; interval by Fisher's z with Bonett
    and Wright's (2000) standard error √((1 + ρ²/2) / (n - 3)). ValueError as in `pearson`.
    """
    from scipy import stats

    a, b, unusable = _checked(x, y)
    if unusable:
        return unusable
    rho = stats.spearmanr(a, b)
    error = sqrt((1 + float(rho.statistic) ** 2 / 2) / (len(a) - 3)) if len(a) > 3 else None
    return _correlation(float(rho.statistic), float(rho.pvalue), len(a), error)


def kendall(x: Numbers, y: Numbers) -> Correlation:
    """Kendall's τ-b. p by SciPy (exact for small n without ties, otherwise normal); interval by Fisher's z
    with Fieller, Hartley and Pearson's (1957) standard error √(.437 / (n - 4)). ValueError as in `pearson`.
    """
    from scipy import stats

    a, b, unusable = _checked(x, y)
    if unusable:
        return unusable
    tau = stats.kendalltau(a, b)
    error = sqrt(0.437 / (len(a) - 4)) if len(a) > 4 else None
    return _correlation(float(tau.statistic), float(tau.pvalue), len(a), error)


CORRELATIONS: dict[Literal["pearson", "spearman", "kendall"], Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
"""Measure to its function."""


def regression_line(x: Numbers, y: Numbers) -> Line | None:
    """Least squares line of y on x; None below two pairs or if x is constant. ValueError as in `pearson`."""
    a, b = _finite(x, y)
    if len(a) < 2 or (a == a[0]).all():
        return None
    centred = a - a.mean()
    slope = float(centred @ (b - b.mean()) / (centred @ centred))
    return Line(slope, float(b.mean() - slope * a.mean()))


def _finite(x: Numbers, y: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not two rows of the same length")
    broken = int((~np.isfinite(a) | ~np.isfinite(b)).sum())
    if broken:
        raise ValueError(f"{broken} of {len(a)} pairs hold NaN or infinity")
    return a, b


def _checked(x: Numbers, y: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64], Correlation | None]:
    a, b = _finite(x, y)
    outcome: Outcome | None = None
    if len(a) < 3:
        outcome = "too_few"
    elif (a == a[0]).all() or (b == b[0]).all():
        outcome = "constant"
    return a, b, Correlation(None, None, None, None, len(a), outcome) if outcome else None


def _correlation(statistic: float, p: float, n: int, error: float | None) -> Correlation:
    # A p-value that underflows is small, not zero.
    p = min(max(p, _SMALLEST), 1.0)
    statistic = max(-1.0, min(1.0, statistic))
    if error is None:
        return Correlation(statistic, p, None, None, n, "ok")
    if abs(statistic) == 1:
        return Correlation(statistic, p, statistic, statistic, n, "ok")
    centre = atanh(statistic)
    low, high = tanh(centre - Z_95 * error), tanh(centre + Z_95 * error)
    return Correlation(statistic, p, low, high, n, "ok")
