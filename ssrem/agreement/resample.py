"""Bootstrap over contexts: BCa intervals of agreement, and of the difference between two evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlate import (
    EQUAL,
    MIN_RESPONSES,
    Agreement,
    Floats,
    Integers,
    Labels,
    Measure,
    Numbers,
    Outcome,
    Responses,
    Sides,
    View,
    Weighted,
    _ratio,
    agreement_at,
    chosen_labels,
    columns,
    complete,
    group_coefficients,
    numbered,
    numbered_within,
    pairs_within,
    row_coefficients,
    unvarying,
)


def weighted_coefficient(measure: Measure, x: Floats, y: Floats, epsilon: float = 0.0) -> Weighted:
    """A measure of x (n,) and y (n,) as a function of weights; only accuracy uses `epsilon`. What does not depend on
    the weights, such as orders, is computed once."""
    match measure:
        case "pearson":
            return weighted_pearson(x, y)
        case "spearman":
            return weighted_spearman(x, y)
        case "kendall":
            return weighted_kendall(x, y)
        case "accuracy":
            return weighted_accuracy(x, y, epsilon)


_ROUNDING = 1e-12
"""Share of the largest squared deviation below which a variance is rounding."""


def weighted_pearson(x: Floats, y: Floats) -> Weighted:
    """Pearson's r in [-1, 1]."""
    a, b = x - x.mean(), y - y.mean()
    moments = np.stack([np.ones(len(a)), a, b, a**2, b**2, a * b], axis=1)
    least = [_ROUNDING * float((one**2).max(initial=0.0)) for one in (a, b)]

    def coefficient(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            total, *sums = (weights @ moments).T
            mean_a, mean_b, square_a, square_b, product = (one / total for one in sums)
            var_a, var_b = square_a - mean_a**2, square_b - mean_b**2
            varying = (var_a > least[0]) & (var_b > least[1])
            return _ratio(product - mean_a * mean_b, np.sqrt(var_a * var_b), undefined=~varying)

    return coefficient


def weighted_spearman(x: Floats, y: Floats) -> Weighted:
    """Spearman's ρ in [-1, 1], ties at their mean rank."""
    by_x, by_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    starts_x, place_x = _ties(x[by_x])
    starts_y, place_y = _ties(y[by_y])
    place_y = place_y[np.argsort(by_y)][by_x]  # of the responses in the order of x

    def coefficient(weights: Floats) -> Floats:
        ordered = weights[:, by_x]
        mass_x, mass_y = _masses(ordered, starts_x), _masses(weights[:, by_y], starts_y)
        rank_x, rank_y = _centred_ranks(mass_x), _centred_ranks(mass_y)
        square_x, square_y = (
            np.einsum("rv,rv,rv->r", mass, rank, rank) for mass, rank in ((mass_x, rank_x), (mass_y, rank_y))
        )
        spread = rank_x if len(starts_x) == len(x) else rank_x[:, place_x]
        product = np.einsum("rn,rn,rn->r", ordered, spread, rank_y[:, place_y])
        return _ratio(product, np.sqrt(square_x * square_y), undefined=(square_x == 0) | (square_y == 0))

    return coefficient


def weighted_kendall(x: Floats, y: Floats) -> Weighted:
    """Kendall's τ-b in [-1, 1]. Time r · n · log(distinct values of y)."""
    splits = list(_splits(x, y, 0.0))
    sides = [(order, _ties(one[order])[0]) for one in (x, y) for order in [np.argsort(one, kind="stable")]]

    def coefficient(weights: Floats) -> Floats:
        excess = np.zeros(len(weights))
        for split in splits:
            below = split.sums(weights)
            net = below[:, split.first_tied] + below[:, split.above] - below[:, split.end]
            excess += np.einsum("ru,ru->r", weights[:, split.upper], net - below[:, split.start])
        total = _pair_count(weights.sum(axis=1))
        untied = [
            total - _pair_count(_masses(weights[:, order], starts)).sum(axis=1) for order, starts in sides
        ]
        with np.errstate(invalid="ignore"):
            undefined = (untied[0] <= 0) | (untied[1] <= 0)
            return _ratio(excess, np.sqrt(untied[0] * untied[1]), undefined=undefined)

    return coefficient


def weighted_accuracy(x: Floats, y: Floats, epsilon: float = 0.0) -> Weighted:
    """Share in [0, 1] of pairs that x orders, or ties, as y does; x ties what differs by `epsilon` or less.

    NaN where there is no pair. A response drawn twice makes no pair with itself, which would always agree.
    """
    splits, ties = list(_splits(x, y, epsilon)), _tied_split(x, y, epsilon)

    def coefficient(weights: Floats) -> Floats:
        agreeing = np.zeros(len(weights))
        for split in splits:
            below = split.sums(weights)
            ordered = below[:, split.first_tied] - below[:, split.start]
            agreeing += np.einsum("ru,ru->r", weights[:, split.upper], ordered)
        below, own = ties.sums(weights), weights[:, ties.upper]
        tied = below[:, ties.above] - below[:, ties.first_tied] - own
        agreeing += np.einsum("ru,ru->r", own, tied) / 2
        pairs = (weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)) / 2
        return _ratio(agreeing, pairs, undefined=pairs <= 0)

    return coefficient


