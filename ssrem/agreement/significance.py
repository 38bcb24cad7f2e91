"""Williams' and permutation tests: does one evaluator agree with people better than another, and does it at all?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from ssrem.agreement.coefficients import row_coefficients
from ssrem.agreement.inputs import (
    EQUAL,
    MIN_RESPONSES,
    Agreement,
    Floats,
    Integers,
    Labels,
    Level,
    Measure,
    Numbers,
    Outcome,
    Sides,
    SystemMeasure,
    columns,
    complete,
    numbered_within,
    unvarying,
)
from ssrem.agreement.levels import MIN_SYSTEMS
from ssrem.agreement.weighted_levels import mean_of_defined

Test = Literal["williams", "perm-both", "paired-bootstrap"]

PERMUTATIONS = 2000
_CELLS = 2_000_000
_ROUNDING = 1e-12

_Coefficients = Callable[[Floats], Floats]
"""Scores (r, n) to how they agree with people (r,), NaN where they have no figure."""


@dataclass(frozen=True)
class Difference:
    """How much better the first evaluator agrees with people than the second, and the p of the difference, in (0, 1].

    first, second: agreement of each; difference: first minus second. sides: 'two-sided': p is of a difference either
    way; 'greater': of first being better. low to high: the interval of the difference at level `confidence`, from the
    bootstrap only. n: responses used; missing: left out because a score is missing; clusters: contexts drawn;
    resamples: permutations or draws, by `seed`. Figures are None unless outcome is 'ok' (only p, low and high where the
    difference cannot be tested); reason says why.
    """

    test: Test
    measure: SystemMeasure
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


def not_comparable(first: Floats, second: Floats, human: Floats, least: int) -> tuple[Outcome, str] | None:
    """Why three columns (n,) cannot be compared, or None where they can."""
    if len(human) < least:
        return "too_few", f"{len(human)} responses with all three scores; {least} are needed"
    whose = {"the first evaluator's scores": first, "the second's scores": second, "the human scores": human}
    constant = [name for name, values in whose.items() if unvarying(values)]
    return ("constant", f"{constant[0]} are all the same") if constant else None


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
    It takes responses as independent: several to one context make p too small, unlike in `perm_both` and
    `paired_bootstrap`. measure 'spearman' applies it to ranks, an approximation. ValueError for infinite scores.
    """
    from scipy import stats

    rows, missing = columns(first, second, human)
    n = len(rows)
    result = Difference("williams", measure, sides, n, missing)
    if why := not_comparable(rows[:, 0], rows[:, 1], rows[:, 2], least=4):
        return replace(result, outcome=why[0], reason=why[1])
    values: Floats = stats.rankdata(rows, axis=0) if measure == "spearman" else rows
    r: Floats = np.asarray(np.corrcoef(values.T))
    one, two, between = float(r[0, 2]), float(r[1, 2]), float(r[0, 1])
    result = replace(result, first=one, second=two, difference=one - two)
    t = williams_t(one, two, between, n)
    if t is None:
        reason = "the two evaluators' scores are linear functions of each other"
        return replace(result, outcome="degenerate", reason=reason)
    p = float(stats.t.sf(t, n - 3)) if sides == "greater" else float(2 * stats.t.sf(abs(t), n - 3))
    return replace(result, p=min(1.0, max(p, sys.float_info.min)))  # what underflows is small, not zero


def williams_t(first: float, second: float, between: float, n: int) -> float | None:
    """t from the correlations of first and second with people and with each other, over n > 3 responses.

    Positive if first is higher. None if it is undefined because one is a linear function of the other.
    """
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    variance = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    if variance < _ROUNDING:
        return None
    return (first - second) * sqrt((n - 1) * (1 + between)) / sqrt(variance)


def perm_both(
    first: Numbers,
    second: Numbers,
    human: Numbers,
    *,
    measure: Measure = "spearman",
    level: Level = "segment",
    groups: Labels | None = None,
    systems: Labels | None = None,
    force: bool = False,
    permutations: int = PERMUTATIONS,
    sides: Sides = "two-sided",
    seed: int,
) -> Difference:
    """Whether first (n,) agrees with the human scores (n,) better than second (n,); NaN is missing.

    Under the null hypothesis the two are exchangeable: both are standardised, and the two scores of each response, that
    is of each system for each input, are swapped with probability ½ (PERM-BOTH of Deutsch, Dror and Roth 2021, section
    4.2). p = (k + 1) / (permutations + 1) for k permutations that are at least as extreme. level 'segment': pooled, or
    the mean over `groups` (n,), systems or contexts, of at least three responses; 'system': of the means by `systems`
    (n,), refused below five unless `force`. Accuracy at segment level needs its ties calibrated: ValueError, use
    `paired_bootstrap`; also for infinite scores and labels that do not fit.
    """
    if measure == "accuracy" and level == "segment":
        raise ValueError(
            "accuracy with calibrated ties is compared by a paired bootstrap, not by permutation"
        )
    if level == "system" and systems is None:
        raise ValueError("the system level needs the system of each response")
    values, missing = columns(first, second, human)
    usable = complete(first, second, human)
    x1, x2, y = values.T
    result = Difference("perm-both", measure, sides, len(y), missing, resamples=permutations, seed=seed)
    if why := not_comparable(x1, x2, y, MIN_RESPONSES):
        return replace(result, outcome=why[0], reason=why[1])
    if level == "system" and systems is not None:
        names, codes = numbered_within(systems, usable, "systems")
        if len(names) < (3 if force else MIN_SYSTEMS):
            few = f"{len(names)} systems; {MIN_SYSTEMS} are needed unless forced"
            return replace(result, outcome="too_few_systems", reason=few)
        agreement = _of_means(y, codes, measure)
    elif groups is not None:
        agreement = _of_groups(y, numbered_within(groups, usable, "groups")[1], measure)
    else:
        agreement = _of_all(y, measure)
    a, b = ((one - one.mean()) / one.std() for one in (x1, x2))
    observed_a, observed_b = (float(agreement(one[None])[0]) for one in (a, b))
    if np.isnan(observed_a) or np.isnan(observed_b):
        flat = "a side does not vary within any group of three responses, or between the systems"
        return replace(result, outcome="constant", reason=flat)
    draw, difference = np.random.default_rng(seed), observed_a - observed_b

    def exchanged(count: int) -> Floats:
        swap = draw.random((count, len(y))) < 0.5
        return agreement(np.where(swap, b, a)) - agreement(np.where(swap, a, b))

    p = _permutation_p(exchanged, difference, sides, permutations, len(y))
    return replace(result, first=observed_a, second=observed_b, difference=difference, p=p)


