"""Bootstrap over contexts: resamples of them, and BCa intervals of agreement (bias-corrected and accelerated)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ssrem.agreement.accuracy import pairs_within
from ssrem.agreement.coefficients import Weighted, row_coefficients, weighted_coefficient
from ssrem.agreement.inputs import (
    EQUAL,
    Agreement,
    Floats,
    Integers,
    Labels,
    Measure,
    Outcome,
    Responses,
    View,
    chosen_labels,
    columns,
    complete,
    numbered,
    numbered_within,
)
from ssrem.agreement.levels import agreement_at, group_coefficients

RESAMPLES = 2000
MIN_CLUSTERS = 5
"""Fewer contexts than this have too few distinct resamples for the ends of an interval."""

MAX_UNDEFINED = 0.1
"""With a larger share of undefined resamples, the others would be a biased selection."""

JACKKNIFE_GROUPS = 200
"""At most so many groups of contexts are left out in turn: the acceleration of an interval needs no more."""

_CELLS = 250_000
"""Weights in a block: few enough to stay in the caches of a CPU."""


@dataclass(frozen=True)
class Interval:
    """low to high holds `statistic` at level `confidence`: BCa over `resamples` draws of `clusters` contexts.

    undefined: draws left out because they have no figure (a side does not vary in them). low and high are None unless
    outcome is 'ok', statistic is None where the data have none; reason says why in words.
    """

    statistic: float | None
    confidence: float
    clusters: int
    resamples: int
    seed: int
    low: float | None = None
    high: float | None = None
    undefined: int = 0
    outcome: Outcome = "ok"
    reason: str = ""


def agreement_interval(
    responses: Responses,
    view: View,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
    agreement: Agreement | None = None,
) -> Interval:
    """Interval of `agreement_at`, from responses (n,) resampled by context.

    agreement: the result of `agreement_at`, if it is known already. With grouping 'context' the coefficients of the
    contexts are resampled. Accuracy keeps the ε of the data, so the interval ignores the gain from choosing it. At
    system level only contexts are resampled: the interval holds for these systems, not for other ones. Errors as in
    `agreement_at`; ValueError where confidence is not within (0, 1), there is no resample, or the measure is soft
    accuracy.
    """
    check_resampling(confidence, resamples)
    agreement = agreement or agreement_at(responses, view)
    usable = complete(responses.scores, responses.human)
    clusters = numbered_within(responses.contexts, usable, "contexts")[1]
    count = len(np.unique(clusters))
    result = Interval(agreement.statistic, confidence, count, resamples, seed)
    if agreement.statistic is None:
        return replace(result, outcome=agreement.outcome, reason=agreement.reason)
    if count < MIN_CLUSTERS:
        few = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return replace(result, outcome="too_few", reason=few)
    x, y = columns(responses.scores, responses.human)[0].T
    systems = None if responses.systems is None else chosen_labels(responses.systems, usable)
    statistic = weighted_statistic(x, y, clusters, systems, view, agreement.epsilon or 0.0)
    return with_ends(result, *resampled(statistic, clusters, resamples, seed))


def with_ends(interval: Interval, draws: Floats, jackknife: Floats) -> Interval:
    """The interval with its ends, or why it has none.

    draws (r,), jackknife (groups,): the statistic on draws of the clusters, and without each group of them.
    """
    undefined = int(np.isnan(draws).sum())
    interval = replace(interval, undefined=undefined)
    if undefined > MAX_UNDEFINED * len(draws) or np.isnan(jackknife).any():
        reason = f"{undefined} of {len(draws)} resamples, or the data without one context, have no figure"
        return replace(interval, outcome="degenerate", reason=reason)
    assert interval.statistic is not None  # what has no statistic is not resampled
    ends = bca(interval.statistic, draws[~np.isnan(draws)], jackknife, interval.confidence)
    if isinstance(ends, str):
        return replace(interval, outcome="degenerate", reason=ends)
    return replace(interval, low=ends[0], high=ends[1])


def bca(
    estimate: float, replicates: Floats, jackknife: Floats, confidence: float = 0.95
) -> tuple[float, float] | str:
    """The two ends of a BCa interval (Efron 1987; Efron and Tibshirani 1993, section 14.3), or in words why there are
    none.

    estimate: on the data; replicates (r,): on resamples; jackknife (k,): with each cluster left out; all finite.
    confidence in (0, 1). Ties between estimate and replicates count half in the bias correction.
    """
    from scipy.special import ndtr, ndtri

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


def cluster_draws(clusters: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights (r, n) in blocks, `resamples` rows in all: clusters (n,), numbers from 0, drawn with replacement.

    Responses to one context are not independent, so whole contexts are drawn.
    """
    count = int(clusters.max(initial=-1)) + 1
    times = _times_drawn(count, resamples, seed)
    yield from (block.astype(np.float64)[:, clusters] for block in _blocks(times, len(clusters)))


@lru_cache(maxsize=4)
def _times_drawn(count: int, resamples: int, seed: int) -> Integers:
    """How often each of `count` clusters is drawn in each resample, (resamples, count)."""
    draw = np.random.default_rng(seed)
    rows = (np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(resamples))
    return np.stack([row.astype(np.uint16) for row in rows])