@dataclass(frozen=True)
class _Split:
    """Responses in groups, each divided by y into a lower and an upper part. Running sums of the weights of the lower
    parts count the pairs of one response from each part.

    lower (l,): responses of the lower parts, group by group, ascending by x. upper (u,): those of the upper parts.
    start, end (u,): where the group of each of `upper` begins and ends in `lower`; of these, x is smaller up to
    first_tied, equal (within ε) up to above, and greater from there.
    """

    lower: Integers
    upper: Integers
    start: Integers
    end: Integers
    first_tied: Integers
    above: Integers

    def sums(self, weights: Floats) -> Floats:
        """Sum of the weights (r, n) of the lower responses before each place, (r, l + 1)."""
        sums = np.zeros((len(weights), len(self.lower) + 1))
        np.cumsum(weights[:, self.lower], axis=1, out=sums[:, 1:])
        return sums


def _splits(x: Floats, y: Floats, epsilon: float) -> Iterator[_Split]:
    """Splits that together put each pair with different y into different parts of one group exactly once: a split for
    each level of a binary tree over the distinct values of y, so log2 of their number."""
    place = np.unique(y, return_inverse=True)[1]
    for bit in range(int(place.max(initial=0)).bit_length()):
        upper = (place >> bit) & 1 == 1
        yield _split(x, place >> (bit + 1), np.flatnonzero(~upper), np.flatnonzero(upper), epsilon)


def _tied_split(x: Floats, y: Floats, epsilon: float) -> _Split:
    """One group for each value of y; its responses are in both parts."""
    everyone = np.arange(len(x))
    return _split(x, np.unique(y, return_inverse=True)[1], everyone, everyone, epsilon)


def _split(x: Floats, group: Integers, lower: Integers, upper: Integers, epsilon: float) -> _Split:
    lower = lower[np.lexsort((x[lower], group[lower]))]
    start, end = (np.searchsorted(group[lower], group[upper], side) for side in ("left", "right"))
    own, others = x[upper], np.append(x[lower], np.nan)
    first_tied = _first(lambda at: own - others[at] <= epsilon, start, end)
    return _Split(
        lower, upper, start, end, first_tied, _first(lambda at: others[at] - own > epsilon, start, end)
    )


def _first(holds: Callable[[Integers], np.ndarray], start: Integers, end: Integers) -> Integers:
    """The first place from start to end, (u,) each, from which on a condition holds; end if it holds nowhere."""
    while (start < end).any():
        middle = (start + end) // 2
        true = holds(middle)
        start, end = (
            np.where(true | (start >= end), start, middle + 1),
            np.where(true, np.minimum(middle, end), end),
        )
    return start


def _ties(ordered: Floats) -> tuple[Integers, Integers]:
    """Where each distinct value starts in ascending values (n,), and each value's place among the distinct ones."""
    new = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.flatnonzero(new), np.cumsum(new) - 1


def _masses(weights: Floats, starts: Integers) -> Floats:
    """Weight of each distinct value (r, v), from weights (r, n) in its order, and where each value starts."""
    if len(starts) == weights.shape[1]:
        return weights
    masses: Floats = np.add.reduceat(weights, starts, axis=1)
    return masses


def _centred_ranks(mass: Floats) -> Floats:
    """Mean rank of each distinct value, less the mean of all, from the weight of each (r, v), ascending."""
    ranks: Floats = np.cumsum(mass, axis=1) - mass / 2 - mass.sum(axis=1, keepdims=True) / 2
    return ranks


def _pair_count(count: Floats) -> Floats:
    pairs: Floats = count * (count - 1) / 2
    return pairs


def weighted_statistic(
    x: Floats, y: Floats, clusters: Integers, systems: Labels | None, view: View, epsilon: float = 0.0
) -> Weighted:
    """What `agreement_at` gives, as a function of weights.

    x, y, clusters: (n,), without gaps. systems: (n,), needed at system level and by system. ValueError without them.
    """
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


DRAWS = 2000
MIN_CLUSTERS = 5
"""Fewer contexts than this have too few distinct resamples for the ends of an interval."""

MAX_UNDEFINED = 0.1
"""With a larger share of undefined resamples, the others would be a biased selection."""

JACKKNIFE_GROUPS = 200
"""Most groups of contexts that are left out in turn: the acceleration of an interval needs no more."""

