"""What a study finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssrem.agreement.correlation import Correlation, Outcome

FEWEST = 20
"""Below this a share or a correlation says little; a sentence names no condition with fewer."""


@dataclass(frozen=True)
class Finding:
    """One figure. condition: of what, such as an attack or a bucket; measure: which figure; n: what it is over.

    value is None unless outcome is 'ok'.
    """

    condition: str
    measure: str
    value: float | None
    n: int
    outcome: Outcome = "ok"


def of_correlation(condition: str, measure: str, found: Correlation) -> Finding:
    """The finding that a correlation is."""
    return Finding(condition, measure, found.statistic, found.n, found.outcome)


def best(findings: Sequence[Finding], measure: str) -> list[Finding]:
    """Findings of a measure that have a value over `FEWEST` or more, the highest first."""
    there = [f for f in findings if f.measure == measure and f.value is not None and f.n >= FEWEST]
    return sorted(there, key=lambda f: -(f.value or 0.0))


def value_of(findings: Sequence[Finding], condition: str, measure: str) -> float | None:
    """The value under a condition; None where there is none."""
    return next((f.value for f in findings if (f.condition, f.measure) == (condition, measure)), None)
