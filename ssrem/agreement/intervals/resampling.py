"""Statistics as functions of weights, and the weights of resamples drawn by cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ssrem.agreement.coefficients import row_coefficients, weighted_accuracy, weighted_coefficients
from ssrem.agreement.inputs import Floats, Grouping, Integers, Level, Measure
from ssrem.agreement.segment import group_coefficients

Statistic = Callable[[Floats], Floats]
"""Weights (r, n), how often each response is drawn, to the statistic under each (r,), NaN where it has none."""

_CELLS = 2_000_000


def cluster_draws(clusters: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights (r, n) in blocks, `resamples` rows in all: clusters (n,), numbers from 0, drawn with replacement.

    Responses to one context are not independent, so what is drawn is the context with all that belongs to it.
    """
    count = int(clusters.max(initial=-1)) + 1
    draw = np.random.default_rng(seed)
    step = max(1, _CELLS // max(1, len(clusters)))
    for start in range(0, resamples, step):
        drawn = draw.integers(count, size=(min(step, resamples - start), count))
        cells = drawn + count * np.arange(len(drawn))[:, None]
        times = np.bincount(cells.ravel(), minlength=len(drawn) * count).reshape(len(drawn), count)
        yield times.astype(np.float64)[:, clusters]


def leave_one_out(clusters: Integers) -> Iterator[Floats]:
    """Weights (r, n) in blocks, a row a cluster, which it leaves out: the jackknife."""
    count = int(clusters.max(initial=-1)) + 1
    step = max(1, _CELLS // max(1, len(clusters)))
    for start in range(0, count, step):
        out = np.arange(start, min(start + step, count))
        yield (clusters[None, :] != out[:, None]).astype(np.float64)


def evaluated(statistic: Statistic, blocks: Iterator[Floats]) -> Floats:
    """The statistic under every row of the blocks."""
    return np.concatenate([statistic(block) for block in blocks])


def resampled(statistic: Statistic, clusters: Integers, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The statistic on draws of the clusters (resamples,), and without each of them (clusters,)."""
    draws = evaluated(statistic, cluster_draws(clusters, resamples, seed))
    return draws, evaluated(statistic, leave_one_out(clusters))


def weighted_statistic(
    x: Floats,
    y: Floats,
    clusters: Integers,
    systems: Integers | None,
    *,
    measure: Measure,
    level: Level = "segment",
    grouping: Grouping = "pooled",
    epsilon: float = 0.0,
) -> Statistic:
    """What `segment_level` or `system_level` gives, as a function of weights.

    x, y, clusters: (n,), without gaps. systems: (n,), needed at system level and by system. ValueError without them.
    """
    if level == "segment" and grouping == "context":
        return by_cluster(_cluster_coefficients(x, y, clusters, measure, epsilon), clusters)
    if level == "segment" and grouping == "pooled":
        return pooled(x, y, measure, epsilon)
    if systems is None:
        raise ValueError(f"agreement at {level} level, {grouping}, needs the system of each response")
    if level == "system":
        return by_system(x, y, systems, measure)
    return by_group(x, y, systems, measure, epsilon)


def pooled(x: Floats, y: Floats, measure: Measure, epsilon: float = 0.0) -> Statistic:
    """All responses at once."""
    coefficients = weighted_coefficients(measure, epsilon)
    return lambda weights: coefficients(weights, x, y)


def by_group(x: Floats, y: Floats, groups: Integers, measure: Measure, epsilon: float = 0.0) -> Statistic:
    """Mean over groups (n,) that are not the clusters, such as systems: of those that have one under a weighting."""
    coefficients = weighted_coefficients(measure, epsilon)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    def mean(weights: Floats) -> Floats:
        return mean_of_defined(
            np.stack([coefficients(weights[:, rows], x[rows], y[rows]) for rows in members])
        )

    return mean


def by_cluster(coefficients: Floats, clusters: Integers) -> Statistic:
    """Mean over clusters of their coefficients (clusters,), NaN for none: a cluster counts as often as it is drawn."""
    _, first = np.unique(clusters, return_index=True)
    defined = ~np.isnan(coefficients)
    values = np.where(defined, coefficients, 0.0)

    def mean(weights: Floats) -> Floats:
        times = weights[:, first]
        return _ratio(times @ values, times @ defined.astype(np.float64))

    return mean


def by_system(x: Floats, y: Floats, systems: Integers, measure: Measure) -> Statistic:
    """Of the systems' means; NaN where a system has no response left. The systems are kept, not drawn."""
    belongs = (systems[:, None] == np.unique(systems)[None, :]).astype(np.float64)
    coefficients = row_coefficients(measure)

    def of_means(weights: Floats) -> Floats:
        size = weights @ belongs
        complete = (size > 0).all(axis=1)
        values = np.full(len(weights), np.nan)
        means = [weights[complete] @ (one[:, None] * belongs) / size[complete] for one in (x, y)]
        values[complete] = coefficients(means[0], means[1])
        return values

    return of_means


def mean_of_defined(values: Floats) -> Floats:
    """Mean over the first axis of values (groups, r) that are not NaN, (r,); NaN where all are."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64))


def _cluster_coefficients(
    x: Floats, y: Floats, clusters: Integers, measure: Measure, epsilon: float
) -> Floats:
    """Coefficient of each context (clusters,), NaN for none."""
    values = np.full(int(clusters.max()) + 1, np.nan)
    if measure == "accuracy":
        for code in range(len(values)):
            rows = clusters == code
            values[code] = weighted_accuracy(np.ones((1, int(rows.sum()))), x[rows], y[rows], epsilon)[0]
        return values
    names = [str(code) for code in range(len(values))]
    for code, value in group_coefficients(x, y, names, clusters, measure)[0].items():
        values[code] = value
    return values


def _ratio(total: Floats, count: Floats) -> Floats:
    ratio: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return ratio
