"""RSREM: SSREM's baseline with random negatives (Bak and Oh 2020, section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ssrem.evaluators.bilinear.bilinear import Bilinear


class RSREM(Bilinear):
    """SSREM's form, learned from four random negatives a response."""

    name: ClassVar[str] = "rsrem"
    source: ClassVar[str] = "Bak and Oh 2020, section 5.1"
    draws: ClassVar[Mapping[str, int]] = {"Rand": 4}
