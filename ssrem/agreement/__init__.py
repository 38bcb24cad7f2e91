"""Scores and human scores → agreement with its intervals and tests, identification, set similarity. Pure functions."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""The standard normal distribution's 97.5th percentile: half the width of a 95% interval in standard errors."""

ALPHA = 0.05
"""The level of significance."""

COVERAGE = 0.9
"""Evaluators are compared that score this share, or more, of the responses that the one with the most scores."""


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share among n, in [0, 1]."""
    centre, spread = share + Z_95**2 / (2 * n), Z_95 * sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return 0.0 if share == 0 else low, 1.0 if share == 1 else high  # exact ends, which rounding would miss


def mean_interval(values: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Mean and normal 95% interval of independent values (n,); None if undefined: the interval below two values."""
    if len(values) == 0:
        return None, None, None
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = Z_95 * float(values.std(ddof=1)) / sqrt(len(values))
    return mean, mean - half, mean + half