def leave_groups_out(clusters: Integers, seed: int) -> Iterator[Floats]:
    """Weights (r, n) of the jackknife, in blocks: each row leaves out one group of clusters.

    Each cluster is a group; if there are more than JACKKNIFE_GROUPS, they are divided at random into so many groups of
    nearly equal size.
    """
    count = int(clusters.max(initial=-1)) + 1
    groups = np.arange(count)
    if count > JACKKNIFE_GROUPS:
        groups = np.random.default_rng(seed).permutation(count) % JACKKNIFE_GROUPS
    out = np.arange(min(count, JACKKNIFE_GROUPS))
    group = groups[clusters]
    yield from (
        (group[None, :] != block[:, None]).astype(np.float64) for block in _blocks(out, len(clusters))
    )


def _blocks(rows: Integers, columns: int) -> Iterator[Integers]:
    step = max(1, _CELLS // max(1, columns))
    yield from (rows[start : start + step] for start in range(0, len(rows), step))


def evaluated(statistic: Weighted, blocks: Iterator[Floats]) -> Floats:
    """The statistic under every row of the blocks."""
    return np.concatenate([statistic(block) for block in blocks])


def resampled(statistic: Weighted, clusters: Integers, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The statistic on draws of the clusters (resamples,), and without each group of them (groups,)."""
    draws = evaluated(statistic, cluster_draws(clusters, resamples, seed))
    return draws, evaluated(statistic, leave_groups_out(clusters, seed))


def weighted_statistic(
    x: Floats, y: Floats, clusters: Integers, systems: Labels | None, view: View, epsilon: float = 0.0
) -> Weighted:
    """What `agreement_at` gives, as a function of weights; ValueError for soft accuracy.

    x, y, clusters: (n,), without gaps. systems: (n,), needed at system level and by system. ValueError without them.
    """
    if view.measure == "soft_accuracy":
        raise ValueError("soft accuracy has no interval: it is a permutation test of its own")
    if view.level == "segment" and view.grouping == "context":
        return by_cluster(_cluster_coefficients(x, y, clusters, view.measure, epsilon), clusters)
    if view.level == "segment" and view.grouping == "pooled":
        return pooled(x, y, view.measure, epsilon)
    if systems is None:
        raise ValueError(
            f"agreement at {view.level} level, {view.grouping}, needs the system of each response"
        )
    codes = numbered(systems, len(x), "systems")[1]
    if view.level == "system":
        return by_system(x, y, codes, view.measure)
    return by_group(x, y, codes, view.measure, epsilon)


def pooled(x: Floats, y: Floats, measure: Measure, epsilon: float = 0.0) -> Weighted:
    """All responses at once."""
    return weighted_coefficient(measure, x, y, epsilon)


def by_group(x: Floats, y: Floats, groups: Integers, measure: Measure, epsilon: float = 0.0) -> Weighted:
    """Mean coefficient over groups (n,) that are not the clusters, such as systems; a group without a coefficient under
    a weighting is left out."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    coefficients = [weighted_coefficient(measure, x[rows], y[rows], epsilon) for rows in members]

    def mean(weights: Floats) -> Floats:
        values = [of(weights[:, rows]) for of, rows in zip(coefficients, members, strict=True)]
        return mean_of_defined(np.stack(values))

    return mean


def by_cluster(coefficients: Floats, clusters: Integers) -> Weighted:
    """Mean over clusters of their coefficients (clusters,), NaN for none: a cluster counts as often as it is drawn."""
    _, first = np.unique(clusters, return_index=True)
    defined = ~np.isnan(coefficients)
    values = np.where(defined, coefficients, 0.0)

    def mean(weights: Floats) -> Floats:
        times = weights[:, first]
        return ratio(times @ values, times @ defined.astype(np.float64))

    return mean


def by_system(x: Floats, y: Floats, systems: Integers, measure: Measure) -> Weighted:
    """Coefficient of the systems' means; NaN where a system has no response left. Systems are not resampled."""
    belongs = (systems[:, None] == np.unique(systems)[None, :]).astype(np.float64)
    summed = np.hstack([belongs, x[:, None] * belongs, y[:, None] * belongs])
    coefficients = row_coefficients(measure)

    def of_means(weights: Floats) -> Floats:
        size, total_x, total_y = np.split(weights @ summed, 3, axis=1)
        complete = (size > 0).all(axis=1)
        values = np.full(len(weights), np.nan)
        means = [total[complete] / size[complete] for total in (total_x, total_y)]
        values[complete] = coefficients(means[0], means[1])
        return values

    return of_means


def mean_of_defined(values: Floats) -> Floats:
    """Mean over the first axis of values (groups, r) that are not NaN, (r,); NaN where all are."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64))


def _cluster_coefficients(
    x: Floats, y: Floats, clusters: Integers, measure: Measure, epsilon: float
) -> Floats:
    """Coefficient of each context (clusters,), NaN for none."""
    values = np.full(int(clusters.max()) + 1, np.nan)
    if measure == "accuracy":
        one, other = pairs_within(clusters)
        by_score, by_human = x[one] - x[other], y[one] - y[other]
        alike = np.where(np.abs(by_score) <= epsilon, 0.0, np.sign(by_score)) == np.sign(by_human)
        pairs, agreeing = (np.bincount(clusters[one], w, len(values)) for w in (None, alike))
        return ratio(agreeing.astype(np.float64), pairs.astype(np.float64))
    names = [str(code) for code in range(len(values))]
    for code, value in group_coefficients(x, y, names, clusters, measure)[0].items():
        values[code] = value
    return values


def ratio(total: Floats, count: Floats) -> Floats:
    """total / count (r,), NaN where count is 0."""
    quotient: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return quotient
