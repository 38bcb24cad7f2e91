"""Pure functions of scores: agreement with human scores, its intervals and tests; identification; set similarity."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""The standard normal distribution's 97.5th percentile: half the width of a 95% interval in standard errors."""

CONFIDENCE = 0.95
"""Level of the confidence intervals."""

ALPHA = 0.05
"""Significance level: a smaller p-value counts as significant."""

COVERAGE = 0.9
"""An evaluator is compared if it scored at least this share of the responses of the one that scored the most."""


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval, in [0, 1], of a share observed in n cases."""
    centre, spread = share + Z_95**2 / (2 * n), Z_95 * sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return 0.0 if share == 0 else low, 1.0 if share == 1 else high  # exact ends, which rounding would miss


def mean_interval(values: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Mean of independent values (n,) and ends of its normal 95% interval; None without values, the ends below two."""
    if len(values) == 0:
        return None, None, None
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = Z_95 * float(values.std(ddof=1)) / sqrt(len(values))
    return mean, mean - half, mean + half
