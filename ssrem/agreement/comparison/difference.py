"""Whether one evaluator agrees with people better than another, on the same responses: what a test answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ssrem.agreement.inputs import Floats, Measure, Outcome, Sides, unvarying

Test = Literal["williams", "perm-both", "paired-bootstrap"]
Level = Literal["segment", "system"]


@dataclass(frozen=True)
class Difference:
    """first, second: agreement of either; difference: first minus second; p in (0, 1] that chance makes it.

    sides: 'two-sided': p is of a difference either way; 'greater': of first being better. low to high: its interval
    at level `confidence` (bootstrap alone). n: responses used; missing: left out for want of a score; clusters:
    contexts drawn; resamples: permutations or draws, by `seed`. Figures are None unless outcome is 'ok' (p, low and
    high alone may be None where agreement of either is known and their difference cannot be tested); reason says why.
    """

    test: Test
    measure: Measure
    sides: Sides
    n: int
    missing: int
    first: float | None = None
    second: float | None = None
    difference: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    clusters: int | None = None
    resamples: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def unfit(first: Floats, second: Floats, human: Floats, least: int) -> tuple[Outcome, str] | None:
    """Why three columns (n,) cannot be compared, or None where they can."""
    if len(human) < least:
        return "too_few", f"{len(human)} responses with all three scores; {least} are needed"
    for values, whose in (
        (first, "the first evaluator's scores"),
        (second, "the second's scores"),
        (human, "the human scores"),
    ):
        if unvarying(values):
            return "constant", f"{whose} are all the same"
    return None
