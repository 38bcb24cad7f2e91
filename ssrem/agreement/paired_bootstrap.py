"""Paired bootstrap of the difference between two evaluators, by context."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssrem.agreement.difference import Difference, Level, unfit
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
from ssrem.agreement.intervals import MIN_CLUSTERS, RESAMPLES, interval, segment_statistic
from ssrem.agreement.resampling import Statistic, by_system, cluster_draws, evaluated
from ssrem.agreement.segment import TOO_FEW, Grouping, SegmentAgreement, segment_level
from ssrem.agreement.system import SystemAgreement, system_level


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
) -> Difference:
    """Difference of the agreement of first and second (n,) with the human scores (n,), with its BCa interval.

    Both are taken on the same resamples of contexts (n,); NaN is missing, and a response counts where it has all
    three. p = (k + 1) / (resamples + 1) for k resamples in which first is not better, the inversion of a percentile
    interval; two-sided: twice that of the smaller side, at most 1. Accuracy keeps the ε of either. level 'system': of
    the means by `systems` (n,), refused below five unless `force`. ValueError for infinite scores and labels that do
    not fit.
    """
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
    seen, statistics = [], []
    for x in values.T[:2]:
        agreement, statistic = _agreement(x, values[:, 2], clusters, codes, measure, level, grouping, force)
        if agreement.statistic is None:
            return replace(found, outcome=agreement.outcome, reason=agreement.reason)
        seen.append(agreement.statistic)
        statistics.append(statistic)
    apart = seen[0] - seen[1]
    found = replace(found, first=seen[0], second=seen[1], difference=apart)

    def difference(weights: Floats) -> Floats:
        return statistics[0](weights) - statistics[1](weights)

    replicates = evaluated(difference, cluster_draws(clusters, resamples, seed))
    ends = interval(
        difference,
        apart,
        clusters,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        replicates=replicates,
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
