"""Confidence intervals of agreement: bias-corrected and accelerated (BCa) bootstrap over contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ssrem.agreement.inputs import (
    EQUAL,
    Agreement,
    Floats,
    Grouping,
    Integers,
    Labels,
    Level,
    Measure,
    Numbers,
    Outcome,
    columns,
    complete,
    numbered_within,
)
from ssrem.agreement.intervals.resampling import Statistic, resampled, weighted_statistic
from ssrem.agreement.segment import segment_level
from ssrem.agreement.system import system_level

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


def agreement_at(
    scores: Numbers,
    human: Numbers,
    contexts: Labels,
    systems: Labels | None,
    *,
    measure: Measure,
    level: Level = "segment",
    grouping: Grouping = "pooled",
    force: bool = False,
) -> Agreement:
    """`segment_level` with the groups of the grouping, or `system_level`. ValueError as there, and without systems."""
    if level == "system":
        if systems is None:
            raise ValueError("the system level needs the system of each response")
        return system_level(scores, human, systems, measure=measure, force=force)
    groups = {"pooled": None, "system": systems, "context": contexts}[grouping]
    return segment_level(scores, human, measure=measure, grouping=grouping, groups=groups)


def agreement_interval(
    scores: Numbers,
    human: Numbers,
    contexts: Labels,
    *,
    measure: Measure,
    level: Level = "segment",
    grouping: Grouping = "pooled",
    systems: Labels | None = None,
    force: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
    agreement: Agreement | None = None,
) -> Interval:
    """Interval of `agreement_at`, from responses (n,) resampled by context (n,); agreement: it, where it is known.

    By context, the contexts' coefficients are resampled. Accuracy keeps the ε of the data: the interval leaves out
    what is gained by choosing it. At system level the systems are not resampled: the interval is of these systems on
    other contexts, and says nothing of other systems. Errors as in `agreement_at`.
    """
    agreement = agreement or agreement_at(
        scores, human, contexts, systems, measure=measure, level=level, grouping=grouping, force=force
    )
    usable = complete(scores, human)
    clusters = numbered_within(contexts, usable, "contexts")[1]
    if agreement.statistic is None:
        return _without(None, clusters, confidence, resamples, seed, agreement.outcome, agreement.reason)
    x, y = columns(scores, human)[0].T
    codes = None if systems is None else numbered_within(systems, usable, "systems")[1]
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
    return interval(
        statistic, agreement.statistic, clusters, confidence=confidence, resamples=resamples, seed=seed
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
    check_resampling(confidence, resamples)
    count = len(np.unique(clusters))
    if count < MIN_CLUSTERS:
        reason = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return _without(estimate, clusters, confidence, resamples, seed, "too_few", reason)
    values = resampled(statistic, clusters, resamples, seed)
    return interval_of(*values, estimate, clusters, confidence=confidence, seed=seed)


def interval_of(
    draws: Floats, jackknife: Floats, estimate: float, clusters: Integers, *, confidence: float, seed: int
) -> Interval:
    """Interval of a statistic from its values on draws of the clusters (r,) and without each of them (clusters,)."""
    resamples, undefined = len(draws), int(np.isnan(draws).sum())
    if undefined > MAX_UNDEFINED * resamples or np.isnan(jackknife).any():
        reason = f"{undefined} of {resamples} resamples, or the data without one context, have no figure"
        return _without(estimate, clusters, confidence, resamples, seed, "degenerate", reason, undefined)
    ends = bca(estimate, draws[~np.isnan(draws)], jackknife, confidence)
    if isinstance(ends, str):
        return _without(estimate, clusters, confidence, resamples, seed, "degenerate", ends, undefined)
    count = len(np.unique(clusters))
    return Interval(estimate, *ends, confidence, count, resamples, seed, undefined)


def bca(
    estimate: float, replicates: Floats, jackknife: Floats, confidence: float = 0.95
) -> tuple[float, float] | str:
    """The two ends of a BCa interval (Efron 1987; Efron and Tibshirani 1993, section 14.3), or in words why there are
    none.

    estimate: on the data; replicates (r,): on resamples; jackknife (k,): with each cluster left out; all finite.
    confidence in (0, 1). Ties between estimate and replicates count half in the bias correction.
    """
    if np.ptp(replicates) < EQUAL:
        return "all resamples give the same figure"
    tied = np.abs(replicates - estimate) < EQUAL
    below = float((replicates < estimate)[~tied].sum() + tied.sum() / 2) / len(replicates)
    if below in (0.0, 1.0):
        return "all resamples lie on one side of the figure"
    bias = float(ndtri(below))
    influence = jackknife.mean() - jackknife
    spread = float((influence**2).sum())
    if spread < EQUAL**2:
        return "no context changes the figure by being left out"
    acceleration = float((influence**3).sum()) / (6 * spread**1.5)
    normal = ndtri([(1 - confidence) / 2, (1 + confidence) / 2]) + bias
    stretch = 1 - acceleration * normal
    if (stretch <= 0).any():
        return "single contexts decide the figure: its acceleration is too large for an interval"
    low, high = np.quantile(replicates, ndtr(bias + normal / stretch))
    return float(low), float(high)


def check_resampling(confidence: float, resamples: int) -> None:
    """ValueError where confidence is not within (0, 1), or there is no resample."""
    if not 0 < confidence < 1 or resamples < 1:
        raise ValueError(
            f"an interval needs a confidence within (0, 1) and resamples, not {confidence} and {resamples}"
        )


def _without(
    estimate: float | None,
    clusters: Integers,
    confidence: float,
    resamples: int,
    seed: int,
    outcome: Outcome,
    reason: str,
    undefined: int = 0,
) -> Interval:
    """An interval without ends, and why."""
    count = len(np.unique(clusters))
    return Interval(estimate, None, None, confidence, count, resamples, seed, undefined, outcome, reason)
