"""Bootstrap over contexts: BCa intervals of agreement.

A resample is a weighting of contexts by how often each is drawn. Coefficients are computed for many weightings at once:
what does not depend on the weights, such as sort orders and sums over a context, is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import CONFIDENCE
from ssrem.agreement.correlate import (
    EQUAL,
    MIN_RESPONSES,
    ROW_COEFFICIENTS,
    Floats,
    Integers,
    Measure,
    ScoredResponses,
    View,
    group_coefficients,
    pairs_within,
    rounded,
)

Weighted = Callable[[Floats], Floats]
"""Function from weights of contexts (r, contexts), whole numbers from 0, to the figure under each weighting (r,). Each
response is repeated as often as the weight of its context says. NaN where a side does not vary."""

DRAWS = 2000
MIN_CLUSTERS = 5
"""Fewer contexts than this have too few distinct resamples for the ends of an interval."""

MAX_UNDEFINED = 0.1
"""With a larger share of undefined resamples, the others would be a biased selection."""

JACKKNIFE_GROUPS = 200
"""The jackknife leaves out at most this many groups of contexts in turn: the acceleration of BCa needs no more."""

_CELLS = 250_000
"""Resamples times responses in a block: few enough to stay in the caches of a CPU."""
_FEW = 64
"""Up to this many distinct values, the weight of each is summed by a product of matrices."""
_ROUNDING = 1e-12
"""A variance below this share of the mean square that it is computed from counts as a rounding error, that is as 0."""


# Coefficients of x and y (n,) as functions of weights; contexts (n,): the context of each response, numbers from 0


def weighted_coefficient(
    measure: Measure, x: Floats, y: Floats, contexts: Integers, epsilon: float = 0.0
) -> Weighted:
    """A measure of x and y (n,) as a function of weights of contexts; only accuracy uses `epsilon`."""
    if measure == "accuracy":
        return weighted_accuracy(x, y, contexts, epsilon)
    of = {"pearson": weighted_pearson, "spearman": weighted_spearman, "kendall": weighted_kendall}
    return of[measure](x, y, contexts)


def weighted_pearson(x: Floats, y: Floats, contexts: Integers) -> Weighted:
    """Pearson's r in [-1, 1] as a function of weights of contexts, computed from sums over each context."""
    a, b = x - x.mean(), y - y.mean()
    moments = np.stack(
        [np.bincount(contexts, one) for one in (np.ones(len(a)), a, b, a**2, b**2, a * b)], axis=1
    )

    def coefficient(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            total, *sums = (weights[:, : len(moments)] @ moments).T
            mean_a, mean_b, square_a, square_b, product = (one / total for one in sums)
            var_a, var_b = square_a - mean_a**2, square_b - mean_b**2
            varying = (var_a > _ROUNDING * square_a) & (var_b > _ROUNDING * square_b)
            return _clipped(product - mean_a * mean_b, np.sqrt(var_a * var_b), undefined=~varying)

    return coefficient


def weighted_spearman(x: Floats, y: Floats, contexts: Integers) -> Weighted:
    """Spearman's ρ in [-1, 1], ties at their mean rank, as a function of weights of contexts."""
    order = np.argsort(x, kind="stable")
    ranked = _ranked(x[order], contexts[order])
    mass_y, place_y = _masses(y, contexts)
    of_y = place_y[order]

    def coefficient(weights: Floats) -> Floats:
        (rank_x, square_x), masses = ranked(weights), mass_y(weights)
        total = masses.sum(axis=1)
        rank_y = np.cumsum(masses, axis=1) - masses / 2 - total[:, None] / 2  # less the mean rank
        square_y = _squared_ranks(masses, total)
        product = np.einsum("rn,rn->r", rank_x, rank_y[:, of_y])
        return _clipped(product, np.sqrt(square_x * square_y), undefined=(square_x == 0) | (square_y == 0))

    return coefficient


def _ranked(x: Floats, contexts: Integers) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Function from weights (r, contexts) to each response's rank times its weight (r, n), and to the sum of squared
    deviations of the ranks from their mean (r,). x (n,): ascending."""
    begins = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    ends = np.append(begins[1:], len(x))
    first, last = np.repeat(begins, ends - begins), np.repeat(ends, ends - begins)

    def ranks(weights: Floats) -> tuple[Floats, Floats]:
        own = weights[:, contexts]
        below, untied = _running(own), len(begins) == len(x)
        rank = below[:, :-1] + below[:, 1:] if untied else below[:, first] + below[:, last]
        masses = own if untied else below[:, ends] - below[:, begins]
        return rank * own / 2, _squared_ranks(masses, below[:, -1])

    return ranks


def _squared_ranks(masses: Floats, total: Floats) -> Floats:
    """Sum of squared deviations of the ranks from their mean, (r,): (T³ − Σ t³) / 12. masses: the weights t of the
    distinct values (r, v); total: their sum T (r,)."""
    squares: Floats = (total**3 - np.einsum("rv,rv,rv->r", masses, masses, masses)) / 12
    return squares


def weighted_kendall(x: Floats, y: Floats, contexts: Integers) -> Weighted:
    """Kendall's τ-b in [-1, 1] as a function of weights (r, contexts), in time r · n · log(distinct values of y)."""
    splits = list(_splits(x, y, contexts, 0.0))
    masses = [_masses(one, contexts)[0] for one in (x, y)]
    sizes = np.bincount(contexts).astype(np.float64)

    def coefficient(weights: Floats) -> Floats:
        excess = np.zeros(len(weights))
        for split in splits:
            below = _running(weights[:, split.lower])
            net = below[:, split.first_tied] + below[:, split.above]
            net -= below[:, split.end] + below[:, split.start]
            excess += np.einsum("ru,ru->r", weights[:, split.upper], net)
        total = _pair_count(weights[:, : len(sizes)] @ sizes)
        untied = [total - _pair_count(mass(weights)).sum(axis=1) for mass in masses]
        with np.errstate(invalid="ignore"):
            undefined = (untied[0] <= 0) | (untied[1] <= 0)
            return _clipped(excess, np.sqrt(untied[0] * untied[1]), undefined=undefined)

    return coefficient


def weighted_accuracy(x: Floats, y: Floats, contexts: Integers, epsilon: float = 0.0) -> Weighted:
    """Share in [0, 1] of pairs that x orders or ties as y does, as a function of weights of contexts.

    Values of x that differ by `epsilon` or less are tied. NaN where there is no pair. A response that is drawn twice
    makes no pair with itself, as such a pair would always agree.
    """
    everyone, same_y = np.arange(len(x)), np.unique(y, return_inverse=True)[1]
    splits, ties = (
        list(_splits(x, y, contexts, epsilon)),
        _split(x, same_y, everyone, everyone, contexts, epsilon),
    )
    sizes = np.bincount(contexts).astype(np.float64)

    def coefficient(weights: Floats) -> Floats:
        agreeing = np.zeros(len(weights))
        for split in splits:
            below = _running(weights[:, split.lower])
            ordered = below[:, split.first_tied] - below[:, split.start]
            agreeing += np.einsum("ru,ru->r", weights[:, split.upper], ordered)
        below, own = _running(weights[:, ties.lower]), weights[:, ties.upper]
        tied = below[:, ties.above] - below[:, ties.first_tied] - own
        agreeing += np.einsum("ru,ru->r", own, tied) / 2
        weights = weights[:, : len(sizes)]
        pairs = ((weights @ sizes) ** 2 - weights**2 @ sizes) / 2
        return _clipped(agreeing, pairs, undefined=pairs <= 0)

    return coefficient


@dataclass(frozen=True)
class _Split:
    """Responses in groups, each divided by y into a lower and an upper part. Running sums of the weights of the lower
    parts count the pairs of one response from each part.

    lower (l,): contexts of the responses of the lower parts, group by group, ascending by x. upper (u,): contexts of
    the responses of the upper parts. start, end (u,): where the group of each of `upper` begins and ends in `lower`.
    Between these, x in `lower` is smaller up to first_tied, equal (within ε) up to above, and greater from there.
    """

    lower: Integers
    upper: Integers
    start: Integers
    end: Integers
    first_tied: Integers
    above: Integers


def _splits(x: Floats, y: Floats, contexts: Integers, epsilon: float) -> Iterator[_Split]:
    """Yield splits that together put each pair of responses with different y into different parts of one group exactly
    once: one split for each level of a binary tree over the distinct values of y, so log2 of their number."""
    place = np.unique(y, return_inverse=True)[1]
    for bit in range(int(place.max(initial=0)).bit_length()):
        upper = (place >> bit) & 1 == 1
        yield _split(x, place >> (bit + 1), np.flatnonzero(~upper), np.flatnonzero(upper), contexts, epsilon)


def _split(
    x: Floats, group: Integers, lower: Integers, upper: Integers, contexts: Integers, epsilon: float
) -> _Split:
    """The split of responses by group (n,). lower, upper: rows of the responses of the two parts, in any order."""
    lower = lower[np.lexsort((x[lower], group[lower]))]
    start, end = (np.searchsorted(group[lower], group[upper], side) for side in ("left", "right"))
    own, others = x[upper], np.append(x[lower], np.nan)
    first_tied = _first(lambda at: own - others[at] <= epsilon, start, end)
    above = _first(lambda at: others[at] - own > epsilon, start, end)
    return _Split(contexts[lower], contexts[upper], start, end, first_tied, above)


def _first(holds: Callable[[Integers], np.ndarray], start: Integers, end: Integers) -> Integers:
    """The first place from start to end, (u,) each, from which on a condition holds, by bisection; end if nowhere."""
    while (start < end).any():
        middle = (start + end) // 2
        true = holds(middle)
        start, end = (
            np.where(true | (start >= end), start, middle + 1),
            np.where(true, np.minimum(middle, end), end),
        )
    return start


def _running(weights: Floats) -> Floats:
    """Running sums of weights (r, n): the sum of those before each place, (r, n + 1)."""
    sums = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=sums[:, 1:])
    return sums


