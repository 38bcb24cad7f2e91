"""Statistics as functions of weights, and the weights of resamples drawn by cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ssrem.agreement.inputs import Floats, Integers, Measure
from ssrem.agreement.rows import rows
from ssrem.agreement.weighted import weighted

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


def pooled(x: Floats, y: Floats, measure: Measure, epsilon: float = 0.0) -> Statistic:
    """All responses at once."""
    of = weighted(measure, epsilon)
    return lambda weights: of(weights, x, y)


def by_group(x: Floats, y: Floats, groups: Integers, measure: Measure, epsilon: float = 0.0) -> Statistic:
    """Mean over groups (n,) that are not the clusters, such as systems: of those that have one under a weighting."""
    of = weighted(measure, epsilon)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    def mean(weights: Floats) -> Floats:
        found = np.stack([of(weights[:, at], x[at], y[at]) for at in members], axis=1)
        there = ~np.isnan(found)
        return _ratio(np.where(there, found, 0.0).sum(axis=1), there.sum(axis=1).astype(np.float64))

    return mean


def by_cluster(coefficients: Floats, clusters: Integers) -> Statistic:
    """Mean over clusters of their coefficients (clusters,), NaN for none: a cluster counts as often as it is drawn."""
    _, first = np.unique(clusters, return_index=True)
    there = ~np.isnan(coefficients)
    values = np.where(there, coefficients, 0.0)
    return lambda weights: _ratio(weights[:, first] @ values, weights[:, first] @ there.astype(np.float64))


def by_system(x: Floats, y: Floats, systems: Integers, measure: Measure) -> Statistic:
    """Of the systems' means; NaN where a system has no response left. The systems are kept, not drawn."""
    belongs = (systems[:, None] == np.unique(systems)[None, :]).astype(np.float64)
    of = rows(measure)

    def of_means(weights: Floats) -> Floats:
        size = weights @ belongs
        whole = (size > 0).all(axis=1)
        found = np.full(len(weights), np.nan)
        means = [weights[whole] @ (one[:, None] * belongs) / size[whole] for one in (x, y)]
        found[whole] = of(means[0], means[1])
        return found

    return of_means


def _ratio(total: Floats, count: Floats) -> Floats:
    found: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return found
