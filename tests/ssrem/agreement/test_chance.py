"""Agreement against chance: SciPy's permutation test, and its null."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.compare import against_chance

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("sides", ["two-sided", "greater"])
def test_pooled_is_scipys_exact_test(sides: Any) -> None:
    x, y = RNG.normal(size=6), RNG.normal(size=6)
    theirs = stats.permutation_test(
        (x,),
        lambda a: np.corrcoef(a, y)[0, 1],
        permutation_type="pairings",
        alternative=sides,
        n_resamples=np.inf,
    )
    chance = against_chance(x, y, measure="pearson", permutations=5000, sides=sides, seed=0)
    assert chance.statistic == pytest.approx(theirs.statistic)
    expected = theirs.pvalue
    if sides == "two-sided":  # SciPy doubles the smaller side; ours is how far from 0
        null = np.array([np.corrcoef(x[list(order)], y)[0, 1] for order in permutations(range(6))])
        expected = (abs(null) >= abs(theirs.statistic) - 1e-9).mean()
    assert chance.p == pytest.approx(expected, abs=0.025)
    assert (chance.sides, chance.n, chance.permutations, chance.seed) == (sides, 6, 5000, 0)


def test_deals_stay_within_their_group() -> None:
    x, y = np.array([0.0, 1, 3, 100, 150, 110]), np.array([1.0, 2, 4, 1, 5, 2])

    def mean(one: Any) -> float:
        return float(np.mean([np.corrcoef(one[at], y[at])[0, 1] for at in (slice(3), slice(3, 6))]))

    null = [mean(np.array([*a, *b])) for a in permutations(x[:3]) for b in permutations(x[3:])]
    chance = against_chance(
        x, y, measure="pearson", groups=[*"aaabbb"], permutations=4000, sides="greater", seed=0
    )
    assert chance.p == pytest.approx(np.mean(np.array(null) >= mean(x) - 1e-9), abs=0.015)


def test_within_groups_what_differs_between_them_counts_for_nothing() -> None:
    groups = np.repeat(np.arange(40), 5)
    shared = RNG.normal(size=40)[groups] * 3
    x, y = shared + RNG.normal(size=(2, 200))
    assert against_chance(x, y, measure="spearman", permutations=199, seed=0).p == 1 / 200
    small, own = 0, np.random.default_rng(1)
    for sample in range(60):
        x, y = shared + own.normal(size=(2, 200))
        chance = against_chance(x, y, measure="pearson", groups=groups, permutations=99, seed=sample)
        small += chance.p <= 0.05  # type: ignore[operator]
    assert small <= 9  # 3 expected, standard deviation 1.7
    good = against_chance(x, x + y, measure="kendall", groups=groups, permutations=199, seed=0)
    assert good.p == 1 / 200 and good.outcome == "ok"
    correlations = [stats.kendalltau(x[groups == g], (x + y)[groups == g]).statistic for g in range(40)]
    assert good.statistic == pytest.approx(np.mean(correlations))


def test_what_cannot_be_tested_says_why() -> None:
    few = against_chance([1, 2, np.nan], [1, 2, 3], measure="pearson", seed=0)
    assert (few.outcome, few.n, few.missing, few.p) == ("too_few", 2, 1, None)
    assert against_chance([1, 1, 1], [1, 2, 3], measure="pearson", seed=0).outcome == "constant"
    pairs = against_chance([1, 2, 3, 4], [2, 1, 4, 3], measure="pearson", groups=[*"aabb"], seed=0)
    assert pairs.outcome == "too_few" and pairs.statistic is None
    with pytest.raises(ValueError, match="chance"):
        against_chance([1, 2, 3], [1, 2, 3], measure="accuracy", seed=0)
