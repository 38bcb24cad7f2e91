"""Agreement of scores with human scores: over all responses, averaged over groups of responses, or of system means."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import atanh, copysign, exp, lgamma, sqrt, tanh
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import CONFIDENCE, Z_95

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = Sequence[float] | Floats
Keys = Sequence[Any] | NDArray[Any]

Measure = Literal["pearson", "spearman", "kendall", "accuracy"]
MEASURES: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "accuracy")

Level = Literal["segment", "system"]
Grouping = Literal["pooled", "system", "context"]

Outcome = Literal["ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate"]
"""'ok' means that the figures are defined. With any other outcome they are None, and a `reason` says why in words."""

EQUAL = 1e-10
"""Figures closer than this differ only by rounding."""

MIN_RESPONSES = 3
"""Fewer pairs of scores than this correlate perfectly or not at all."""

MIN_SYSTEMS = 5
"""With two systems every coefficient is 1 or -1, and with four, chance alone gives 1 once in 24 times."""

MAX_PAIRS = 5_000_000
"""Most pairs that accuracy holds in memory at once; above 3,162 responses it is computed by group only, not pooled."""

_BLOCK = 2_000_000
_FEW = 64
"""Up to this many values per row, Kendall's τ from all pairs of many rows at once is faster than SciPy row by row."""


# What is compared: responses with their scores


