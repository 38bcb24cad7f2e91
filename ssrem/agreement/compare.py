"""Comparison of evaluators: which agrees better with people, whether one may replace another, and how they rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import ALPHA, COVERAGE
from ssrem.agreement.correlate import (
    EQUAL,
    MIN_RESPONSES,
    MIN_SYSTEMS,
    ROW_COEFFICIENTS,
    Floats,
    Keys,
    Level,
    Measure,
    Numbers,
    Outcome,
    ScoredResponses,
    View,
    agreement_at,
    chosen_labels,
    columns,
    complete,
    numbered,
    rounded,
    unvarying,
)
from ssrem.agreement.resample import (
    DRAWS,
    MIN_CLUSTERS,
    Weighted,
    bca,
    context_draws,
    evaluated,
    resampled,
    weighted_spearman,
    weighted_statistic,
)

PERMUTATIONS = 2000

GATE_RESAMPLES = 1000
GATE_LEVEL = 0.05
"""Quantile of the difference that is its one-sided 95% bound: the challenger is not worse if it is -margin or more."""

GATE_RESPONSES = 20
"""Sets with fewer responses are left out of the decision: a bootstrap of so few is not informative."""

_CELLS = 2_000_000


# The difference between two evaluators


@dataclass(frozen=True)
class Difference:
    """How much better the first evaluator agrees with people than the second, and a test of that difference.

    first, second: agreement of each; difference: first minus second. p: of the difference, two-sided, in (0, 1]. low to
    high: 95% interval of the difference, which only the bootstrap gives. n: responses used; missing: responses left out
    because a score is missing; resamples: number of permutations or draws, made with `seed`. Unless outcome is 'ok',
    reason says why, and the figures are None (only p, low and high if there is a difference that cannot be tested).
    """

    n: int
    missing: int
    resamples: int
    seed: int
    first: float | None = None
    second: float | None = None
    difference: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def not_comparable(first: Floats, second: Floats, human: Floats) -> tuple[Outcome, str] | None:
    """Outcome and reason if three columns of scores (n,) cannot be compared; None if they can."""
    if len(human) < MIN_RESPONSES:
        return "too_few", f"{len(human)} responses with all three scores; {MIN_RESPONSES} are needed"
    whose = {"the first evaluator's scores": first, "the second's scores": second, "the human scores": human}
    constant = [name for name, values in whose.items() if unvarying(values)]
    return ("constant", f"{constant[0]} are all the same") if constant else None


Known = dict[tuple[bytes, bytes], tuple[float, Floats, Floats]]
"""Cache of agreement: (bytes of which responses are used, bytes of an evaluator's scores) → its agreement with people
on the data, on draws of contexts (r,), and on the data without each group of contexts (k,)."""


def paired_bootstrap(
    first: Numbers,
    second: Numbers,
    human: Numbers,
    contexts: Keys,
    *,
    view: View,
    systems: Keys | None = None,
    resamples: int = DRAWS,
    seed: int,
    known: Known | None = None,
) -> Difference:
    """Difference between the agreement of first and of second (n,) with the human scores (n,), with its BCa interval.

    Both are evaluated on the same resamples of contexts (n,). NaN is missing: only responses with all three scores
    count. p inverts a percentile interval: it is twice the smaller of (k + 1) / (resamples + 1), at most 1, where k
    counts the resamples in which first is not better, or those in which it is not worse. For accuracy, each evaluator
    keeps the ε chosen on the data. The system level compares the means by `systems` (n,) and is refused below five
    systems unless the view forces it. known: a cache for calls that differ only in first and second, so that each
    evaluator is resampled once and not once per pair. ValueError for infinite scores and labels of another length.
    """
    if resamples < 1:
        raise ValueError(f"{resamples} resamples; give 1 or more")
    values, missing = columns(first, second, human)
    usable, y = complete(first, second, human), values[:, 2]
    if len(contexts) != len(usable):
        raise ValueError(f"{len(contexts)} contexts do not fit {len(usable)} scores")
    contexts = chosen_labels(contexts, usable)
    systems = None if systems is None else chosen_labels(systems, usable)
    clusters = numbered(contexts, len(values), "contexts")[1]
    count = int(clusters.max(initial=-1)) + 1
    result = Difference(len(values), missing, resamples, seed)
    if why := not_comparable(values[:, 0], values[:, 1], y):
        return replace(result, outcome=why[0], reason=why[1])
    if count < MIN_CLUSTERS:
        few = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return replace(result, outcome="too_few", reason=few)
    known = {} if known is None else known
    both = []
    for x in values.T[:2]:
        key = (usable.tobytes(), x.tobytes())
        if key not in known:
            responses = ScoredResponses(x, y, contexts, systems)
            agreement = agreement_at(responses, view)
            if agreement.statistic is None:
                return replace(result, outcome=agreement.outcome, reason=agreement.reason)
            statistic = weighted_statistic(responses, view, agreement.epsilon or 0.0)
            known[key] = agreement.statistic, *resampled(statistic, clusters, resamples, seed)
        both.append(known[key])
    (a, draws_a, without_a), (b, draws_b, without_b) = both
    draws = draws_a - draws_b
    result = replace(result, first=a, second=b, difference=a - b)
    ends = bca(a - b, draws, without_a - without_b)
    if isinstance(ends, str):
        return replace(result, outcome="degenerate", reason=ends)
    # A resample without a figure counts against both sides.
    sides = ((int((~(one > EQUAL)).sum()) + 1) / (resamples + 1) for one in (draws, -draws))
    return replace(result, p=min(1.0, 2 * min(sides)), low=ends[0], high=ends[1])


def perm_both(
    first: Numbers,
    second: Numbers,
    human: Numbers,
    *,
    measure: Measure = "spearman",
    level: Level = "segment",
    systems: Keys | None = None,
    permutations: int = PERMUTATIONS,
    seed: int,
) -> Difference:
    """Test whether first (n,) agrees with the human scores (n,) better than second (n,); NaN is missing.

    This is PERM-BOTH of Deutsch, Dror and Roth (2021, section 4.2). Under the null hypothesis the evaluators are
    exchangeable: both are standardised, and a permutation swaps the two scores of each response, that is of each system
    for each input, with probability ½. p = (k + 1) / (permutations + 1) for k permutations with a difference at least
    as large in size. level: 'segment' pools all responses; 'system' takes the means by `systems` (n,), refused below
    five. ValueError for an unknown measure or level, for accuracy at segment level, whose ties need calibration (use
    `paired_bootstrap`), for infinite scores, and for labels of another length.
    """
    View(measure, level)  # ValueError if one is unknown
    if permutations < 1:
        raise ValueError(f"{permutations} permutations; give 1 or more")
    if measure == "accuracy" and level == "segment":
        raise ValueError(
            "accuracy with calibrated ties is compared by a paired bootstrap, not by permutation"
        )
    values, missing = columns(first, second, human)
    x1, x2, y = values.T
    result = Difference(len(y), missing, permutations, seed)
    if why := not_comparable(x1, x2, y):
        return replace(result, outcome=why[0], reason=why[1])
    coefficients = ROW_COEFFICIENTS[measure]

    def agreement(x: Floats) -> Floats:
        if shares is None:
            return coefficients(x, y)
        return coefficients(rounded(x @ shares, x), rounded(y @ shares, y))

    shares: Floats | None = None
    if level == "system":
        if systems is None:
            raise ValueError("the system level needs the system of each response")
        usable = complete(first, second, human)
        if len(systems) != len(usable):
            raise ValueError(f"{len(systems)} systems do not fit {len(usable)} scores")
        codes = numbered(chosen_labels(systems, usable), len(y), "systems")[1]
        count = int(codes.max()) + 1
        if count < MIN_SYSTEMS:
            few = f"{count} systems; {MIN_SYSTEMS} are needed"
            return replace(result, outcome="too_few_systems", reason=few)
        shares = np.eye(count)[codes] / np.bincount(codes)
    scaled = (one / np.abs(one).max() for one in values.T)  # so that no square overflows
    a, b, y = ((one - one.mean()) / one.std() for one in scaled)
    observed_a, observed_b = (float(agreement(one[None])[0]) for one in (a, b))
    if np.isnan(observed_a) or np.isnan(observed_b):
        flat = "a side does not vary between the systems"
        return replace(result, outcome="constant", reason=flat)
    draw, difference = np.random.default_rng(seed), observed_a - observed_b

    def exchanged(count: int) -> Floats:
        swap = draw.random((count, len(y))) < 0.5
        return agreement(np.where(swap, b, a)) - agreement(np.where(swap, a, b))

    extreme, step = 0, max(1, _CELLS // len(y))
    for start in range(0, permutations, step):  # NaN counts as extreme, so that it makes nothing significant
        less = np.abs(exchanged(min(step, permutations - start))) < abs(difference) - EQUAL
        extreme += int((~less).sum())
    p = (extreme + 1) / (permutations + 1)
    return replace(result, first=observed_a, second=observed_b, difference=difference, p=p)


# Whether a challenger may replace the champion


@dataclass(frozen=True)
class Comparison:
    """A challenger against the champion on `n` responses in `groups` groups (conversations or contexts).

    champion, challenger: value of the measure for each. low: lower bound of `difference`, challenger minus champion.
    margin: how much worse the challenger may be. not_worse: None where nothing can be compared; `outcome` says why.
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


def compare_with_champion(
    dataset: str,
    champion: Floats,
    challenger: Floats,
    groups: NDArray[Any],
    *,
    human: Floats | None = None,
    margin: float,
    seed: int = 0,
) -> Comparison:
    """Compare a challenger with the champion on one set, by a bootstrap of the difference of their measures.

    With human scores (n,), the measure is Spearman's ρ of the scores (n,) with them. Without, it is the mean of values
    (n,) in [0, 1]: for each response, the share of its negatives that score below the true response. Groups (n,) are
    resampled, and not single responses, because responses to one context are not independent.
    """
    _, clusters = np.unique(groups, return_inverse=True)
    n, count = len(groups), int(clusters.max(initial=-1)) + 1

    def weighted(values: Floats) -> Weighted:
        if human is not None:
            return weighted_spearman(values, human, clusters)
        sums, sizes = np.bincount(clusters, values), np.bincount(clusters).astype(np.float64)
        return lambda weights: weights @ sums / (weights @ sizes)

    measure = "share above" if human is None else "spearman"
    result = Comparison(dataset, measure, None, None, None, None, margin, n, count, None)
    if n < GATE_RESPONSES or count < MIN_CLUSTERS:
        return replace(result, outcome=f"too few to compare: {n} responses in {count} groups")
    old, new = weighted(champion), weighted(challenger)
    reached = [float(one(np.ones((1, count)))[0]) for one in (old, new)]
    if not np.isfinite(reached[0]):
        return replace(result, outcome="the champion's scores, or people's, are constant")
    if not np.isfinite(reached[1]):
        return replace(result, not_worse=False, outcome="the challenger's scores are constant")
    draws = context_draws(clusters, GATE_RESAMPLES, seed)
    differences = evaluated(lambda weights: new(weights) - old(weights), draws)
    low = float(np.nanquantile(differences, GATE_LEVEL))
    result = replace(result, champion=reached[0], challenger=reached[1], difference=reached[1] - reached[0])
    return replace(result, low=low, not_worse=low >= -margin)


# Many evaluators at once


@dataclass(frozen=True)
class Compared:
    """One pair of evaluators: the difference with its own p, and that p corrected for all pairs of the table."""

    better: str
    worse: str
    difference: Difference
    corrected: float | None


@dataclass(frozen=True)
class Ranked:
    """One evaluator with its agreement and its significance cluster, from 1; if both are None, reason says why."""

    evaluator: str
    statistic: float | None
    cluster: int | None
    reason: str = ""


@dataclass(frozen=True)
class Ranking:
    """Evaluators from best to worst, and the comparison of every pair of those whose agreement is defined."""

    ranked: tuple[Ranked, ...]
    compared: tuple[Compared, ...]


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p-values corrected for multiple tests (Holm 1979), in the same order, in (0, 1]. None means no test; it stays
    None and does not count as one. A corrected value below α is significant at α for the whole family."""
    tested = sorted((value, at) for at, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, at) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        corrected[at] = highest
    return corrected


def significance_clusters(names: Sequence[str], significant: Callable[[str, str], bool]) -> list[int]:
    """Significance cluster of each name, numbered from 1, as shared tasks print them. names: from best to worst.

    A new cluster begins where every name above is significantly better than every name below. So any two names of
    different clusters differ significantly, while within a cluster some do not.
    """
    clusters, cluster = [], 1
    for at in range(len(names)):
        if at and all(significant(above, below) for above in names[:at] for below in names[at:]):
            cluster += 1
        clusters.append(cluster)
    return clusters


def ranking(scores: Mapping[str, Numbers], test: Callable[[Numbers, Numbers], Difference]) -> Ranking:
    """Rank evaluators by their agreement with people, with a test of every pair, Holm's correction and clusters.

    scores: evaluator to its scores (n,), NaN for missing. test: `perm_both` or `paired_bootstrap` with every
    argument bound but the two evaluators. Evaluators are compared on the responses that all of them scored. One that
    scored less than COVERAGE of the responses of another is left out, so that it does not shrink what the others are
    compared on.
    """
    gaps = {name: np.isnan(np.asarray(values, dtype=np.float64)) for name, values in scores.items()}
    counts = {name: int((~gap).sum()) for name, gap in gaps.items()}
    most = max(counts.values(), default=0)
    few = {name for name, count in counts.items() if count < COVERAGE * most}
    gap = np.logical_or.reduce(
        [gaps[name] for name in scores if name not in few] or [np.zeros(0, dtype=bool)]
    )
    shared = {name: np.where(gap, np.nan, values) for name, values in scores.items() if name not in few}
    reached: dict[str, float] = {}
    differences: dict[tuple[str, str], Difference] = {}
    reasons = dict.fromkeys(scores, "there is no other evaluator to compare it with")
    reasons |= {name: f"it scored {counts[name]:,} responses, another evaluator {most:,}" for name in few}
    constant = {name for name, values in shared.items() if unvarying(np.asarray(values)[~gap])}
    reasons |= dict.fromkeys(constant, "its scores are all the same")
    for first, second in combinations(sorted(set(shared) - constant), 2):
        difference = test(shared[first], shared[second])
        if difference.first is None or difference.second is None:
            reasons[first] = reasons[second] = difference.reason
            continue
        reached[first], reached[second] = difference.first, difference.second
        differences[first, second] = difference
    order = sorted(reached, key=lambda name: (-reached[name], name))
    place = {name: at for at, name in enumerate(order)}
    pairs = [
        (first, second, difference)
        if place[first] < place[second]
        else (second, first, _reversed(difference))
        for (first, second), difference in differences.items()
    ]
    corrected = holm([difference.p for _, _, difference in pairs])
    compared = [Compared(*pair, p) for pair, p in zip(pairs, corrected, strict=True)]
    compared.sort(key=lambda pair: (place[pair.better], place[pair.worse]))
    significant = {
        (pair.better, pair.worse)
        for pair in compared
        if pair.corrected is not None and pair.corrected < ALPHA
    }
    clusters = significance_clusters(order, lambda above, below: (above, below) in significant)
    ranked = [Ranked(name, reached[name], cluster) for name, cluster in zip(order, clusters, strict=True)]
    ranked += [Ranked(name, None, None, reasons[name]) for name in sorted(scores) if name not in reached]
    return Ranking(tuple(ranked), tuple(compared))


def _reversed(one: Difference) -> Difference:
    """The same comparison with the two sides swapped."""
    difference, low, high = (
        None if value is None else -value for value in (one.difference, one.high, one.low)
    )
    return replace(one, first=one.second, second=one.first, difference=difference, low=low, high=high)
