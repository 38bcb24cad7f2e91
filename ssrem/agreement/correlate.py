"""Agreement of scores with human scores: coefficients, their p, over responses, groups or systems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import atanh, exp, factorial, lgamma, sqrt, tanh
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import Z_95

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = Sequence[float] | Floats
Labels = Sequence[Any] | NDArray[Any]

Measure = Literal["pearson", "spearman", "kendall", "accuracy"]
MEASURES: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "accuracy")

Level = Literal["segment", "system"]
Grouping = Literal["pooled", "system", "context"]

Sides = Literal["two-sided", "greater"]
"""Alternative of a test that the first is better than the second. two-sided: they differ; greater: it is better."""

Outcome = Literal["ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate"]
"""ok: there are figures. Otherwise they are None, and a reason in words stands beside the outcome."""

EQUAL = 1e-10
"""Figures closer than this differ only by rounding."""

MIN_RESPONSES = 3
"""Fewer pairs of scores than this correlate perfectly or not at all."""


@dataclass(frozen=True)
class Responses:
    """Scores and human scores (n,), NaN for missing, with each response's context and system (None: not known).

    systems: None where systems do not matter. excluded: number of further responses with a human score that are not
    compared, such as ground truth.
    """

    scores: Floats
    human: Floats
    contexts: Labels
    systems: Labels | None = None
    excluded: int = 0

    def with_systems(self) -> Responses:
        """The responses whose system is known."""
        systems = [None] * len(self.scores) if self.systems is None else self.systems
        known = np.array([system is not None for system in systems], dtype=bool)
        return Responses(
            self.scores[known],
            self.human[known],
            chosen_labels(self.contexts, known),
            chosen_labels(systems, known),
            self.excluded,
        )


@dataclass(frozen=True)
class View:
    """Which figure to compute. grouping: at segment level; force: at system level, even of too few systems."""

    measure: Measure = "spearman"
    level: Level = "segment"
    grouping: Grouping = "pooled"
    force: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A group without a coefficient, and why."""

    group: str
    reason: str


@dataclass(frozen=True)
class Agreement:
    """How scores agree with human scores: one figure at segment or system level.

    statistic: in [-1, 1], for accuracies in [0, 1]; over `n` responses. p: in (0, 1], of no correlation, taking
    responses (system level: systems) as independent; None for accuracies and for means over groups, where
    `against_chance` gives one. missing: responses left out because a score is missing. groups: groups averaged
    (pooled: 1), at system level the systems; left_out: groups without a coefficient. epsilon: score differences that
    accuracy counts as a tie. forced: whether there were fewer systems than should be compared. permutations, seed: of
    `against_chance`. statistic, p and epsilon are None unless outcome is 'ok'; reason says why in words.
    """

    measure: Measure
    statistic: float | None
    n: int
    missing: int
    groups: int
    p: float | None = None
    sides: Sides = "two-sided"
    left_out: tuple[LeftOut, ...] = ()
    epsilon: float | None = None
    forced: bool = False
    permutations: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def columns(*values: Numbers) -> tuple[Floats, int]:
    """The rows in which no value is missing (NaN), float64 (m, k), and how many were left out.

    ValueError where the k values are not of one length, or one is infinite.
    """
    usable = complete(*values)
    return _stacked(*values)[usable], int((~usable).sum())


def complete(*values: Numbers) -> NDArray[np.bool_]:
    """Which rows have no value missing, (n,). ValueError as in `columns`."""
    usable: NDArray[np.bool_] = ~np.isnan(_stacked(*values).sum(axis=1))
    return usable


def numbered(labels: Labels, n: int, of: str) -> tuple[list[str], Integers]:
    """Distinct labels in sorted order of their text, and each row's place among them (n,).

    ValueError where there are not n of them, or one is None; `of` names them in it.
    """
    if len(labels) != n:
        raise ValueError(f"{len(labels)} {of} do not fit {n} scores")
    if any(label is None for label in labels):
        raise ValueError(f"some of the {of} are None: leave those responses out, or name them")
    names, codes = _numbered(tuple(map(str, labels)))
    return list(names), codes