def against_chance(
    scores: Numbers,
    human: Numbers,
    *,
    measure: Measure,
    groups: Labels | None = None,
    permutations: int = PERMUTATIONS,
    sides: Sides = "two-sided",
    seed: int,
) -> Agreement:
    """Whether scores (n,) agree with the human scores (n,) at all, by permuting the scores; NaN is missing.

    p = (k + 1) / (permutations + 1) for k permutations that agree at least as well. With groups (n,), scores are
    permuted within their group and the statistic is the mean over groups of at least three responses, so that
    differences between systems or contexts do not count; without, it is pooled. ValueError for accuracy, whose chance
    level is not 0, for infinite scores and for lengths that differ.
    """
    if measure == "accuracy":
        raise ValueError("accuracy has no p against chance: its chance level depends on the ties")
    pairs, missing = columns(scores, human)
    x, y = pairs.T
    result = Agreement(measure, None, len(x), missing, 0, sides=sides, permutations=permutations, seed=seed)
    if len(x) < MIN_RESPONSES:
        few = f"{len(x)} responses with both scores; {MIN_RESPONSES} are needed"
        return replace(result, outcome="too_few", reason=few)
    if unvarying(x, y):
        return replace(result, outcome="constant", reason="the scores, or people's, are all the same")
    codes = np.zeros(len(x), dtype=np.int64)
    if groups is not None:
        codes = numbered_within(groups, complete(scores, human), "groups")[1]
    agreement = _of_all(y, measure) if groups is None else _of_groups(y, codes, measure)
    observed = float(agreement(x[None])[0])
    if np.isnan(observed):
        return replace(result, outcome="too_few", reason="no group has three responses whose scores vary")
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    draw = np.random.default_rng(seed)

    def of_permutations(count: int) -> Floats:
        keys, permuted = draw.random((count, len(x))), np.empty((count, len(x)))
        for rows in members:
            permuted[:, rows] = x[rows][np.argsort(keys[:, rows], axis=1)]
        return agreement(permuted)

    p = _permutation_p(of_permutations, observed, sides, permutations, len(x))
    averaged = sum(len(rows) >= MIN_RESPONSES for rows in members)
    return replace(result, statistic=observed, groups=averaged, p=p)


def _permutation_p(
    null: Callable[[int], Floats], observed: float, sides: Sides, permutations: int, n: int
) -> float:
    """p in (0, 1]: (k + 1) / (permutations + 1) for k permutations as extreme as the observed value.

    null: draws a number of permutations of the n responses and returns their figures; NaN counts as extreme, so that it
    makes nothing significant.
    """
    extreme, step = 0, max(1, _CELLS // n)
    for start in range(0, permutations, step):
        figures = null(min(step, permutations - start))
        less = np.abs(figures) < abs(observed) - EQUAL if sides == "two-sided" else figures < observed - EQUAL
        extreme += int((~less).sum())
    return (extreme + 1) / (permutations + 1)


def _of_all(y: Floats, measure: Measure) -> _Coefficients:
    """Agreement with the human scores y (n,)."""
    coefficients = row_coefficients(measure)
    return lambda x: coefficients(x, y)


def _of_groups(y: Floats, groups: Integers, measure: Measure) -> _Coefficients:
    """Mean agreement with the human scores y (n,) over groups (n,) of at least three that have a figure."""
    coefficients = row_coefficients(measure)
    members = [
        rows for code in np.unique(groups) if len(rows := np.flatnonzero(groups == code)) >= MIN_RESPONSES
    ]
    if not members:
        return lambda x: np.full(len(x), np.nan)
    return lambda x: mean_of_defined(np.stack([coefficients(x[:, rows], y[rows]) for rows in members]))


def _of_means(y: Floats, systems: Integers, measure: Measure) -> _Coefficients:
    belongs = (systems[:, None] == np.unique(systems)[None, :]).astype(np.float64)
    belongs /= belongs.sum(axis=0)
    coefficients = row_coefficients(measure)
    return lambda x: coefficients(x @ belongs, y @ belongs)
