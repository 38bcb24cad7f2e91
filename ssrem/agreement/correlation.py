"""Correlations of scores with human scores, each with its p-value, 95% interval and n."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import atanh, exp, factorial, lgamma, sqrt, tanh
from typing import Literal

import numpy as np

from ssrem.agreement import Z_95
from ssrem.agreement.coefficients import kendall_rows, pearson_rows, spearman_rows
from ssrem.agreement.inputs import Floats, Numbers, Outcome, unvarying

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
    """Pearson's r. p from its exact distribution; interval by Fisher's z, standard error 1 / √(n - 3).

    ValueError where a value is not finite: nothing is dropped silently.
    """
    return _correlated(_pearson, x, y, lambda r, n: 1 / sqrt(n - 3), fewest=4)


def spearman(x: Numbers, y: Numbers) -> Correlation:
    """Spearman's ρ, ties at their mean rank. ValueError as in `pearson`.

    p is from the t distribution. That gives 0 for ρ = ±1, whose p is the share of all orders of the values that give
    ±1. The interval is by Fisher's z with Bonett and Wright's (2000) standard error √((1 + ρ²/2) / (n - 3)).
    """
    return _correlated(_spearman, x, y, lambda rho, n: sqrt((1 + rho**2 / 2) / (n - 3)), fewest=4)


def kendall(x: Numbers, y: Numbers) -> Correlation:
    """Kendall's τ-b. p as SciPy's: exact without ties for up to 33 pairs, or at most one discordant or concordant
    pair, otherwise normal; interval by Fisher's z with Fieller, Hartley and Pearson's (1957) standard error
    √(.437 / (n - 4)). ValueError as in `pearson`.
    """
    return _correlated(_kendall, x, y, lambda tau, n: sqrt(0.437 / (n - 4)), fewest=5)


# The statistic and its two-sided p, without scipy.stats, which takes longer to import than all else a command does.


def _pearson(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    r = float(pearson_rows(a[None], b[None])[0])
    half = len(a) / 2 - 1
    return r, 2 * float(special.betainc(half, half, (1 - abs(r)) / 2))


def _spearman(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    rho, freedom = float(spearman_rows(a[None], b[None])[0]), len(a) - 2
    if abs(rho) == 1:
        alike = sum(lgamma(ties + 1) for ties in np.unique(a, return_counts=True)[1].tolist())
        return rho, min(1.0, 2 * exp(alike - lgamma(len(a) + 1)))
    return rho, 2 * float(special.stdtr(freedom, -abs(rho) * sqrt(freedom / ((1 + rho) * (1 - rho)))))


def _kendall(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    tau, n = float(kendall_rows(a[None], b[None])[0]), len(a)
    pairs, ties = n * (n - 1), [np.unique(one, return_counts=True)[1].astype(np.float64) for one in (a, b)]
    tied = [float((t * (t - 1)).sum()) for t in ties]
    excess = tau * sqrt((pairs - tied[0]) * (pairs - tied[1])) / 2  # concordant less discordant pairs
    rarer = round((pairs / 2 - abs(excess)) / 2)
    if not any(tied) and (n <= 33 or rarer <= 1):
        return tau, _exact(n, rarer)
    triples = [float((t * (t - 1) * (t - 2)).sum()) for t in ties]
    excluded = sum(float((t * (t - 1) * (2 * t + 5)).sum()) for t in ties)
    variance = (pairs * (2 * n + 5) - excluded) / 18 + tied[0] * tied[1] / (2 * pairs)
    variance += triples[0] * triples[1] / (9 * pairs * (n - 2))
    return tau, 2 * float(special.ndtr(-abs(excess) / sqrt(variance)))


def _exact(n: int, inversions: int) -> float:
    """Twice the share of the permutations of n values with at most this many inversions, at most 1."""
    counts = [1]
    for values in range(2, n + 1):
        sums = [0, *accumulate(counts)]
        size = min(len(counts) + values - 1, inversions + 1)
        counts = [sums[min(at + 1, len(counts))] - sums[max(at + 1 - values, 0)] for at in range(size)]
    return min(1.0, 2 * sum(counts) / factorial(n))


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
    test: Callable[[Floats, Floats], tuple[float, float]],
    x: Numbers,
    y: Numbers,
    error: Callable[[float, int], float],
    *,
    fewest: int,
) -> Correlation:
    """test: statistic and p. error: the standard error of z from the statistic and n, from `fewest` pairs on."""
    a, b = _finite(x, y)
    n = len(a)
    if n < 3 or unvarying(a, b):
        return Correlation(None, None, None, None, n, "too_few" if n < 3 else "constant")
    statistic, p = test(a, b)
    statistic = max(-1.0, min(1.0, statistic))
    p = min(max(p, _SMALLEST), 1.0)  # one that underflows is small, not zero
    if n < fewest:
        return Correlation(statistic, p, None, None, n, "ok")
    if abs(statistic) == 1:
        return Correlation(statistic, p, statistic, statistic, n, "ok")
    centre, half = atanh(statistic), Z_95 * error(statistic, n)
    return Correlation(statistic, p, tanh(centre - half), tanh(centre + half), n, "ok")
