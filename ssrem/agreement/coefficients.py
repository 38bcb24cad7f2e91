"""Coefficients many at a time: of many rows of scores, and of the same scores under many weightings.

Rows: x (r, n), y (r, n) or (n,), to (r,). Weightings: weights (r, n), whole numbers from 0, x and y (n,), to (r,): a
bootstrap resample is a weighting by how often each response is drawn, and the coefficient equals that of the responses
repeated as often as their weight says. NaN where a side does not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ssrem.agreement.inputs import Floats, Integers, Measure

Weighted = Callable[[Floats], Floats]
"""Weights (r, n) to the coefficient under each (r,)."""

_BLOCK = 2_000_000
_FEW = 64
"""Up to this many values a row, comparing all pairs is cheaper than counting inversions."""
_ROUNDING = 1e-12
"""Share of the largest squared deviation below which a variance is rounding."""


def row_coefficients(measure: Measure) -> Callable[[Floats, Floats], Floats]:
    """The function of rows of a measure."""
    return {
        "pearson": pearson_rows,
        "spearman": spearman_rows,
        "kendall": kendall_rows,
        "accuracy": accuracy_rows,
    }[measure]


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1]."""
    x, y = np.broadcast_arrays(x, y)
    a, b = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
    return _ratio(np.einsum("rn,rn->r", a, b), spread, undefined=_flat(x) | _flat(y))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1], ties at their mean rank."""
    return pearson_rows(mean_ranks(x), mean_ranks(np.atleast_2d(y)))


def mean_ranks(rows: Floats) -> Floats:
    """Rank of each value in its row (r, n), from 1, ties at their mean rank; SciPy's `rankdata`, without its import."""
    order, place = np.argsort(rows, axis=1, kind="stable"), np.arange(rows.shape[1])
    values = np.take_along_axis(rows, order, axis=1)
    begins = np.ones(rows.shape, dtype=bool)
    begins[:, 1:] = values[:, 1:] != values[:, :-1]
    ends = np.ones(rows.shape, dtype=bool)
    ends[:, :-1] = begins[:, 1:]
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, len(place))[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1]."""
    x, y = np.broadcast_arrays(x, y)
    if x.shape[1] <= _FEW:
        return _by_pairs(x, y, _kendall_of_signs)
    ones = np.ones((1, x.shape[1]))
    coefficients = [
        np.nan if constant else weighted_kendall(a, b)(ones)[0]
        for a, b, constant in zip(x, y, _flat(x) | _flat(y), strict=True)
    ]
    return np.array(coefficients)


def accuracy_rows(x: Floats, y: Floats) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does, without calibration; NaN below two values."""
    x, y = np.broadcast_arrays(x, y)
    return _by_pairs(x, y, lambda a, b: (a == b).mean(axis=1) if a.shape[1] else np.full(len(a), np.nan))


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


def _ratio(numerator: Floats, denominator: Floats, *, undefined: np.ndarray) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(undefined, np.nan, np.clip(numerator / denominator, -1, 1))


def _flat(values: Floats) -> np.ndarray:
    """Which rows do not vary, (r,)."""
    constant: np.ndarray = (values == values[:, :1]).all(axis=1)
    return constant


def _kendall_of_signs(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        tau: Floats = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.clip(tau, -1, 1)


def _by_pairs(x: Floats, y: Floats, of: Callable[[Floats, Floats], Floats]) -> Floats:
    """`of` the signs (r, pairs) of the differences of x and of y, in blocks of rows."""
    one, other = np.triu_indices(x.shape[1], 1)
    step = max(1, _BLOCK // max(1, len(one)))
    blocks = [
        of(np.sign(a[:, one] - a[:, other]), np.sign(b[:, one] - b[:, other]))
        for a, b in ((x[i : i + step], y[i : i + step]) for i in range(0, len(x), step))
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


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
