"""What RUBER learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators.core.scaling import Bounds


@dataclass(frozen=True)
class State:
    """What a fit leaves: the network's weights, the bounds of f and g, on how many human scores it was tuned."""

    tensors: Mapping[str, NDArray[np.float32]]
    f_bounds: Bounds
    g_bounds: Bounds
    tuned: int = 0

    @property
    def bounds(self) -> dict[str, Bounds]:
        return {"f": self.f_bounds, "g": self.g_bounds}