_CELLS = 250_000
"""Weights in a block: few enough to stay in the caches of a CPU."""
_KEPT_CELLS = 4_000_000
"""Weights of all draws up to which they are kept for the next figure: 32 MB."""


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
    resamples: int = DRAWS,
    seed: int,
    agreement: Agreement | None = None,
) -> Interval:
    """Interval of `agreement_at`, from responses (n,) resampled by context.

    agreement: the result of `agreement_at`, if it is known already. With grouping 'context' the coefficients of the
    contexts are resampled. Accuracy keeps the ε of the data, so the interval ignores the gain from choosing it. At
    system level only contexts are resampled: the interval holds for these systems, not for other ones. Errors as in
    `agreement_at`; ValueError where confidence is not within (0, 1), or there is no resample.
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
    if resamples * len(clusters) <= _KEPT_CELLS:
        yield from _kept_draws(clusters.astype(np.int64).tobytes(), resamples, seed)
    else:
        yield from _draws(clusters, resamples, seed)


@lru_cache(maxsize=2)  # all figures of a set are drawn from the same contexts
def _kept_draws(clusters: bytes, resamples: int, seed: int) -> list[Floats]:
    return list(_draws(np.frombuffer(clusters, dtype=np.int64), resamples, seed))


def _draws(clusters: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    count = int(clusters.max(initial=-1)) + 1
    times = _times_drawn(count, resamples, seed)
    for block in _blocks(times, len(clusters)):
        weights = block.astype(np.float64)[:, clusters]
        weights.flags.writeable = False
        yield weights


@lru_cache(maxsize=1)
def _times_drawn(count: int, resamples: int, seed: int) -> Integers:
    """How often each of `count` clusters is drawn in each resample, (resamples, count)."""
    draw = np.random.default_rng(seed)
    rows = (np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(resamples))
    return np.stack([row.astype(np.uint16) for row in rows])


def leave_groups_out(clusters: Integers, seed: int) -> Iterator[Floats]:
    """Weights (r, n) of the jackknife, in blocks: each row leaves out one group of clusters.

    Each cluster is a group; if there are more than JACKKNIFE_GROUPS, they are divided at random into that number of
    groups, of nearly equal size.
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


Test = Literal["perm-both", "paired-bootstrap"]


@dataclass(frozen=True)
class Difference:
    """How much better the first evaluator agrees with people than the second, and the p of the difference, in (0, 1].

    first, second: agreement of each; difference: first minus second. sides: 'two-sided': p is of a difference either
    way; 'greater': of first being better. low to high: the interval of the difference at level `confidence`, from the
    bootstrap only. n: responses used; missing: left out because a score is missing; clusters: contexts drawn;
    resamples: permutations or draws, by `seed`. Figures are None unless outcome is 'ok' (only p, low and high where the
    difference cannot be tested); reason says why.
    """

    test: Test
    measure: Measure
    sides: Sides
    n: int
    missing: int
    first: float | None = None
    second: float | None = None
    difference: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    clusters: int | None = None
    resamples: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def not_comparable(first: Floats, second: Floats, human: Floats, least: int) -> tuple[Outcome, str] | None:
    """Why three columns (n,) cannot be compared, or None where they can."""
    if len(human) < least:
        return "too_few", f"{len(human)} responses with all three scores; {least} are needed"
    whose = {"the first evaluator's scores": first, "the second's scores": second, "the human scores": human}
    constant = [name for name, values in whose.items() if unvarying(values)]
    return ("constant", f"{constant[0]} are all the same") if constant else None


GATE_RESAMPLES = 1000
GATE_LEVEL = 0.05
"""The challenger is not worse where the 5% quantile of the difference, a one-sided 95% bound, is above the margin."""

GATE_RESPONSES = 20
"""Sets with fewer responses are left out of the decision: a bootstrap of them says nothing."""


