"""Whether a challenger is not worse than the champion on the same responses, by a paired bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]

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
    return _compare(
        "share above", dataset, np.column_stack([champion, challenger]), groups, _means, margin, seed
    )


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
    columns = np.column_stack([champion, challenger, human])
    return _compare("spearman", dataset, columns, groups, _spearmans, margin, seed)


def _means(columns: Floats) -> Floats:
    means: Floats = columns.mean(axis=0)
    return means


def _spearmans(columns: Floats) -> Floats:
    """ρ of the first two columns with the third; NaN where one of them is constant."""
    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = np.sqrt((ranks**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        rho: Floats = (ranks[:, :2].T @ ranks[:, 2]) / (spread[:2] * spread[2])
    return rho


def _compare(
    measure: str,
    dataset: str,
    columns: Floats,
    groups: NDArray[Any],
    statistic: Callable[[Floats], Floats],
    margin: float,
    seed: int,
) -> Comparison:
    """Groups are resampled, not responses: those to one context are not independent."""
    _, number = np.unique(groups, return_inverse=True)
    n, count = len(columns), int(number.max(initial=-1)) + 1

    def unknown(why: str, not_worse: bool | None) -> Comparison:
        return Comparison(dataset, measure, None, None, None, None, margin, n, count, not_worse, why)

    if n < MIN_RESPONSES or count < 2:
        return unknown(f"too few to compare: {n} responses in {count} groups", None)
    champion, challenger = (float(value) for value in statistic(columns))
    if not np.isfinite(champion):  # whatever the challenger tells is more
        return unknown("the champion's scores, or people's, are constant", None)
    if not np.isfinite(challenger):
        return unknown("the challenger's scores are constant", False)
    order = np.argsort(number, kind="stable")
    sizes = np.bincount(number)
    starts = np.cumsum(sizes) - sizes
    draw = np.random.default_rng(seed)
    differences = np.empty(RESAMPLES)
    for resample in range(RESAMPLES):
        drawn = draw.integers(count, size=count)
        within = np.arange(sizes[drawn].sum()) - np.repeat(
            np.cumsum(sizes[drawn]) - sizes[drawn], sizes[drawn]
        )
        rows = order[np.repeat(starts[drawn], sizes[drawn]) + within]
        one, other = statistic(columns[rows])
        differences[resample] = other - one
    low = float(np.nanquantile(differences, LEVEL))
    return Comparison(
        dataset, measure, champion, challenger, challenger - champion, low, margin, n, count, low >= -margin
    )