@lru_cache(maxsize=16)  # all figures of a set have the same few labels
def _numbered(texts: tuple[str, ...]) -> tuple[tuple[str, ...], Integers]:
    names = tuple(sorted(set(texts)))
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place[text] for text in texts], dtype=np.int64)
    codes.flags.writeable = False
    return names, codes


def numbered_within(labels: Labels, rows: NDArray[np.bool_], of: str) -> tuple[list[str], Integers]:
    """`numbered` labels of the chosen rows (n,), of labels (n,)."""
    if len(labels) != len(rows):
        raise ValueError(f"{len(labels)} {of} do not fit {len(rows)} scores")
    return numbered(chosen_labels(labels, rows), int(rows.sum()), of)


def chosen_labels(labels: Labels, rows: NDArray[np.bool_]) -> list[Any]:
    """Labels of the chosen rows, of labels (n,) and rows (n,)."""
    return [label for label, chosen in zip(labels, rows.tolist(), strict=True) if chosen]


def unvarying(*values: Floats) -> bool:
    """Whether any of the arrays (m,) is constant."""
    return any(len(one) > 0 and bool((one == one[0]).all()) for one in values)


def _stacked(*values: Numbers) -> Floats:
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    if any(one.ndim != 1 or one.shape != arrays[0].shape for one in arrays):
        raise ValueError(f"shapes {', '.join(str(one.shape) for one in arrays)} are not rows of one length")
    rows = np.stack(arrays, axis=1)
    if np.isinf(rows).any():
        raise ValueError(f"{int(np.isinf(rows).any(axis=1).sum())} of {len(rows)} rows hold an infinity")
    return rows


Weighted = Callable[[Floats], Floats]
"""Weights (r, n) to the coefficient under each (r,)."""

_BLOCK = 2_000_000
_FEW = 64
"""Up to this many values a row, comparing all pairs is cheaper than counting inversions."""


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
    from scipy.stats import kendalltau

    return np.array([kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)])


def accuracy_rows(x: Floats, y: Floats) -> Floats:
    """Share in [0, 1] of pairs that x orders, or ties, as y does, without calibration; NaN below two values."""
    x, y = np.broadcast_arrays(x, y)
    return _by_pairs(x, y, lambda a, b: (a == b).mean(axis=1) if a.shape[1] else np.full(len(a), np.nan))


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


_SMALLEST = sys.float_info.min


@dataclass(frozen=True)
class Correlation:
    """statistic in [-1, 1], two-sided p in (0, 1], 95% interval low to high, over n pairs.

    outcome: 'ok'; 'constant' where one side does not vary; 'too_few' below three pairs. The figures are None
    unless it is 'ok'; the interval is also None where it is not defined (below four pairs; five for Kendall).
    """

    statistic: float | None
    p: float | None
    low: float | None
    high: float | None
    n: int
    outcome: Outcome


@dataclass(frozen=True)
class Line:
    """Least squares: y = slope · x + intercept."""

    slope: float
    intercept: float


def pearson(x: Numbers, y: Numbers) -> Correlation:
    """Pearson's r. p from its exact distribution; interval by Fisher's z, standard error 1 / √(n - 3).

    ValueError where a value is not finite: nothing is dropped silently.
    """
    return _correlated(_pearson, x, y, lambda r, n: 1 / sqrt(n - 3), fewest=4)


def spearman(x: Numbers, y: Numbers) -> Correlation:
    """Spearman's ρ, ties at their mean rank. ValueError as in `pearson`.

    p is from the t distribution. That gives 0 for ρ = ±1, whose p is the share of all orders of the values that give
    ±1. The interval is by Fisher's z with Bonett and Wright's (2000) standard error √((1 + ρ²/2) / (n - 3)).
    """
    return _correlated(_spearman, x, y, lambda rho, n: sqrt((1 + rho**2 / 2) / (n - 3)), fewest=4)


