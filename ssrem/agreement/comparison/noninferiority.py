"""Whether a challenger is not worse than the champion on the same responses, by a paired bootstrap."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats
from ssrem.agreement.intervals.resampling import Statistic, cluster_draws, evaluated, pooled

RESAMPLES = 1000
LEVEL = 0.05
"""The challenger is not worse where the 5% quantile of the difference, a one-sided 95% bound, is above the margin."""

MIN_RESPONSES = 20
"""Below this a bootstrap says nothing, and the set is left out of the decision."""


@dataclass(frozen=True)
class Comparison:
    """A challenger against the champion on `n` responses in `groups` groups (conversations or contexts).

    champion, challenger: the measure of each. low: lower bound of `difference`, challenger minus champion. margin: how
    much worse is still not worse. not_worse: None where there is nothing to compare; `outcome` then says why.
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

    @property
    def row(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)


def compare_share(
    dataset: str, champion: Floats, challenger: Floats, groups: NDArray[Any], *, margin: float, seed: int = 0
) -> Comparison:
    """Mean share of negatives below the true response, from each response's share (n,) under either; in [0, 1]."""
    means = _weighted_mean(champion), _weighted_mean(challenger)
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
    correlations = pooled(champion, human, "spearman"), pooled(challenger, human, "spearman")
    return _compare("spearman", dataset, *correlations, groups, margin, seed)


def _weighted_mean(values: Floats) -> Statistic:
    def mean(weights: Floats) -> Floats:
        means: Floats = weights @ values / weights.sum(axis=1)
        return means

    return mean


def _compare(
    measure: str,
    dataset: str,
    of_champion: Statistic,
    of_challenger: Statistic,
    groups: NDArray[Any],
    margin: float,
    seed: int,
) -> Comparison:
    """Groups are resampled, not responses: those to one context are not independent."""
    _, clusters = np.unique(groups, return_inverse=True)
    n, count = len(groups), int(clusters.max(initial=-1)) + 1

    def unknown(why: str, not_worse: bool | None) -> Comparison:
        return Comparison(dataset, measure, None, None, None, None, margin, n, count, not_worse, why)

    if n < MIN_RESPONSES or count < 2:
        return unknown(f"too few to compare: {n} responses in {count} groups", None)
    champion, challenger = (float(of(np.ones((1, n)))[0]) for of in (of_champion, of_challenger))
    if not np.isfinite(champion):  # any challenger whose scores vary says more
        return unknown("the champion's scores, or people's, are constant", None)
    if not np.isfinite(challenger):
        return unknown("the challenger's scores are constant", False)
    differences = evaluated(
        lambda weights: of_challenger(weights) - of_champion(weights),
        cluster_draws(clusters, RESAMPLES, seed),
    )
    low = float(np.nanquantile(differences, LEVEL))
    return Comparison(
        dataset, measure, champion, challenger, challenger - champion, low, margin, n, count, low >= -margin
    )
