"""Whether an evaluator agrees with people at all: a permutation test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ssrem.agreement.comparison.permutation import CELLS, PERMUTATIONS, at_least, of_all, of_groups
from ssrem.agreement.inputs import (
    Labels,
    Measure,
    Numbers,
    Outcome,
    Sides,
    columns,
    complete,
    those,
    unvarying,
)
from ssrem.agreement.segment import TOO_FEW


@dataclass(frozen=True)
class Chance:
    """statistic, and p in (0, 1] that scores dealt out at random agree as well: 'greater', or as far from 0:
    'two-sided'. Over n responses and `permutations` deals by `seed`. Both are None unless outcome is 'ok'."""

    measure: Measure
    sides: Sides
    n: int
    missing: int
    permutations: int
    seed: int
    statistic: float | None = None
    p: float | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def against_chance(
    scores: Numbers,
    human: Numbers,
    *,
    measure: Measure,
    groups: Labels | None = None,
    permutations: int = PERMUTATIONS,
    sides: Sides = "two-sided",
    seed: int,
) -> Chance:
    """Scores (n,) are dealt out anew `permutations` times, within their group where groups (n,) are given.

    The statistic is then the mean over groups of at least three, so that differences between systems or contexts count
    for nothing; without groups it is pooled, and they count. NaN is missing. p = (k + 1) / (permutations + 1) for k
    deals that agree at least as well. Accuracy is no correlation, 0 is not its chance: ValueError; also for infinite
    scores and lengths that differ.
    """
    if measure == "accuracy":
        raise ValueError("accuracy has no p against chance: its chance depends on the ties")
    pairs, missing = columns(scores, human)
    x, y = pairs.T
    found = Chance(measure, sides, len(x), missing, permutations, seed)
    if len(x) < TOO_FEW:
        few = f"{len(x)} responses with both scores; {TOO_FEW} are needed"
        return replace(found, outcome="too_few", reason=few)
    if unvarying(x, y):
        return replace(found, outcome="constant", reason="the scores, or people's, are all the same")
    codes = np.zeros(len(x), dtype=np.int64)
    if groups is not None:
        codes = those(groups, complete(scores, human), "groups")[1]
    agreement = of_all(y, measure) if groups is None else of_groups(y, codes, measure)
    seen = float(agreement(x[None])[0])
    if np.isnan(seen):
        return replace(found, outcome="too_few", reason="no group has three responses whose scores vary")
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    draw, extreme, done = np.random.default_rng(seed), 0, 0
    while done < permutations:
        r = min(permutations - done, max(1, CELLS // len(x)))
        keys, dealt = draw.random((r, len(x))), np.empty((r, len(x)))
        for at in members:
            dealt[:, at] = x[at][np.argsort(keys[:, at], axis=1)]
        extreme += at_least(agreement(dealt), seen, sides)
        done += r
    return replace(found, statistic=seen, p=(extreme + 1) / (permutations + 1))