def kendall(x: Numbers, y: Numbers) -> Correlation:
    """Kendall's τ-b. p as SciPy's: exact without ties for up to 33 pairs, or at most one discordant or concordant
    pair, otherwise normal; interval by Fisher's z with Fieller, Hartley and Pearson's (1957) standard error
    √(.437 / (n - 4)). ValueError as in `pearson`.
    """
    return _correlated(_kendall, x, y, lambda tau, n: sqrt(0.437 / (n - 4)), fewest=5)


# The statistic and its two-sided p, without scipy.stats, which takes longer to import than all else a command does.


def _pearson(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    r = float(pearson_rows(a[None], b[None])[0])
    half = len(a) / 2 - 1
    return r, 2 * float(special.betainc(half, half, (1 - abs(r)) / 2))


def _spearman(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    rho, freedom = float(spearman_rows(a[None], b[None])[0]), len(a) - 2
    if abs(rho) == 1:
        alike = sum(lgamma(ties + 1) for ties in np.unique(a, return_counts=True)[1].tolist())
        return rho, min(1.0, 2 * exp(alike - lgamma(len(a) + 1)))
    return rho, 2 * float(special.stdtr(freedom, -abs(rho) * sqrt(freedom / ((1 + rho) * (1 - rho)))))


def _kendall(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy import special

    tau, n = float(kendall_rows(a[None], b[None])[0]), len(a)
    pairs, ties = n * (n - 1), [np.unique(one, return_counts=True)[1].astype(np.float64) for one in (a, b)]
    tied = [float((t * (t - 1)).sum()) for t in ties]
    excess = tau * sqrt((pairs - tied[0]) * (pairs - tied[1])) / 2  # concordant less discordant pairs
    rarer = round((pairs / 2 - abs(excess)) / 2)
    if not any(tied) and (n <= 33 or rarer <= 1):
        return tau, _exact(n, rarer)
    triples = [float((t * (t - 1) * (t - 2)).sum()) for t in ties]
    excluded = sum(float((t * (t - 1) * (2 * t + 5)).sum()) for t in ties)
    variance = (pairs * (2 * n + 5) - excluded) / 18 + tied[0] * tied[1] / (2 * pairs)
    variance += triples[0] * triples[1] / (9 * pairs * (n - 2))
    return tau, 2 * float(special.ndtr(-abs(excess) / sqrt(variance)))


def _exact(n: int, inversions: int) -> float:
    """Twice the share of the permutations of n values with at most this many inversions, at most 1."""
    counts = [1]
    for values in range(2, n + 1):
        sums = [0, *accumulate(counts)]
        size = min(len(counts) + values - 1, inversions + 1)
        counts = [sums[min(at + 1, len(counts))] - sums[max(at + 1 - values, 0)] for at in range(size)]
    return min(1.0, 2 * sum(counts) / factorial(n))


CORRELATIONS: dict[Literal["pearson", "spearman", "kendall"], Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
"""Measure to its function."""


def regression_line(x: Numbers, y: Numbers) -> Line | None:
    """Least squares line of y on x; None below two pairs or if x is constant. ValueError as in `pearson`."""
    a, b = _finite(x, y)
    if len(a) < 2 or unvarying(a):
        return None
    centred = a - a.mean()
    slope = float(centred @ (b - b.mean()) / (centred @ centred))
    return Line(slope, float(b.mean() - slope * a.mean()))


def _finite(x: Numbers, y: Numbers) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not two rows of the same length")
    if broken := int((~np.isfinite(a) | ~np.isfinite(b)).sum()):
        raise ValueError(f"{broken} of {len(a)} pairs hold NaN or infinity")
    return a, b


def _correlated(
    test: Callable[[Floats, Floats], tuple[float, float]],
    x: Numbers,
    y: Numbers,
    error: Callable[[float, int], float],
    *,
    fewest: int,
) -> Correlation:
    """test: statistic and p. error: the standard error of z from the statistic and n, from `fewest` pairs on."""
    a, b = _finite(x, y)
    n = len(a)
    if n < 3 or unvarying(a, b):
        return Correlation(None, None, None, None, n, "too_few" if n < 3 else "constant")
    statistic, p = test(a, b)
    statistic = max(-1.0, min(1.0, statistic))
    p = min(max(p, _SMALLEST), 1.0)  # one that underflows is small, not zero
    if n < fewest:
        return Correlation(statistic, p, None, None, n, "ok")
    if abs(statistic) == 1:
        return Correlation(statistic, p, statistic, statistic, n, "ok")
    centre, half = atanh(statistic), Z_95 * error(statistic, n)
    return Correlation(statistic, p, tanh(centre - half), tanh(centre + half), n, "ok")


MAX_PAIRS = 5_000_000
"""All pairs are held in memory at once; sets of more than 3,163 responses are compared by group, not pooled."""


@dataclass(frozen=True)
class Calibrated:
    """accuracy in [0, 1]: mean over groups of the share of pairs that agree. epsilon: scores that differ by it or
    less are a tie. pairs: how many were compared; groups: those with a pair."""

    accuracy: float
    epsilon: float
    pairs: int
    groups: int


def calibrated_accuracy(scores: Floats, human: Floats, groups: Integers | None = None) -> Calibrated | None:
    """Pairwise accuracy acc_eq with the ε that makes it highest, one ε for all groups; the smallest such ε (Deutsch,
    Foster and Freitag 2023, "Ties Matter", sections 4 and 5).

    scores, human: (n,), finite. groups: (n,), numbers from 0; only pairs within one count; None: one group. A pair
    agrees where both order it alike, or where people tie it and the scores differ by ε or less. None where there is
    no pair. ValueError above `MAX_PAIRS`. ε is chosen on these very pairs, which favours evaluators a little.
    """
    codes = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
    pairs = pair_count(codes)
    if pairs == 0:
        return None
    if pairs > MAX_PAIRS:
        raise ValueError(f"{pairs} pairs are more than {MAX_PAIRS}: compare by context")
    ordered = _ordered_pairs(scores.tobytes(), codes.tobytes())
    one, other, distance = ordered.one, ordered.other, ordered.distance
    group = codes[one]
    per_group = np.bincount(group)
    by_human = np.sign(human[one] - human[other])
    alike, tied = ordered.sign == by_human, by_human == 0
    # As ε passes a pair, the scores tie it: it agrees where people tie it, and no longer where both ordered it alike.
    gain = (tied * 1.0 - alike) / per_group[group]
    gains = np.concatenate([[0.0], np.cumsum(gain)[ordered.last]])
    best = int(np.argmax(np.round(gains, 9)))  # what rounding adds is no gain
    epsilon = float(np.concatenate([[0.0], distance[ordered.last]])[best])
    agreeing = np.bincount(group, np.where(distance <= epsilon, tied, alike))
    used = per_group > 0
    return Calibrated(float((agreeing[used] / per_group[used]).mean()), epsilon, pairs, int(used.sum()))


@dataclass(frozen=True)
class _OrderedPairs:
    """Pairs (p,) of responses `one` and `other`, by ascending distance of their scores. sign: of the score of `one`
    minus that of `other`; last: the place of the last pair of each distance."""

    one: Integers
    other: Integers
    sign: NDArray[np.float32]
    distance: Floats
    last: Integers


@lru_cache(maxsize=len(get_args(Grouping)))
def _ordered_pairs(scores: bytes, groups: bytes) -> _OrderedPairs:
    """Pairs within groups: scores (n,) float64, groups (n,) int64. Cached, because an evaluator is compared with
    several human scores in the same groups."""
    x = np.frombuffer(scores)
    one, other = pairs_within(np.frombuffer(groups, dtype=np.int64))
    difference = x[one] - x[other]
    distance = np.abs(difference)
    order = np.argsort(distance)
    distance = distance[order]
    last = np.flatnonzero(np.append(distance[1:] != distance[:-1], True))
    signs = np.sign(difference[order]).astype(np.float32)
    return _OrderedPairs(one[order].astype(np.int32), other[order].astype(np.int32), signs, distance, last)


def pair_count(groups: Integers) -> int:
    """Pairs within the groups (n,)."""
    sizes = np.bincount(groups)
    return int((sizes * (sizes - 1) // 2).sum())


def pairs_within(codes: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two responses of each pair within the groups (n,), (pairs,) each."""
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    first, second = [], []
    for size in np.unique(sizes):  # groups of one size at once
        rows = order[starts[sizes == size, None] + np.arange(size)]
        one, other = np.triu_indices(size, 1)
        first.append(rows[:, one].ravel())
        second.append(rows[:, other].ravel())
    return np.concatenate(first), np.concatenate(second)


MIN_SYSTEMS = 5
"""From two systems every coefficient is 1 or -1, and from four chance alone gives 1 once in 24 times."""


def agreement_at(responses: Responses, view: View) -> Agreement:
    """The agreement by `segment_level` or `system_level`, as the view says; ValueError as there."""
    return segment_level(responses, view) if view.level == "segment" else system_level(responses, view)


def segment_level(responses: Responses, view: View) -> Agreement:
    """Agreement of scores (n,) with human scores (n,); NaN is missing.

    grouping: 'pooled' takes all pairs at once; 'system' and 'context' average the coefficients of the systems or
    contexts, each counting the same. A group with fewer than three responses (accuracy: two), or one in which a side
    does not vary, has none and is left out (accuracy keeps it, as ties count). Accuracy is acc_eq with one ε for all
    groups (see `calibrated_accuracy`). ValueError for infinite scores, lengths that differ, or a grouping without
    labels.
    """
    scores, human, measure, grouping = responses.scores, responses.human, view.measure, view.grouping
    pairs, missing = columns(scores, human)
    x, y = pairs.T
    names, codes = _groups(responses, grouping, complete(scores, human))
    result = Agreement(measure, None, len(x), missing, 0)
    if len(x) < MIN_RESPONSES:
        few = f"{len(x)} responses with both scores; {MIN_RESPONSES} are needed"
        return replace(result, outcome="too_few", reason=few)
    if unvarying(x, y):
        same = f"the {'' if unvarying(x) else 'human '}scores are all the same"
        return replace(result, outcome="constant", reason=same)
    if measure == "accuracy":
        if (count := pair_count(codes)) > MAX_PAIRS:
            many = f"{count} pairs; compare by context, or at most {MAX_PAIRS}"
            return replace(result, outcome="too_many", reason=many)
        sizes = np.bincount(codes, minlength=len(names))
        left = tuple(LeftOut(names[code], f"{sizes[code]} responses") for code in np.flatnonzero(sizes < 2))
        result = replace(result, n=int(sizes[sizes >= 2].sum()), left_out=left)
        calibrated = calibrated_accuracy(x, y, codes)
        if calibrated is None:
            return replace(result, outcome="too_few", reason=f"no {grouping} has two responses")
        result = replace(result, epsilon=calibrated.epsilon, groups=calibrated.groups)
        return replace(result, statistic=calibrated.accuracy)
    if grouping == "pooled":
        correlation = CORRELATIONS[measure](x, y)
        return replace(result, statistic=correlation.statistic, p=correlation.p, groups=1)
    used, left = group_coefficients(x, y, names, codes, measure)
    if not used:
        few = f"no {grouping} has {MIN_RESPONSES} responses whose scores vary"
        return replace(result, left_out=left, outcome="too_few", reason=few)
    mean, n = float(np.mean(list(used.values()))), int(np.isin(codes, list(used)).sum())
    return replace(result, statistic=mean, n=n, groups=len(used), left_out=left)


def group_coefficients(
    x: Floats, y: Floats, names: list[str], codes: Integers, measure: Measure
) -> tuple[dict[int, float], tuple[LeftOut, ...]]:
    """Coefficient of each group (its number) that has one, and the groups that have none."""
    used: dict[int, float] = {}
    left = []
    by_size: dict[int, list[tuple[int, Integers]]] = {}
    for code, (name, rows) in enumerate(zip(names, _members(codes, len(names)), strict=True)):
        a, b = x[rows], y[rows]
        if len(rows) < MIN_RESPONSES:
            left.append(LeftOut(name, f"{len(rows)} responses"))
        elif unvarying(a, b):
            left.append(LeftOut(name, f"{'scores' if unvarying(a) else 'human scores'} all the same"))
        else:
            by_size.setdefault(len(rows), []).append((code, rows))
    for groups in by_size.values():  # groups of one size at once
        members = np.stack([rows for _, rows in groups])
        coefficients = row_coefficients(measure)(x[members], y[members])
        used |= {code: float(value) for (code, _), value in zip(groups, coefficients, strict=True)}
    return dict(sorted(used.items())), tuple(left)


def system_level(responses: Responses, view: View) -> Agreement:
    """Agreement of the systems' mean scores with their mean human scores, from responses (n,); NaN is missing.

    A response counts where it has both scores. measure: 'accuracy' is the share of pairs of systems ordered as people
    order them (Kocmi et al. 2021), equal means being a tie, without calibration. Refused
    below `MIN_SYSTEMS` systems unless the view forces it, which needs two systems at least (correlations: three).
    ValueError for infinite scores, lengths that differ, or unknown systems.
    """
    scores, human, measure, force = responses.scores, responses.human, view.measure, view.force
    if responses.systems is None:
        raise ValueError("the system level needs the system of each response")
    pairs, missing = columns(scores, human)
    usable = complete(scores, human)
    names, codes = numbered_within(responses.systems, usable, "systems")
    x, y = pairs.T
    count = len(names)
    agreement = Agreement(measure, None, len(x), missing, count)
    least = 2 if measure == "accuracy" else 3
    if count < MIN_SYSTEMS and not (force and count >= least):
        way = f"; {least} are the least" if force else " unless forced"
        reason = f"{count} systems; {MIN_SYSTEMS} are needed{way}"
        return replace(agreement, outcome="too_few_systems", reason=reason)
    means = [np.bincount(codes, values) / np.bincount(codes) for values in (x, y)]
    if unvarying(*means):
        reason = "the mean scores of the systems are all the same"
        return replace(agreement, outcome="constant", reason=reason)
    agreement = replace(agreement, forced=count < MIN_SYSTEMS)
    if measure == "accuracy":
        return replace(agreement, statistic=float(accuracy_rows(means[0][None], means[1])[0]))
    correlation = CORRELATIONS[measure](*means)
    return replace(agreement, statistic=correlation.statistic, p=correlation.p)


def _groups(
    responses: Responses, grouping: Grouping, usable: NDArray[np.bool_]
) -> tuple[list[str], Integers]:
    """The names of all groups, and the number of the group of each usable row."""
    if grouping == "pooled":
        return ["all"], np.zeros(int(usable.sum()), dtype=np.int64)
    labels = responses.systems if grouping == "system" else responses.contexts
    if labels is None:
        raise ValueError(f"agreement by {grouping} needs the {grouping} of each response")
    names, codes = numbered(labels, len(usable), f"{grouping} labels")
    return names, codes[usable]


def _members(codes: Integers, groups: int) -> list[Integers]:
    """Rows of each group."""
    ends = np.cumsum(np.bincount(codes, minlength=groups))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])