def _masses(values: Floats, contexts: Integers) -> tuple[Weighted, Integers]:
    """Function from weights to the weight of each distinct value (r, v), ascending; and the place of each response's
    value among these (n,)."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) <= _FEW:
        counts = np.zeros((int(contexts.max(initial=-1)) + 1, len(distinct)))
        np.add.at(counts, (contexts, place), 1.0)
        return lambda weights: weights[:, : len(counts)] @ counts, place
    order = np.argsort(values, kind="stable")
    taken, bounds = contexts[order], np.searchsorted(values[order], distinct)
    if len(distinct) == len(values):
        return lambda weights: weights[:, taken], place
    bounds = np.append(bounds, len(values))
    return lambda weights: np.diff(_running(weights[:, taken])[:, bounds], axis=1), place


def _pair_count(count: Floats) -> Floats:
    pairs: Floats = count * (count - 1) / 2
    return pairs


def _clipped(numerator: Floats, denominator: Floats, *, undefined: np.ndarray) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(undefined, np.nan, np.clip(numerator / denominator, -1, 1))


# Agreement at a level under weights of contexts


def weighted_statistic(responses: ScoredResponses, view: View, epsilon: float = 0.0) -> Weighted:
    """The statistic that `agreement_at` computes, as a function of weights of the units; ValueError as there."""
    (x, y), units, contexts, measure = responses.pairs, responses.unit, responses.context, view.measure
    if view.level == "system":
        return by_system(x, y, responses.system, units, measure)
    if view.grouping == "pooled":
        return weighted_coefficient(measure, x, y, units, epsilon)
    if view.grouping == "system":
        return by_group(x, y, responses.system, units, measure, epsilon)
    if measure == "accuracy":
        coefficients = _accuracies(x, y, contexts, epsilon)
    else:
        coefficients = group_coefficients(x, y, contexts, measure)
    unit = units[np.unique(contexts, return_index=True)[1]]  # the unit of each context, which is in one only
    values, known = (np.bincount(unit, of) for of in (np.nan_to_num(coefficients), ~np.isnan(coefficients)))
    return lambda weights: ratio(weights @ values, weights @ known)


def by_group(
    x: Floats, y: Floats, groups: Integers, contexts: Integers, measure: Measure, epsilon: float = 0.0
) -> Weighted:
    """Mean coefficient over groups (n,) other than the contexts, such as systems, as a function of weights. Groups of
    fewer than three responses are left out (not for accuracy), and those without a coefficient under a weighting."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    coefficients = [
        weighted_coefficient(measure, x[rows], y[rows], contexts[rows], epsilon)
        for rows in members
        if len(rows) >= MIN_RESPONSES or measure == "accuracy"
    ]
    return lambda weights: mean_of_defined(np.stack([of(weights) for of in coefficients]))


