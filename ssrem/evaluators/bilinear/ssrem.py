"""SSREM: the speaker sensitive response evaluation model (Bak and Oh 2020, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ssrem.evaluators.bilinear.bilinear import Bilinear


class SSREM(Bilinear):
    """Learns f by telling a response from its speaker's others: one each of SC, SP, SS and Rand (eq. 3)."""

    name: ClassVar[str] = "ssrem"
    source: ClassVar[str] = "Bak and Oh 2020, section 3"
    draws: ClassVar[Mapping[str, int]] = {"SC": 1, "SP": 1, "SS": 1, "Rand": 1}