@dataclass(frozen=True)
class ScoredResponses:
    """Scores and human scores (n,), NaN for missing, with each response's context and system (None: not known).

    systems: None where systems do not matter. excluded: number of further responses with a human score that are not
    compared, such as ground truth. units: what resamples draw, each with all its responses; None: contexts. m is the
    number of responses with both scores. Properties are computed once and serve all figures; they raise ValueError
    where lengths differ, or a score is infinite.
    """

    scores: Floats
    human: Floats
    contexts: Keys
    systems: Keys | None = None
    excluded: int = 0
    units: Keys | None = None

    @cached_property
    def of_systems(self) -> ScoredResponses:
        """The responses whose system is known."""
        systems = [None] * len(self.scores) if self.systems is None else self.systems
        named = np.array([not _missing(system) for system in systems], dtype=bool)
        if named.all():
            return self
        units = self.contexts if self.units is None else self.units
        contexts, systems, units = (chosen_labels(one, named) for one in (self.contexts, systems, units))
        return ScoredResponses(self.scores[named], self.human[named], contexts, systems, self.excluded, units)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which responses have both scores, (n,)."""
        return complete(self.scores, self.human)

    @cached_property
    def pairs(self) -> tuple[Floats, Floats]:
        """Scores and human scores of the responses that have both, (m,) each."""
        x, y = np.ascontiguousarray(columns(self.scores, self.human)[0].T)
        return x, y

    @cached_property
    def context(self) -> Integers:
        """The context of each response with both scores, as a number from 0, (m,)."""
        return self._numbers("context", self.contexts)

    @cached_property
    def unit(self) -> Integers:
        """The unit of each response with both scores, as a number from 0, (m,)."""
        return self.context if self.units is None else self._numbers("unit", self.units)

    @cached_property
    def system(self) -> Integers:
        """The system of each response with both scores, as a number from 0, (m,). ValueError without systems."""
        return self._numbers("system", self.systems)

    def _numbers(self, of: str, labels: Keys | None) -> Integers:
        if labels is None:
            raise ValueError(f"agreement of systems, or by {of}, needs the {of} of each response")
        if len(labels) != len(self.known):
            raise ValueError(f"{len(labels)} {of}s do not fit {len(self.known)} scores")
        return numbered(chosen_labels(labels, self.known), int(self.known.sum()), f"{of}s")[1]


@dataclass(frozen=True)
class View:
    """Which figure to compute. grouping: at segment level only; force: at system level, even with few systems.
    ValueError for an unknown measure, level or grouping."""

    measure: Measure = "spearman"
    level: Level = "segment"
    grouping: Grouping = "pooled"
    force: bool = False

    def __post_init__(self) -> None:
        for name, known in (("measure", Measure), ("level", Level), ("grouping", Grouping)):
            if (value := getattr(self, name)) not in get_args(known):
                raise ValueError(f"no {name} {value!r}; the {name}s are {', '.join(get_args(known))}")


@dataclass(frozen=True)
class Figure:
    """How scores agree with human scores, and what the figure is based on.

    statistic: in [-1, 1], for accuracy in [0, 1]; over `n` responses, or conversations. p: in (0, 1], two-sided, of the
    hypothesis of no correlation, taking responses (system level: systems) as independent; None for accuracy and means
    over groups. low to high: interval of statistic at level `confidence`, from `resamples` draws with `seed`, or
    analytic if nothing was drawn. missing: responses left out because a score is missing; excluded: left out as ground
    truth. groups: number of groups averaged (pooled: 1), at system level of systems. epsilon: largest score difference
    that accuracy counts as a tie. forced: whether there were fewer systems than should be compared. Figures are None
    unless outcome is 'ok'; reason says why or, where outcome is 'ok', why there is no interval.
    """

    measure: Measure
    statistic: float | None
    n: int
    level: Level | Literal["conversation"] = "segment"
    grouping: Grouping = "pooled"
    p: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    missing: int = 0
    excluded: int = 0
    groups: int = 1
    epsilon: float | None = None
    forced: bool = False
    resamples: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def columns(*values: Numbers) -> tuple[Floats, int]:
    """The rows in which no value is missing (NaN), float64 (m, k), and how many were left out.

    ValueError where the k values are not of one length, or one is infinite.
    """
    usable = complete(*values)
    return np.stack([np.asarray(one, dtype=np.float64)[usable] for one in values], axis=1), int(
        (~usable).sum()
    )


def complete(*values: Numbers) -> NDArray[np.bool_]:
    """Which rows have no value missing, (n,). ValueError as in `columns`."""
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    if any(one.ndim != 1 or one.shape != arrays[0].shape for one in arrays):
        raise ValueError(f"shapes {', '.join(str(one.shape) for one in arrays)} are not rows of one length")
    rows = np.stack(arrays)
    if np.isinf(rows).any():
        raise ValueError(f"{int(np.isinf(rows).any(axis=0).sum())} of {rows.shape[1]} rows hold an infinity")
    usable: NDArray[np.bool_] = ~np.isnan(rows.sum(axis=0))
    return usable


def numbered(labels: Keys, n: int, of: str) -> tuple[list[str], Integers]:
    """Distinct labels in sorted order of their text, and each row's place among them (n,).

    ValueError unless there are n labels, none None or NaN. of: what the labels are, for the message of the error.
    """
    if len(labels) != n:
        raise ValueError(f"{len(labels)} {of} do not fit {n} scores")
    if any(map(_missing, labels)):
        raise ValueError(f"some of the {of} are None or NaN: leave those responses out, or name them")
    texts = list(map(str, labels))
    names = sorted(set(texts))
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place[text] for text in texts], dtype=np.int64)


def _missing(label: Any) -> bool:
    """Whether a label is None, or NaN or NA, by which frames say that one is missing."""
    return label is None or (not isinstance(label, str) and str(label) in ("nan", "<NA>", "NaT"))


def chosen_labels(labels: Keys, rows: NDArray[np.bool_]) -> list[Any]:
    """Those of the labels (n,) whose row is chosen; rows: whether each is, (n,)."""
    return [label for label, chosen in zip(labels, rows.tolist(), strict=True) if chosen]


def unvarying(*values: Floats) -> bool:
    """Whether any of the arrays (m,) is constant."""
    return any(len(one) > 0 and bool((one == one[0]).all()) for one in values)


# Single correlations, with p and interval


def pearson(x: Numbers, y: Numbers) -> Figure:
    """Pearson's r and its p by SciPy's `pearsonr`; 95% interval by Fisher's z, standard error 1 / √(n - 3).

    No figure below three pairs or where a side does not vary, no interval below four pairs (Kendall: five). ValueError
    where a value is not finite: nothing is dropped silently.
    """
    return _correlated("pearson", x, y, lambda r, n: 1 / sqrt(n - 3), fewest=4)


def spearman(x: Numbers, y: Numbers) -> Figure:
    """Spearman's ρ and its p by SciPy's `spearmanr`, ties at their mean rank. ValueError as in `pearson`.

    SciPy takes p from the t distribution, which gives 0 for ρ = ±1. There p is the share of all orders of the values
    that give 1 or -1. The interval is by Fisher's z with Bonett and Wright's (2000) standard error
    √((1 + ρ²/2) / (n - 3)).
    """
    return _correlated("spearman", x, y, lambda rho, n: sqrt((1 + rho**2 / 2) / (n - 3)), fewest=4)


def kendall(x: Numbers, y: Numbers) -> Figure:
    """Kendall's τ-b and its p by SciPy's `kendalltau`: exact for few pairs without ties, otherwise normal; interval by
    Fisher's z with Fieller, Hartley and Pearson's (1957) standard error √(.437 / (n - 4)). ValueError as in `pearson`.
    """
    return _correlated("kendall", x, y, lambda tau, n: sqrt(0.437 / (n - 4)), fewest=5)


CORRELATIONS: dict[Literal["pearson", "spearman", "kendall"], Callable[[Numbers, Numbers], Figure]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
"""Measure → the function that computes it."""


def _correlated(
    measure: Literal["pearson", "spearman", "kendall"],
    x: Numbers,
    y: Numbers,
    error: Callable[[float, int], float],
    *,
    fewest: int,
) -> Figure:
    """The figure of a measure. error: statistic and n → standard error of Fisher's z; fewest: least pairs for that."""
    from scipy import stats

    a, b = _finite(x, y)
    n = len(a)
    if n < MIN_RESPONSES:
        return Figure(measure, None, n, outcome="too_few", reason=f"{n} pairs; {MIN_RESPONSES} are needed")
    if unvarying(a, b):
        return Figure(measure, None, n, outcome="constant", reason="the values on one side are all the same")
    test = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[measure](
        a, b
    )
    statistic, p = max(-1.0, min(1.0, float(test.statistic))), float(test.pvalue)
    if measure == "spearman" and abs(statistic) > 1 - 1e-12:
        statistic = copysign(1.0, statistic)
        ties = np.unique(a, return_counts=True)[1].tolist()
        signs = 1 + (ties == ties[::-1])  # otherwise no order gives the opposite sign
        p = signs * exp(sum(lgamma(of + 1) for of in ties) - lgamma(n + 1))
    result = Figure(measure, statistic, n, p=min(max(p, sys.float_info.min), 1.0))  # underflow is not zero
    if n < fewest:
        return replace(result, reason=f"no interval of {n} pairs; {fewest} are needed")
    low = high = statistic
    if abs(statistic) < 1:
        centre, half = atanh(statistic), Z_95 * error(statistic, n)
        low, high = tanh(centre - half), tanh(centre + half)
    return replace(result, low=low, high=high, confidence=CONFIDENCE)


