"""Confidence intervals of agreement: BCa bootstrap over contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssrem.agreement.bca import bca
from ssrem.agreement.inputs import (
    Floats,
    Integers,
    Labels,
    Measure,
    Numbers,
    Outcome,
    columns,
    complete,
    numbered,
)
from ssrem.agreement.resampling import (
    Statistic,
    by_cluster,
    by_group,
    by_system,
    cluster_draws,
    evaluated,
    leave_one_out,
    pooled,
)
from ssrem.agreement.segment import Grouping, group_coefficients, segment_level
from ssrem.agreement.system import system_level
from ssrem.agreement.weighted import weighted_accuracy

RESAMPLES = 2000
MIN_CLUSTERS = 5
"""Fewer contexts than this have too few distinct resamples for the ends of an interval."""

MAX_UNDEFINED = 0.1
"""Above this share of resamples without a figure, what is left of them is a choice."""


@dataclass(frozen=True)
class Interval:
    """low to high holds `statistic` at confidence `level`: BCa over `resamples` draws of `clusters` contexts.

    undefined: draws left out because they have no figure (a side does not vary in them). low and high are None unless
    outcome is 'ok', statistic is None where the data have none; reason says why in words.
    """

    statistic: float | None
    low: float | None
    high: float | None
    level: float
    clusters: int
    resamples: int
    seed: int
    undefined: int = 0
    outcome: Outcome = "ok"
    reason: str = ""


def segment_interval(
    scores: Numbers,
    human: Numbers,
    contexts: Labels,
    *,
    measure: Measure,
    grouping: Grouping = "pooled",
    systems: Labels | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
) -> Interval:
    """Interval of `segment_level`, from responses (n,) resampled by context (n,); systems (n,): for that grouping.

    By context, the contexts' coefficients are resampled. Accuracy keeps the ε of the data: the interval leaves out
    what is gained by choosing it. Errors as in `segment_level`.
    """
    groups = {"pooled": None, "system": systems, "context": contexts}[grouping]
    found = segment_level(scores, human, measure=measure, grouping=grouping, groups=groups)
    kept, clusters = _clusters(scores, human, contexts)
    if found.statistic is None:
        return _none(None, clusters, level, resamples, seed, found.outcome, found.reason)
    x, y = kept.T
    epsilon = found.epsilon or 0.0
    if grouping == "pooled":
        statistic = pooled(x, y, measure, epsilon)
    elif grouping == "system":
        labels = np.asarray(systems, dtype=object)[complete(scores, human)]
        codes = numbered(labels, len(x), "systems")[1]
        statistic = by_group(x, y, codes, measure, epsilon)
    else:
        statistic = by_cluster(_coefficients(x, y, clusters, measure, epsilon), clusters)
    return interval(statistic, found.statistic, clusters, level=level, resamples=resamples, seed=seed)


def system_interval(
    scores: Numbers,
    human: Numbers,
    systems: Labels,
    contexts: Labels,
    *,
    measure: Measure,
    force: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
) -> Interval:
    """Interval of `system_level`, from responses (n,) resampled by context (n,): of these systems, on other contexts.

    The systems are not resampled, so it says nothing of other systems. Errors as in `system_level`.
    """
    found = system_level(scores, human, systems, measure=measure, force=force)
    kept, clusters = _clusters(scores, human, contexts)
    if found.statistic is None:
        return _none(None, clusters, level, resamples, seed, found.outcome, found.reason)
    x, y = kept.T
    labels = np.asarray(systems, dtype=object)[complete(scores, human)]
    statistic = by_system(x, y, numbered(labels, len(x), "systems")[1], measure)
    return interval(statistic, found.statistic, clusters, level=level, resamples=resamples, seed=seed)


def interval(
    statistic: Statistic, estimate: float, clusters: Integers, *, level: float, resamples: int, seed: int
) -> Interval:
    """Interval of any statistic of weights whose value on the data is `estimate`; clusters (n,), numbers from 0.

    ValueError where level is not within (0, 1), or there is no resample.
    """
    if not 0 < level < 1 or resamples < 1:
        raise ValueError(
            f"an interval needs a level within (0, 1) and resamples, not {level} and {resamples}"
        )
    count = len(np.unique(clusters))
    if count < MIN_CLUSTERS:
        reason = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return _none(estimate, clusters, level, resamples, seed, "too_few", reason)
    replicates = evaluated(statistic, cluster_draws(clusters, resamples, seed))
    jackknife = evaluated(statistic, leave_one_out(clusters))
    undefined = int(np.isnan(replicates).sum())
    if undefined > MAX_UNDEFINED * resamples or np.isnan(jackknife).any():
        reason = f"{undefined} of {resamples} resamples, or the data without one context, have no figure"
        return _none(estimate, clusters, level, resamples, seed, "degenerate", reason, undefined)
    ends = bca(estimate, replicates[~np.isnan(replicates)], jackknife, level)
    if isinstance(ends, str):
        return _none(estimate, clusters, level, resamples, seed, "degenerate", ends, undefined)
    return Interval(estimate, *ends, level, count, resamples, seed, undefined)


def _clusters(scores: Numbers, human: Numbers, contexts: Labels) -> tuple[Floats, Integers]:
    pairs, _ = columns(scores, human)
    if len(contexts) != len(scores):
        raise ValueError(f"{len(contexts)} contexts do not fit {len(scores)} scores")
    labels = np.asarray(contexts, dtype=object)[complete(scores, human)]
    return pairs, numbered(labels, len(pairs), "contexts")[1]


def _coefficients(x: Floats, y: Floats, clusters: Integers, measure: Measure, epsilon: float) -> Floats:
    """Of each context (clusters,), NaN for none."""
    found = np.full(int(clusters.max()) + 1, np.nan)
    if measure == "accuracy":
        for code in range(len(found)):
            at = clusters == code
            found[code] = weighted_accuracy(np.ones((1, int(at.sum()))), x[at], y[at], epsilon)[0]
        return found
    names = [str(code) for code in range(len(found))]
    for code, value in group_coefficients(x, y, names, clusters, measure)[0].items():
        found[code] = value
    return found


def _none(
    estimate: float | None,
    clusters: Integers,
    level: float,
    resamples: int,
    seed: int,
    outcome: Outcome,
    reason: str,
    undefined: int = 0,
) -> Interval:
    count = len(np.unique(clusters))
    return Interval(estimate, None, None, level, count, resamples, seed, undefined, outcome, reason)
