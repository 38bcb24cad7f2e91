"""Paired bootstrap of the difference between two evaluators by context, and whether a challenger is not worse by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.bootstrap import (
    MIN_CLUSTERS,
    RESAMPLES,
    Interval,
    check_resampling,
    cluster_draws,
    evaluated,
    resampled,
    with_ends,
)
from ssrem.agreement.coefficients import Weighted, weighted_spearman
from ssrem.agreement.inputs import (
    EQUAL,
    MIN_RESPONSES,
    Floats,
    Labels,
    Numbers,
    Responses,
    Sides,
    View,
    chosen_labels,
    columns,
    complete,
    numbered,
)
from ssrem.agreement.levels import agreement_at
from ssrem.agreement.significance import Difference, not_comparable
from ssrem.agreement.weighted_levels import weighted_statistic

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
    resamples: int = RESAMPLES,
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