def regression_line(x: Numbers, y: Numbers) -> tuple[float, float] | None:
    """Slope and intercept of the least squares line of y on x; None below two pairs or if x is constant. ValueError as
    in `pearson`."""
    a, b = _finite(x, y)
    if len(a) < 2 or unvarying(a):
        return None
    centred = a - a.mean()
    slope = float(centred @ (b - b.mean()) / (centred @ centred))
    return slope, float(b.mean() - slope * a.mean())


def rounded(means: Floats, values: Floats) -> Floats:
    """Means of the values, rounded relative to the largest value: means that differ only by rounding become equal."""
    largest = float(np.abs(values).max(initial=0.0))
    return means if largest == 0 else np.round(means / largest, 13) * largest


def _finite(x: Numbers, y: Numbers) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not two rows of the same length")
    if broken := int((~np.isfinite(a) | ~np.isfinite(b)).sum()):
        raise ValueError(f"{broken} of {len(a)} pairs hold NaN or infinity")
    return a, b


# Coefficients of many rows at once


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's r in [-1, 1] of each row, (r,). x: (r, n); y: (r, n) or (n,). NaN where a side does not vary."""
    x, y = np.broadcast_arrays(x, y)
    a, b = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
    flat = (x == x[:, :1]).all(axis=1) | (y == y[:, :1]).all(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(flat, np.nan, np.clip(np.einsum("rn,rn->r", a, b) / spread, -1, 1))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in [-1, 1] of each row, (r,), ties at their mean rank; arguments and NaN as in `pearson_rows`."""
    from scipy.stats import rankdata

    return pearson_rows(rankdata(x, axis=1), rankdata(np.atleast_2d(y), axis=1))


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b in [-1, 1] of each row, (r,): short rows by all their pairs at once, others by SciPy; arguments and
    NaN as in `pearson_rows`."""
    x, y = np.broadcast_arrays(x, y)
    if x.shape[1] > _FEW:
        from scipy.stats import kendalltau

        return np.array([kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)])

    def tau(a: Floats, b: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            one: Floats = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
        return np.clip(one, -1, 1)

    return _by_pairs(x, y, tau)


def accuracy_rows(x: Floats, y: Floats) -> Floats:
    """Share in [0, 1] of the pairs of each row, (r,), that x orders or ties as y does; ties are not calibrated. NaN
    below two values. x: (r, n); y: (r, n) or (n,)."""
    x, y = np.broadcast_arrays(x, y)
    return _by_pairs(x, y, lambda a, b: (a == b).mean(axis=1) if a.shape[1] else np.full(len(a), np.nan))


ROW_COEFFICIENTS: dict[Measure, Callable[[Floats, Floats], Floats]] = {
    "pearson": pearson_rows,
    "spearman": spearman_rows,
    "kendall": kendall_rows,
    "accuracy": accuracy_rows,
}
"""Measure → the function that computes it for many rows at once."""


def _by_pairs(x: Floats, y: Floats, of: Callable[[Floats, Floats], Floats]) -> Floats:
    """Apply `of` to the signs (r, pairs) of the differences in x and in y of all pairs of a row, in blocks of rows."""
    one, other = np.triu_indices(x.shape[1], 1)
    step = max(1, _BLOCK // max(1, len(one)))
    blocks = [
        of(np.sign(a[:, one] - a[:, other]), np.sign(b[:, one] - b[:, other]))
        for a, b in ((x[i : i + step], y[i : i + step]) for i in range(0, len(x), step))
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def group_coefficients(x: Floats, y: Floats, groups: Integers, measure: Measure) -> Floats:
    """Coefficient of x (n,) and y (n,) in each group, (g,). groups: the number of each response's group, from 0, (n,).
    NaN for a group of fewer than three responses, or in which a side does not vary."""
    coefficients = np.full(int(groups.max(initial=-1)) + 1, np.nan)
    for numbers, rows in _by_size(groups):
        if rows.shape[1] >= MIN_RESPONSES:
            coefficients[numbers] = ROW_COEFFICIENTS[measure](x[rows], y[rows])
    return coefficients


def _by_size(groups: Integers) -> Iterator[tuple[Integers, Integers]]:
    """For each size of a group, yield the numbers of the groups of that size (g,) and their members' rows (g, size)."""
    order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]).tolist():
        numbers = np.flatnonzero(sizes == size)
        yield numbers, order[starts[numbers, None] + np.arange(size)]


# Pairwise accuracy with calibrated ties


def calibrated_accuracy(
    scores: Floats, human: Floats, groups: Integers | None = None
) -> tuple[float, float, int] | None:
    """Pairwise accuracy acc_eq with the ε that makes it highest, that ε, and the number of groups with a pair (Deutsch,
    Foster and Freitag 2023, "Ties Matter", sections 4 and 5).

    scores, human: (n,), finite. groups: (n,), numbers from 0; only pairs within a group count; None: one group. Scores
    that differ by ε or less are tied. A pair agrees if scores and people both tie it, or both order it alike. All
    groups share one ε, the smallest of the best, and count the same. None where there is no pair. ValueError above
    `MAX_PAIRS`. Choosing ε on the same pairs favours evaluators a little.
    """
    codes = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
    pairs = pair_count(codes)
    if pairs == 0:
        return None
    if pairs > MAX_PAIRS:
        raise ValueError(f"{pairs} pairs are more than {MAX_PAIRS}: compare by context")
    one, other = pairs_within(codes)
    order = np.argsort(np.abs(scores[one] - scores[other]))
    one, other = one[order], other[order]  # by ascending distance of their scores
    difference, group = scores[one] - scores[other], codes[one]
    distance = np.abs(difference)
    last = np.flatnonzero(np.append(distance[1:] != distance[:-1], True))  # of the pairs of each distance
    by_human = np.sign(human[one] - human[other])
    alike, tied = np.sign(difference) == by_human, by_human == 0
    # Once ε reaches a pair's distance, scores tie it: it agrees if people tie it, no longer if both ordered it alike.
    gain = tied.astype(np.int64) - alike
    sizes = np.bincount(group)
    used = sizes > 0
    if len(np.unique(sizes[used])) > 1:  # groups count the same, so a pair of a large one counts less
        gain = gain / sizes[group]
    gains = np.append(0, np.round(np.cumsum(gain)[last], 9))  # a rounding error is no gain
    best = int(np.argmax(gains))
    within = int(last[best - 1]) + 1 if best else int((distance == 0).sum())
    agreeing = np.bincount(group, np.append(tied[:within], alike[within:]))
    epsilon = float(distance[within - 1]) if best else 0.0
    return float((agreeing[used] / sizes[used]).mean()), epsilon, int(used.sum())


def pair_count(groups: Integers) -> int:
    """Number of pairs of responses that are of the same group. groups: of each response, (n,)."""
    sizes = np.bincount(groups)
    return int((sizes * (sizes - 1) // 2).sum())


def pairs_within(groups: Integers) -> tuple[Integers, Integers]:
    """Rows of the two responses of each pair of the same group, (pairs,) each. groups: of each response, (n,)."""
    both = [
        np.stack([rows[:, index].ravel() for index in np.triu_indices(rows.shape[1], 1)])
        for _, rows in _by_size(groups)
    ]
    one, other = np.concatenate([np.empty((2, 0), dtype=np.int64), *both], axis=1)
    return one, other


# Agreement at a level


def agreement_at(responses: ScoredResponses, view: View) -> Figure:
    """Agreement of scores with human scores, at segment or at system level.

    At segment level, grouping 'pooled' takes all responses at once; 'system' and 'context' average the coefficients of
    the systems or contexts, each counting the same. A group with fewer than three responses (accuracy: two) has no
    coefficient and is left out, and so is one in which a side does not vary (but not for accuracy, where ties count).
    Accuracy is acc_eq with one ε for all groups (see `calibrated_accuracy`).

    At system level, the systems' mean scores are compared. Accuracy is then the share of pairs of systems ordered as
    people order them (Kocmi et al. 2021); equal means are a tie, and ties are not calibrated. Refused below
    `MIN_SYSTEMS` systems unless the view forces it, which needs two systems at least (correlations: three).

    ValueError for infinite scores, lengths that differ, and a level or grouping without its labels.
    """
    x, missing = responses.pairs[0], int((~responses.known).sum())
    result = Figure(view.measure, None, len(x), view.level, view.grouping, groups=0)
    result = replace(result, missing=missing, excluded=responses.excluded)
    return (_of_responses if view.level == "segment" else _of_systems)(responses, view, result)


def _of_responses(responses: ScoredResponses, view: View, result: Figure) -> Figure:
    measure, grouping, (x, y) = view.measure, view.grouping, responses.pairs
    groups = np.zeros(len(x), dtype=np.int64) if grouping == "pooled" else getattr(responses, grouping)
    if len(x) < MIN_RESPONSES:
        few = f"{len(x)} responses with both scores; {MIN_RESPONSES} are needed"
        return replace(result, outcome="too_few", reason=few)
    if unvarying(x, y):
        same = f"the {'' if unvarying(x) else 'human '}scores are all the same"
        return replace(result, outcome="constant", reason=same)
    sizes = np.bincount(groups)
    if measure == "accuracy":
        if (count := pair_count(groups)) > MAX_PAIRS:
            many = f"{count} pairs; compare by context, or at most {MAX_PAIRS}"
            return replace(result, outcome="too_many", reason=many)
        result = replace(result, n=int(sizes[sizes >= 2].sum()))
        found = calibrated_accuracy(x, y, groups)
        if found is None:
            return replace(result, outcome="too_few", reason=f"no {grouping} has two responses")
        accuracy, epsilon, used = found
        return replace(result, statistic=accuracy, epsilon=epsilon, groups=used)
    if grouping == "pooled":
        correlation = CORRELATIONS[measure](x, y)
        return replace(result, statistic=correlation.statistic, p=correlation.p, groups=1)
    coefficients = group_coefficients(x, y, groups, measure)
    defined = ~np.isnan(coefficients)
    if not defined.any():
        few = f"no {grouping} has {MIN_RESPONSES} responses whose scores vary"
        return replace(result, outcome="too_few", reason=few)
    mean, n = float(coefficients[defined].mean()), int(sizes[defined].sum())
    return replace(result, statistic=mean, n=n, groups=int(defined.sum()))


def _of_systems(responses: ScoredResponses, view: View, result: Figure) -> Figure:
    measure, force, (x, y), systems = view.measure, view.force, responses.pairs, responses.system
    count = int(systems.max(initial=-1)) + 1
    result = replace(result, groups=count)
    least = 2 if measure == "accuracy" else MIN_RESPONSES
    if count < MIN_SYSTEMS and not (force and count >= least):
        way = f"; {least} are the least" if force else " unless forced"
        reason = f"{count} systems; {MIN_SYSTEMS} are needed{way}"
        return replace(result, outcome="too_few_systems", reason=reason)
    means = [rounded(np.bincount(systems, values) / np.bincount(systems), values) for values in (x, y)]
    if unvarying(*means):
        reason = "the mean scores of the systems are all the same"
        return replace(result, outcome="constant", reason=reason)
    result = replace(result, forced=count < MIN_SYSTEMS)
    if measure == "accuracy":
        return replace(result, statistic=float(accuracy_rows(means[0][None], means[1])[0]))
    correlation = CORRELATIONS[measure](*means)
    return replace(result, statistic=correlation.statistic, p=correlation.p)
