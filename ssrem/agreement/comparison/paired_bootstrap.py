"""Paired bootstrap of the difference between two evaluators, by context."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ssrem.agreement.comparison.significance import Difference, not_comparable
from ssrem.agreement.inputs import (
    EQUAL,
    MIN_RESPONSES,
    Floats,
    Grouping,
    Labels,
    Level,
    Measure,
    Numbers,
    Sides,
    chosen_labels,
    columns,
    complete,
    numbered,
)
from ssrem.agreement.intervals.bootstrap import (
    MIN_CLUSTERS,
    RESAMPLES,
    agreement_at,
    check_resampling,
    interval_of,
)
from ssrem.agreement.intervals.resampling import resampled, weighted_statistic


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
    check_resampling(confidence, resamples)
    values, missing = columns(first, second, human)
    usable = complete(first, second, human)
    if len(contexts) != len(usable):
        raise ValueError(f"{len(contexts)} contexts do not fit {len(usable)} scores")
    contexts = chosen_labels(contexts, usable)
    systems = None if systems is None else chosen_labels(systems, usable)
    clusters = numbered(contexts, len(values), "contexts")[1]
    codes = None if systems is None else numbered(systems, len(values), "systems")[1]
    count = len(np.unique(clusters))
    result = Difference(
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
    y = values[:, 2]
    if why := not_comparable(values[:, 0], values[:, 1], y, MIN_RESPONSES):
        return replace(result, outcome=why[0], reason=why[1])
    if count < MIN_CLUSTERS:
        few = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return replace(result, outcome="too_few", reason=few)
    known = {} if known is None else known
    both = []
    for x in values.T[:2]:
        key = (usable.tobytes(), x.tobytes())
        if key not in known:
            agreement = agreement_at(
                x, y, contexts, systems, measure=measure, level=level, grouping=grouping, force=force
            )
            if agreement.statistic is None:
                return replace(result, outcome=agreement.outcome, reason=agreement.reason)
            statistic = weighted_statistic(
                x,
                y,
                clusters,
                codes,
                measure=measure,
                level=level,
                grouping=grouping,
                epsilon=agreement.epsilon or 0.0,
            )
            known[key] = Resampled(agreement.statistic, *resampled(statistic, clusters, resamples, seed))
        both.append(known[key])
    a, b = both
    difference = a.statistic - b.statistic
    result = replace(result, first=a.statistic, second=b.statistic, difference=difference)
    replicates = a.draws - b.draws
    ends = interval_of(
        replicates, a.jackknife - b.jackknife, difference, clusters, confidence=confidence, seed=seed
    )
    if ends.outcome != "ok":
        return replace(result, outcome=ends.outcome, reason=ends.reason)
    return replace(result, p=_p(replicates, sides), low=ends.low, high=ends.high)


def _p(replicates: Floats, sides: Sides) -> float:
    """A resample without a figure counts against either side."""
    not_better = (int((~(replicates > EQUAL)).sum()) + 1) / (len(replicates) + 1)
    not_worse = (int((~(replicates < -EQUAL)).sum()) + 1) / (len(replicates) + 1)
    return not_better if sides == "greater" else min(1.0, 2 * min(not_better, not_worse))