def by_system(x: Floats, y: Floats, systems: Integers, contexts: Integers, measure: Measure) -> Weighted:
    """Coefficient of the systems' mean scores as a function of weights of contexts; NaN where a system has no response
    left. Systems are not resampled."""
    shape = int(contexts.max()) + 1, int(systems.max()) + 1
    tables = [
        np.bincount(contexts * shape[1] + systems, values, shape[0] * shape[1]).reshape(shape)
        for values in (np.ones(len(x)), x, y)
    ]
    coefficients = ROW_COEFFICIENTS[measure]

    def of_means(weights: Floats) -> Floats:
        size, total_x, total_y = (weights @ table for table in tables)
        whole = (size > 0).all(axis=1)
        values = np.full(len(weights), np.nan)
        means = (rounded(total[whole] / size[whole], of) for total, of in ((total_x, x), (total_y, y)))
        values[whole] = coefficients(*means)
        return values

    return of_means


def _accuracies(x: Floats, y: Floats, contexts: Integers, epsilon: float) -> Floats:
    """Pairwise accuracy within each context, (contexts,); NaN for a context without a pair."""
    one, other = pairs_within(contexts)
    by_score, by_human = x[one] - x[other], y[one] - y[other]
    alike = np.where(np.abs(by_score) <= epsilon, 0.0, np.sign(by_score)) == np.sign(by_human)
    count = int(contexts.max()) + 1
    pairs, agreeing = (np.bincount(contexts[one], of, count) for of in (None, alike))
    return ratio(agreeing.astype(np.float64), pairs.astype(np.float64))


