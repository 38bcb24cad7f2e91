"""The scaling of `ssrem.evaluators.base` for families that are not on it yet."""

from __future__ import annotations

from ssrem.evaluators.base import Bounds
from ssrem.samples import Floats

__all__ = ["Bounds", "unit_range"]


def unit_range(values: Floats, bounds: Bounds) -> Floats:
    """See `Bounds.unit`."""
    return bounds.unit(values)
