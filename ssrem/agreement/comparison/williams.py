"""Williams' test of the difference between two correlations that share a variable."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import sqrt
from typing import Literal

import numpy as np
from scipy import stats

from ssrem.agreement.comparison.difference import Difference, unfit
from ssrem.agreement.inputs import Floats, Numbers, Sides, columns

_NOTHING = 1e-12


def williams(
    first: Numbers,
    second: Numbers,
    human: Numbers,
    *,
    measure: Literal["pearson", "spearman"] = "pearson",
    sides: Sides = "two-sided",
) -> Difference:
    """Whether first (n,) correlates with the human scores (n,) better than second (n,); NaN is missing.

    The t of Steiger 1980 (equation 7) with n − 3 degrees of freedom, as used by Graham and Baldwin 2014 (section 4).
    It takes responses as independent: several to one context make p too small, and `perm_both` or `paired_bootstrap`
    do not. measure 'spearman' applies it to ranks, which is an approximation. ValueError for infinite scores.
    """
    rows, missing = columns(first, second, human)
    n = len(rows)

    found = Difference("williams", measure, sides, n, missing)
    if why := unfit(rows[:, 0], rows[:, 1], rows[:, 2], least=4):
        return replace(found, outcome=why[0], reason=why[1])
    values: Floats = stats.rankdata(rows, axis=0) if measure == "spearman" else rows
    r: Floats = np.asarray(np.corrcoef(values.T))
    one, two, between = float(r[0, 2]), float(r[1, 2]), float(r[0, 1])
    found = replace(found, first=one, second=two, difference=one - two)
    t = williams_t(one, two, between, n)
    if t is None:
        return replace(found, outcome="degenerate", reason="the two evaluators score alike, but for a line")
    p = float(stats.t.sf(t, n - 3)) if sides == "greater" else float(2 * stats.t.sf(abs(t), n - 3))
    return replace(found, p=min(1.0, max(p, sys.float_info.min)))  # what underflows is small, not zero


def williams_t(first: float, second: float, between: float, n: int) -> float | None:
    """t from the correlations of first and second with people and with each other, over n > 3 responses.

    Positive where first is higher. None where it is not defined: the two are the same but for a line.
    """
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    variance = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    if variance < _NOTHING:
        return None
    return (first - second) * sqrt((n - 1) * (1 + between)) / sqrt(variance)
