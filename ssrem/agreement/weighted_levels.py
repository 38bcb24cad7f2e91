"""Agreement at a level as a function of the weights of the responses, such as how often a resample draws each."""

from __future__ import annotations

import numpy as np

from ssrem.agreement.accuracy import pairs_within
from ssrem.agreement.coefficients import Weighted, row_coefficients, weighted_coefficient
from ssrem.agreement.inputs import MIN_RESPONSES, Floats, Integers, Labels, Measure, View, numbered
from ssrem.agreement.levels import group_coefficients


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
        return weighted_coefficient(view.measure, x, y, epsilon)
    if systems is None:
        raise ValueError(
            f"agreement at {view.level} level, {view.grouping}, needs the system of each response"
        )
    codes = numbered(systems, len(x), "systems")[1]
    if view.level == "system":
        return by_system(x, y, codes, view.measure)
    return by_group(x, y, codes, view.measure, epsilon)


def by_group(x: Floats, y: Floats, groups: Integers, measure: Measure, epsilon: float = 0.0) -> Weighted:
    """Mean coefficient over groups (n,) that are not the clusters, such as systems, without those too small for
    `group_coefficients`; a group without a coefficient under a weighting is left out."""
    least = 1 if measure == "accuracy" else MIN_RESPONSES
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    members = [rows for rows in members if len(rows) >= least]
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