def mean_of_defined(values: Floats) -> Floats:
    """Mean over the groups, (r,), of those values (groups, r) that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64))


def ratio(total: Floats, count: Floats) -> Floats:
    """total / count (r,), NaN where count is 0."""
    quotient: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return quotient


# Resamples of contexts


def resampled(statistic: Weighted, contexts: Integers, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The statistic on random draws of contexts (resamples,), and on the data without each group of contexts (groups,).

    contexts: the context of each response (n,), a number from 0. Responses to one context are not independent, so whole
    contexts are drawn.
    """
    draws = evaluated(statistic, context_draws(contexts, resamples, seed))
    return draws, evaluated(statistic, leave_groups_out(contexts, seed))


def evaluated(statistic: Weighted, blocks: Iterator[Floats]) -> Floats:
    """The statistic under every row of weights in the blocks, as one array."""
    return np.concatenate([statistic(block) for block in blocks])


def context_draws(contexts: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield weights (r, contexts) in blocks, `resamples` rows in all: how often each context is drawn, with
    replacement. contexts: the context of each response (n,), a number from 0."""
    times = _times_drawn(int(contexts.max(initial=-1)) + 1, resamples, seed)
    step = _rows(len(contexts))
    yield from (times[start : start + step].astype(np.float64) for start in range(0, resamples, step))


@lru_cache(maxsize=1)  # all figures of a set resample the same contexts
def _times_drawn(count: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """How often each of `count` contexts is drawn in each resample, (resamples, count)."""
    draw = np.random.default_rng(seed)
    rows = (np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(resamples))
    return np.stack([row.astype(np.uint16) for row in rows])


def leave_groups_out(contexts: Integers, seed: int) -> Iterator[Floats]:
    """Yield weights (r, contexts) of the jackknife in blocks; each row leaves out one group of contexts.

    Each context is a group; if there are more than JACKKNIFE_GROUPS, they are divided at random into that number of
    groups, of nearly equal size.
    """
    count = int(contexts.max(initial=-1)) + 1
    groups = np.arange(count)
    if count > JACKKNIFE_GROUPS:
        groups = np.random.default_rng(seed).permutation(count) % JACKKNIFE_GROUPS
    left_out, step = min(count, JACKKNIFE_GROUPS), _rows(len(contexts))
    for start in range(0, left_out, step):
        out = np.arange(start, min(start + step, left_out))
        yield (groups != out[:, None]).astype(np.float64)


def _rows(responses: int) -> int:
    """The number of resamples in a block, for a number of responses."""
    return max(1, _CELLS // max(1, responses))


# Intervals

Ends = tuple[float, float] | str
"""The two ends of an interval, or in words why there are none."""


def interval(estimate: float, statistic: Weighted, contexts: Integers, resamples: int, seed: int) -> Ends:
    """The 95% BCa interval of a statistic, whose value on the data is `estimate`, from responses resampled by context.

    contexts: the context of each response (n,), a number from 0. At system level only contexts are resampled: the
    interval holds for these systems, not for other ones. Accuracy keeps the ε of the data, so the interval ignores the
    gain from choosing it.
    """
    count = int(contexts.max(initial=-1)) + 1
    if count < MIN_CLUSTERS:
        return f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
    return bca(estimate, *resampled(statistic, contexts, resamples, seed))


def bca(estimate: float, draws: Floats, jackknife: Floats, confidence: float = CONFIDENCE) -> Ends:
    """The two ends of a BCa interval (Efron 1987; Efron and Tibshirani 1993, section 14.3), or in words why there are
    none.

    estimate: the figure on the data; draws (r,): on resamples; jackknife (k,): without each group of contexts. NaN: no
    figure, because a side does not vary; such draws are left out. confidence in (0, 1). Ties between estimate and draws
    count half in the bias correction. Normal quantiles are replaced by those of t times √(k/(k − 1)), without which the
    interval of few contexts is too narrow (Hesterberg 2015, on expanded percentile intervals).
    """
    from scipy.special import ndtr, ndtri, stdtrit

    undefined = int(np.isnan(draws).sum())
    if undefined > MAX_UNDEFINED * len(draws) or np.isnan(jackknife).any():
        return f"{undefined} of {len(draws)} resamples, or the data without one context, have no figure"
    replicates = draws[~np.isnan(draws)]
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
    groups = len(jackknife)
    ends = stdtrit(groups - 1, [(1 - confidence) / 2, (1 + confidence) / 2]) * (groups / (groups - 1)) ** 0.5
    normal = ends + bias
    stretch = 1 - acceleration * normal
    if (stretch <= 0).any():
        return "single contexts decide the figure: its acceleration is too large for an interval"
    low, high = np.quantile(replicates, ndtr(bias + normal / stretch))
    return float(low), float(high)
