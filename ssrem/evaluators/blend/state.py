"""What a blend learns: weights, and the scales on which its parts' scores are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Floats

TENSORS = ("weights", "centre", "spread", "offset", "bounds", "tuned")
_TAIL = 1.0


@dataclass(frozen=True)
class State:
    """f = offset + Σ weight · z, where z is a part's score standardised by its centre and spread, within limits.

    weights, centre, spread: float64 (m,). f_bounds: of f. tuned: from how many human scores it learned.
    """

    weights: Floats
    centre: Floats
    spread: Floats
    offset: float
    f_bounds: Bounds
    tuned: int = 0

    @property
    def bounds(self) -> dict[str, Bounds]:
        """Part → lowest and highest value."""
        return {"f": self.f_bounds}

    def f(self, values: Floats, limits: tuple[float, float]) -> Floats:
        """Of the parts' scores (n, m), float64 (n,)."""
        return self.offset + standardised(values, self.centre, self.spread, limits) @ self.weights

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """All of it, by name."""
        bounds = (self.f_bounds.low, self.f_bounds.high)
        values = (self.weights, self.centre, self.spread, [self.offset], bounds, [self.tuned])
        return {name: np.asarray(value) for name, value in zip(TENSORS, values, strict=True)}

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]], parts: int) -> Self:
        """From `tensors`; EvaluatorError unless they are of this number of parts."""
        for name, size in zip(TENSORS, (parts, parts, parts, 1, 2, 1), strict=True):
            if tensors[name].shape != (size,) or not np.isfinite(tensors[name]).all():
                raise EvaluatorError(f"{name} does not fit {parts} parts; train or copy it again")
        weights, centre, spread, offset, bounds, tuned = (tensors[name] for name in TENSORS)
        return cls(weights, centre, spread, float(offset[0]), Bounds(*bounds.tolist()), int(tuned[0]))


def standardised(values: Floats, centre: Floats, spread: Floats, limits: tuple[float, float]) -> Floats:
    """z of values (n, m), brought within the limits."""
    return np.clip((values - centre) / spread, *limits)


def scales(values: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Centre and spread (m,): mean and deviation of `values` (n, m) without the outer percent at each end.

    Where the rest does not differ, as by a part that recognises something rare, the spread is that of all values, else
    that of `others` (k, m), else 1.
    """
    low, high = np.percentile(values, [_TAIL, 100 - _TAIL], axis=0)
    inner = np.clip(values, low, high)
    spread = np.ones(values.shape[1])
    for rows in (others, values, inner):
        deviation = rows.std(axis=0)
        spread = np.where(deviation > 1e-9 * (1 + np.abs(rows).max(axis=0)), deviation, spread)
    return inner.mean(axis=0), spread
