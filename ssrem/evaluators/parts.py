"""The parts of a score, and which of them is the score. Imports nothing heavy, since reports need it too."""

from __future__ import annotations

from collections.abc import Mapping

PARTS = ("f", "g", "h")
"""The parts of a score: f unreferenced, g referenced, h mixed."""


def overall_part(counts: Mapping[str, int]) -> str:
    """The part that is an evaluator's score: h if no fewer samples have it than f, else f.

    It is g for an evaluator that has neither. counts: part → number of samples that have it: a sample without a
    reference has no h and g, a blank one has no part.
    """
    h, f = counts.get("h", 0), counts.get("f", 0)
    if not (h or f):
        return "g" if counts.get("g") else "f"
    return "h" if h >= f else "f"
