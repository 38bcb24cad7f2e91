"""One training loop for everything that learns by gradient steps, and the record that a training leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Training:
    """How a training went. history: one dict per epoch. figures: those of the best epoch, on the valid split.

    rows: number of examples by their use, such as "train". notes: remarks for readers of the figures.
    warning: the note that nothing was learned, if that is so; otherwise empty.
    """

    history: tuple[Mapping[str, float], ...]
    best_epoch: int
    seconds: float
    rows: Mapping[str, int]
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warning: str = ""