@dataclass(frozen=True)
class Resampled:
    """How one evaluator agrees with people: on the data, on draws of contexts (r,), and without groups of them (k,)."""

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
    view: View,
    systems: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = DRAWS,
    sides: Sides = "two-sided",
    seed: int,
    known: Known | None = None,
) -> Difference:
    """Difference of the agreement of first and second (n,) with the human scores (n,), with its BCa interval.

    Both are taken on the same resamples of contexts (n,); NaN is missing, and a response counts where it has all three.
    p = (k + 1) / (resamples + 1) for k resamples in which first is not better, the inversion of a percentile interval;
    two-sided: twice that of the smaller side, at most 1. For accuracy, each evaluator keeps its ε of the data. The
    system level compares the means by `systems` (n,), refused below five unless the view forces it. known: a cache that
    calls may share which differ only in first and second, so that each evaluator is resampled once, not once a pair.
    ValueError for infinite scores and labels that do not fit.
    """
    check_resampling(confidence, resamples)
    values, missing = columns(first, second, human)
    usable = complete(first, second, human)
    if len(contexts) != len(usable):
        raise ValueError(f"{len(contexts)} contexts do not fit {len(usable)} scores")
    contexts = chosen_labels(contexts, usable)
    systems = None if systems is None else chosen_labels(systems, usable)
    clusters = numbered(contexts, len(values), "contexts")[1]
    count = len(np.unique(clusters))
    y = values[:, 2]
    result = Difference(
        "paired-bootstrap",
        view.measure,
        sides,
        len(values),
        missing,
        confidence=confidence,
        clusters=count,
        resamples=resamples,
        seed=seed,
    )
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
            agreement = agreement_at(Responses(x, y, contexts, systems), view)
            if agreement.statistic is None:
                return replace(result, outcome=agreement.outcome, reason=agreement.reason)
            statistic = weighted_statistic(x, y, clusters, systems, view, agreement.epsilon or 0.0)
            known[key] = Resampled(agreement.statistic, *resampled(statistic, clusters, resamples, seed))
        both.append(known[key])
    a, b = both
    difference, replicates = a.statistic - b.statistic, a.draws - b.draws
    result = replace(result, first=a.statistic, second=b.statistic, difference=difference)
    interval = Interval(difference, confidence, count, resamples, seed)
    interval = with_ends(interval, replicates, a.jackknife - b.jackknife)
    if interval.outcome != "ok":
        return replace(result, outcome=interval.outcome, reason=interval.reason)
    return replace(result, p=_p(replicates, sides), low=interval.low, high=interval.high)


@dataclass(frozen=True)
class Comparison:
    """A challenger against the champion on `n` responses in `groups` groups (conversations or contexts).

    champion, challenger: the measure of each. low: lower bound of `difference`, challenger minus champion. margin: how
    much worse the challenger may be. not_worse: None where there is nothing to compare; `outcome` then says why.
    """

    dataset: str
    measure: str
    champion: float | None
    challenger: float | None
    difference: float | None
    low: float | None
    margin: float
    n: int
    groups: int
    not_worse: bool | None
    outcome: str = "ok"


def compare_share(
    dataset: str, champion: Floats, challenger: Floats, groups: NDArray[Any], *, margin: float, seed: int = 0
) -> Comparison:
    """Mean share of negatives below the true response, from each response's share (n,) under either; in [0, 1]."""
    means = _mean_of(champion), _mean_of(challenger)
    return _compare("share above", dataset, *means, groups, margin, seed)


def compare_agreement(
    dataset: str,
    champion: Floats,
    challenger: Floats,
    human: Floats,
    groups: NDArray[Any],
    *,
    margin: float,
    seed: int = 0,
) -> Comparison:
    """Spearman's ρ with the human scores (n,), from the scores (n,) of either."""
    correlations = weighted_spearman(champion, human), weighted_spearman(challenger, human)
    return _compare("spearman", dataset, *correlations, groups, margin, seed)


def _compare(
    measure: str,
    dataset: str,
    of_champion: Weighted,
    of_challenger: Weighted,
    groups: NDArray[Any],
    margin: float,
    seed: int,
) -> Comparison:
    """Groups are resampled, not responses: those to one context are not independent."""
    _, clusters = np.unique(groups, return_inverse=True)
    n, count = len(groups), int(clusters.max(initial=-1)) + 1
    result = Comparison(dataset, measure, None, None, None, None, margin, n, count, None)
    if n < GATE_RESPONSES or count < 2:
        return replace(result, outcome=f"too few to compare: {n} responses in {count} groups")
    champion, challenger = (float(of(np.ones((1, n)))[0]) for of in (of_champion, of_challenger))
    if not np.isfinite(champion):
        return replace(result, outcome="the champion's scores, or people's, are constant")
    if not np.isfinite(challenger):
        return replace(result, not_worse=False, outcome="the challenger's scores are constant")
    draws = cluster_draws(clusters, GATE_RESAMPLES, seed)
    differences = evaluated(lambda weights: of_challenger(weights) - of_champion(weights), draws)
    low = float(np.nanquantile(differences, GATE_LEVEL))
    result = replace(result, champion=champion, challenger=challenger, difference=challenger - champion)
    return replace(result, low=low, not_worse=low >= -margin)


def _mean_of(values: Floats) -> Weighted:
    return lambda weights: weights @ values / weights.sum(axis=1)


def _p(replicates: Floats, sides: Sides) -> float:
    """p from the differences in the resamples; a resample without a figure counts against both sides."""
    not_better = (int((~(replicates > EQUAL)).sum()) + 1) / (len(replicates) + 1)
    not_worse = (int((~(replicates < -EQUAL)).sum()) + 1) / (len(replicates) + 1)
    return not_better if sides == "greater" else min(1.0, 2 * min(not_better, not_worse))
