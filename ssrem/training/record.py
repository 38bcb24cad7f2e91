"""What a training leaves to be read: its learning curve and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Training:
    """How a fit went. history: one dict an epoch. figures: of the epoch that was chosen, on the valid split.

    rows: how many examples there were, by what they were for. notes: what whoever reads the figures should know.
    """

    history: tuple[Mapping[str, float], ...]
    best_epoch: int
    seconds: float
    rows: Mapping[str, int]
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
