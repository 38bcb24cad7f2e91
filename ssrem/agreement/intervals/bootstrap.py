"""Confidence intervals of agreement: BCa bootstrap over contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssrem.agreement.inputs import (
    Floats,
    Integers,
    Labels,
    Measure,
    Numbers,
    Outcome,
    columns,
    complete,
    those,
)
from ssrem.agreement.intervals.bca import bca
from ssrem.agreement.intervals.resampling import (
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
    """low to high holds `statistic` at level `confidence`: BCa over `resamples` draws of `clusters` contexts.

    undefined: draws left out because they have no figure (a side does not vary in them). low and high are None unless
    outcome is 'ok', statistic is None where the data have none; reason says why in words.
    """

    statistic: float | None
    low: float | None
    high: float | None
    confidence: float
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
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
) -> Interval:
    """Interval of `segment_level`, from responses (n,) resampled by context (n,); systems (n,): for that grouping.

    By context, the contexts' coefficients are resampled. Accuracy keeps the ε of the data: the interval leaves out
    what is gained by choosing it. Errors as in `segment_level`.
    """
    groups = {"pooled": None, "system": systems, "context": contexts}[grouping]
    found = segment_level(scores, human, measure=measure, grouping=grouping, groups=groups)
    there = complete(scores, human)
    clusters = those(contexts, there, "contexts")[1]
    if found.statistic is None:
        return without(None, clusters, confidence, resamples, seed, found.outcome, found.reason)
    x, y = columns(scores, human)[0].T
    codes = None if systems is None else those(systems, there, "systems")[1]
    statistic = segment_statistic(x, y, clusters, codes, measure, grouping, found.epsilon or 0.0)
    return interval(
        statistic, found.statistic, clusters, confidence=confidence, resamples=resamples, seed=seed
    )


def system_interval(
    scores: Numbers,
    human: Numbers,
    systems: Labels,
    contexts: Labels,
    *,
    measure: Measure,
    force: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
) -> Interval:
    """Interval of `system_level`, from responses (n,) resampled by context (n,): of these systems, on other contexts.

    The systems are not resampled, so it says nothing of other systems. Errors as in `system_level`.
    """
    found = system_level(scores, human, systems, measure=measure, force=force)
    there = complete(scores, human)
    clusters = those(contexts, there, "contexts")[1]
    if found.statistic is None:
        return without(None, clusters, confidence, resamples, seed, found.outcome, found.reason)
    x, y = columns(scores, human)[0].T
    statistic = by_system(x, y, those(systems, there, "systems")[1], measure)
    return interval(
        statistic, found.statistic, clusters, confidence=confidence, resamples=resamples, seed=seed
    )


def segment_statistic(
    x: Floats,
    y: Floats,
    clusters: Integers,
    systems: Integers | None,
    measure: Measure,
    grouping: Grouping,
    epsilon: float = 0.0,
) -> Statistic:
    """What `segment_level` gives, as a function of weights. All (n,) and without gaps; systems for that grouping."""
    if grouping == "context":
        return by_cluster(_coefficients(x, y, clusters, measure, epsilon), clusters)
    if grouping == "system":
        if systems is None:
            raise ValueError("agreement by system needs the system of each response")
        return by_group(x, y, systems, measure, epsilon)
    return pooled(x, y, measure, epsilon)


def check_asked(confidence: float, resamples: int) -> None:
    """ValueError where confidence is not within (0, 1), or there is no resample."""
    if not 0 < confidence < 1 or resamples < 1:
        raise ValueError(
            f"an interval needs a confidence within (0, 1) and resamples, not {confidence} and {resamples}"
        )


def interval(
    statistic: Statistic,
    estimate: float,
    clusters: Integers,
    *,
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval:
    """Interval of any statistic of weights whose value on the data is `estimate`; clusters (n,), numbers from 0."""
    check_asked(confidence, resamples)
    count = len(np.unique(clusters))
    if count < MIN_CLUSTERS:
        reason = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return without(estimate, clusters, confidence, resamples, seed, "too_few", reason)
    values = resampled(statistic, clusters, resamples, seed)
    return interval_of(*values, estimate, clusters, confidence=confidence, seed=seed)


def interval_of(
    draws: Floats, jackknife: Floats, estimate: float, clusters: Integers, *, confidence: float, seed: int
) -> Interval:
    """Interval of a statistic from its values on draws of the clusters (r,) and without each of them (clusters,)."""
    resamples, undefined = len(draws), int(np.isnan(draws).sum())
    if undefined > MAX_UNDEFINED * resamples or np.isnan(jackknife).any():
        reason = f"{undefined} of {resamples} resamples, or the data without one context, have no figure"
        return without(estimate, clusters, confidence, resamples, seed, "degenerate", reason, undefined)
    ends = bca(estimate, draws[~np.isnan(draws)], jackknife, confidence)
    if isinstance(ends, str):
        return without(estimate, clusters, confidence, resamples, seed, "degenerate", ends, undefined)
    count = len(np.unique(clusters))
    return Interval(estimate, *ends, confidence, count, resamples, seed, undefined)


def resampled(statistic: Statistic, clusters: Integers, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The statistic on draws of the clusters (resamples,), and without each of them (clusters,)."""
    draws = evaluated(statistic, cluster_draws(clusters, resamples, seed))
    return draws, evaluated(statistic, leave_one_out(clusters))


def without(
    estimate: float | None,
    clusters: Integers,
    confidence: float,
    resamples: int,
    seed: int,
    outcome: Outcome,
    reason: str,
    undefined: int = 0,
) -> Interval:
    """An interval that is none, and why."""
    count = len(np.unique(clusters))
    return Interval(estimate, None, None, confidence, count, resamples, seed, undefined, outcome, reason)


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
