"""What a cross-encoder learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Floats


@dataclass(frozen=True)
class State:
    """What learning leaves: weights, the bounds of f, on how many human scores it was tuned."""

    tensors: Mapping[str, NDArray[np.float32]]
    f_bounds: Bounds
    tuned: int = 0

    @property
    def bounds(self) -> dict[str, Bounds]:
        return {"f": self.f_bounds}


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    result: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return result
