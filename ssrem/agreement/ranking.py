"""Many evaluators at once: Holm's correction, and clusters of significance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ssrem.agreement.inputs import Numbers, unvarying
from ssrem.agreement.significance import Difference

ALPHA = 0.05


@dataclass(frozen=True)
class Compared:
    """One pair of evaluators: the difference with its own p, and that p corrected for all pairs of the table."""

    better: str
    worse: str
    difference: Difference
    corrected: float | None


@dataclass(frozen=True)
class Ranked:
    """One evaluator with its agreement and its cluster, from 1; both are None if it has none, and reason says why."""

    evaluator: str
    statistic: float | None
    cluster: int | None
    reason: str = ""


@dataclass(frozen=True)
class Ranking:
    """Evaluators from best to worst, and every pair of those that have a figure."""

    ranked: tuple[Ranked, ...]
    compared: tuple[Compared, ...]


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p-values corrected for their number (Holm 1979), in the same order, in (0, 1]; None, for no test, stays None and
    does not count. A corrected value below α is significant at α for the whole family. ValueError outside [0, 1]."""
    tested = sorted((value, at) for at, value in enumerate(p) if value is not None)
    if any(not 0 <= value <= 1 for value, _ in tested):
        raise ValueError("p-values must lie within [0, 1]")
    corrected: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, at) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        corrected[at] = highest
    return corrected


def significance_clusters(names: Sequence[str], significant: Callable[[str, str], bool]) -> list[int]:
    """Cluster of each name, from 1, for names from best to worst, as shared tasks print them.

    A new cluster begins where every name above is significantly better than every name below: names of different
    clusters differ significantly, names of one cluster not all.
    """
    clusters, cluster = [], 1
    for at in range(len(names)):
        if at and all(significant(above, below) for above in names[:at] for below in names[at:]):
            cluster += 1
        clusters.append(cluster)
    return clusters


def ranking(
    scores: Mapping[str, Numbers], test: Callable[[Numbers, Numbers], Difference], *, alpha: float = ALPHA
) -> Ranking:
    """Rank evaluators by their agreement with people, with a test of every pair, Holm's correction and clusters.

    scores: evaluator to its scores (n,), NaN for missing. test: `perm_both`, `paired_bootstrap` or `williams` with
    every argument bound but the two evaluators; two-sided, as the data decide which is better. Evaluators are compared
    on the responses that all of them scored. ValueError for a one-sided test or an alpha outside (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie within (0, 1), not at {alpha}")
    gaps = [np.isnan(np.asarray(values, dtype=np.float64)) for values in scores.values()]
    gap = np.logical_or.reduce(gaps) if gaps else np.zeros(0, dtype=bool)
    shared = {name: np.where(gap, np.nan, values) for name, values in scores.items()}
    reached: dict[str, float] = {}
    differences: dict[tuple[str, str], Difference] = {}
    reasons = dict.fromkeys(scores, "there is no other evaluator to compare it with")
    constant = {name for name, values in shared.items() if unvarying(np.asarray(values)[~gap])}
    reasons |= dict.fromkeys(constant, "its scores are all the same")
    for first, second in combinations(sorted(set(scores) - constant), 2):
        difference = test(shared[first], shared[second])
        if difference.sides != "two-sided":
            raise ValueError("a ranking takes a two-sided test")
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
        if pair.corrected is not None and pair.corrected < alpha
    }
    clusters = significance_clusters(order, lambda above, below: (above, below) in significant)
    ranked = [Ranked(name, reached[name], cluster) for name, cluster in zip(order, clusters, strict=True)]
    ranked += [Ranked(name, None, None, reasons[name]) for name in sorted(scores) if name not in reached]
    return Ranking(tuple(ranked), tuple(compared))


def _reversed(one: Difference) -> Difference:
    """Second against first."""
    difference, low, high = (
        None if value is None else -value for value in (one.difference, one.high, one.low)
    )
    return replace(one, first=one.second, second=one.first, difference=difference, low=low, high=high)
