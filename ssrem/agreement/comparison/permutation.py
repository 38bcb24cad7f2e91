"""The paired permutation test PERM-BOTH of two evaluators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ssrem.agreement.comparison.difference import Difference, Level, unfit
from ssrem.agreement.inputs import (
    EQUAL,
    Floats,
    Integers,
    Labels,
    Measure,
    Numbers,
    Sides,
    columns,
    complete,
    those,
)
from ssrem.agreement.rows import rows as rows_of
from ssrem.agreement.segment import TOO_FEW
from ssrem.agreement.system import MIN_SYSTEMS

PERMUTATIONS = 2000
CELLS = 2_000_000

Agreement = Callable[[Floats], Floats]
"""Scores (r, n) to how they agree with people (r,), NaN where they have no figure."""


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

    Under the null either could have given any score: both are standardised, and the scores of each response, that is
    of each system for each input, change places with probability ½ (Deutsch, Dror and Roth 2021, section 4.2).
    p = (k + 1) / (permutations + 1) for k permutations that are at least as extreme. level 'segment': pooled, or the
    mean over `groups` (n,), systems or contexts, of at least three responses; 'system': of the means by `systems`
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
    there = complete(first, second, human)
    x1, x2, y = values.T

    found = Difference("perm-both", measure, sides, len(y), missing, resamples=permutations, seed=seed)
    if why := unfit(x1, x2, y, TOO_FEW):
        return replace(found, outcome=why[0], reason=why[1])
    if level == "system" and systems is not None:
        names, codes = those(systems, there, "systems")
        if len(names) < (3 if force else MIN_SYSTEMS):
            few = f"{len(names)} systems; {MIN_SYSTEMS} are needed unless forced"
            return replace(found, outcome="too_few_systems", reason=few)
        agreement = _of_means(y, codes, measure)
    elif groups is not None:
        agreement = of_groups(y, those(groups, there, "groups")[1], measure)
    else:
        agreement = of_all(y, measure)
    a, b = ((one - one.mean()) / one.std() for one in (x1, x2))
    seen_a, seen_b = (float(agreement(one[None])[0]) for one in (a, b))
    if np.isnan(seen_a) or np.isnan(seen_b):
        flat = "a side does not vary within any group of three responses, or between the systems"
        return replace(found, outcome="constant", reason=flat)
    draw, extreme, done = np.random.default_rng(seed), 0, 0
    while done < permutations:
        r = min(permutations - done, max(1, CELLS // len(y)))
        swap = draw.random((r, len(y))) < 0.5
        null = agreement(np.where(swap, b, a)) - agreement(np.where(swap, a, b))
        extreme += at_least(null, seen_a - seen_b, sides)
        done += r
    p = (extreme + 1) / (permutations + 1)
    return replace(found, first=seen_a, second=seen_b, difference=seen_a - seen_b, p=p)


def at_least(null: Floats, seen: float, sides: Sides) -> int:
    """How many are as extreme as what was seen; what has no figure counts, so that it makes nothing significant."""
    low = np.abs(null) < abs(seen) - EQUAL if sides == "two-sided" else null < seen - EQUAL
    return int((~low).sum())


def of_all(y: Floats, measure: Measure) -> Agreement:
    """With people's scores y (n,)."""
    of = rows_of(measure)
    return lambda x: of(x, y)


def of_groups(y: Floats, groups: Integers, measure: Measure) -> Agreement:
    """Mean over groups (n,) of at least three, of those that have a figure, with people's scores y (n,)."""
    of = rows_of(measure)
    members = [at for code in np.unique(groups) if len(at := np.flatnonzero(groups == code)) >= TOO_FEW]

    def mean(x: Floats) -> Floats:
        if not members:
            return np.full(len(x), np.nan)
        found = np.stack([of(x[:, at], y[at]) for at in members])
        there = ~np.isnan(found)
        means: Floats = np.divide(
            np.where(there, found, 0.0).sum(axis=0),
            there.sum(axis=0),
            out=np.full(len(x), np.nan),
            where=there.any(axis=0),
        )
        return means

    return mean


def _of_means(y: Floats, systems: Integers, measure: Measure) -> Agreement:
    belongs = (systems[:, None] == np.unique(systems)[None, :]).astype(np.float64)
    belongs /= belongs.sum(axis=0)
    of = rows_of(measure)
    return lambda x: of(x @ belongs, y @ belongs)
