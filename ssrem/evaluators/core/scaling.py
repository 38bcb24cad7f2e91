"""Linear scaling to the unit range (Bak and Oh 2020, eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssrem.samples import Floats


@dataclass(frozen=True)
class Bounds:
    """The lowest and highest value at training; saved with the model."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Bounds:
        """Of the finite values; 0 and 1 if there are none."""
        finite = values[np.isfinite(values)]
        return cls(float(finite.min()), float(finite.max())) if finite.size else cls(0.0, 1.0)


def unit_range(values: Floats, bounds: Bounds) -> Floats:
    """(x - l) / (u - l), clipped to [0, 1] for values beyond the bounds; NaN stays NaN.

    With equal bounds every value becomes 0.5.
    """
    if bounds.high <= bounds.low:
        return np.where(np.isnan(values), np.nan, 0.5)
    return np.clip((values - bounds.low) / (bounds.high - bounds.low), 0.0, 1.0)
