"""Paired bootstrap of the difference between two evaluators, by context."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from ssrem.agreement.intervals.bootstrap import (
    MIN_CLUSTERS,
    RESAMPLES,
    check_asked,
    interval_of,
    resampled,
    segment_statistic,
)
from ssrem.agreement.intervals.resampling import Statistic, by_system
from ssrem.agreement.segment import TOO_FEW, Grouping, SegmentAgreement, segment_level
from ssrem.agreement.system import SystemAgreement, system_level


@dataclass(frozen=True)
class Resampled:
    """How one evaluator agrees with people: on the data, on draws of contexts (r,), and without each context (k,)."""

    statistic: float
    draws: Floats
    jackknife: Floats


Known = dict[tuple[bytes, bytes], Resampled]


def paired_bootstrap(
    first: Numbers,
    second: Numbers,
    human: Numbers,
    contexts: Labels,
    *,
    measure: Measure = "spearman",
    level: Level = "segment",
    grouping: Grouping = "pooled",
    systems: Labels | None = None,
    force: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    sides: Sides = "two-sided",
    seed: int,
    known: Known | None = None,
) -> Difference:
    """Difference of the agreement of first and second (n,) with the human scores (n,), with its BCa interval.

    Both are taken on the same resamples of contexts (n,); NaN is missing, and a response counts where it has all
    three. p = (k + 1) / (resamples + 1) for k resamples in which first is not better, the inversion of a percentile
    interval; two-sided: twice that of the smaller side, at most 1. Accuracy keeps the ε of either. level 'system': of
    the means by `systems` (n,), refused below five unless `force`. known: a dict that calls which differ in first and
    second alone may share, so that each evaluator is resampled once and not once a pair. ValueError for infinite
    scores and labels that do not fit.
    """
    check_asked(confidence, resamples)
    values, missing = columns(first, second, human)
    there = complete(first, second, human)
    clusters = those(contexts, there, "contexts")[1]
    codes = None if systems is None else those(systems, there, "systems")[1]
    count = len(np.unique(clusters))
    found = Difference(
        "paired-bootstrap",
        measure,
        sides,
        len(values),
        missing,
        confidence=confidence,
        clusters=count,
        resamples=resamples,
        seed=seed,
    )
    if why := unfit(values[:, 0], values[:, 1], values[:, 2], TOO_FEW):
        return replace(found, outcome=why[0], reason=why[1])
    if count < MIN_CLUSTERS:
        few = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return replace(found, outcome="too_few", reason=few)
    both = []
    for x in values.T[:2]:
        key = (there.tobytes(), x.tobytes())
        one = known.get(key) if known is not None else None
        if one is None:
            agreement, statistic = _agreement(
                x, values[:, 2], clusters, codes, measure, level, grouping, force
            )
            if agreement.statistic is None:
                return replace(found, outcome=agreement.outcome, reason=agreement.reason)
            one = Resampled(agreement.statistic, *resampled(statistic, clusters, resamples, seed))
        if known is not None:
            known[key] = one
        both.append(one)
    a, b = both
    apart = a.statistic - b.statistic
    found = replace(found, first=a.statistic, second=b.statistic, difference=apart)
    replicates = a.draws - b.draws
    ends = interval_of(
        replicates, a.jackknife - b.jackknife, apart, clusters, confidence=confidence, seed=seed
    )
    if ends.outcome != "ok":
        return replace(found, outcome=ends.outcome, reason=ends.reason)
    return replace(found, p=_p(replicates, sides), low=ends.low, high=ends.high)


def _p(replicates: Floats, sides: Sides) -> float:
    """A resample without a figure counts against either side."""
    not_better = (int((~(replicates > EQUAL)).sum()) + 1) / (len(replicates) + 1)
    not_worse = (int((~(replicates < -EQUAL)).sum()) + 1) / (len(replicates) + 1)
    return not_better if sides == "greater" else min(1.0, 2 * min(not_better, not_worse))


def _agreement(
    x: Floats,
    y: Floats,
    clusters: Integers,
    systems: Integers | None,
    measure: Measure,
    level: Level,
    grouping: Grouping,
    force: bool,
) -> tuple[SegmentAgreement | SystemAgreement, Statistic]:
    """On the data, and as a function of weights."""
    if level == "segment":
        groups = {"pooled": None, "system": systems, "context": clusters}[grouping]
        found = segment_level(x, y, measure=measure, grouping=grouping, groups=groups)
        epsilon = found.epsilon or 0.0
        return found, segment_statistic(x, y, clusters, systems, measure, grouping, epsilon)
    if systems is None:
        raise ValueError("the system level needs the system of each response")
    return system_level(x, y, systems, measure=measure, force=force), by_system(x, y, systems, measure)
