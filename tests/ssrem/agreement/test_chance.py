"""Agreement against chance: SciPy's permutation test, and its null."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from ssrem.agreement.compare import against_chance

RNG = np.random.default_rng(0)


def test_pooled_is_that_of_all_permutations() -> None:
    x, y = RNG.normal(size=6), RNG.normal(size=6)
    null = np.array([np.corrcoef(x[list(order)], y)[0, 1] for order in permutations(range(6))])
    expected = (abs(null) >= abs(null[0]) - 1e-9).mean()  # of the data, which come first
    assert against_chance(x, y, measure="pearson", permutations=5000, seed=0) == pytest.approx(
        expected, abs=0.025
    )


def test_deals_stay_within_their_group() -> None:
    x, y = np.array([0.0, 1, 3, 100, 150, 110]), np.array([1.0, 2, 4, 1, 5, 2])

    def mean(one: Any) -> float:
        return float(np.mean([np.corrcoef(one[at], y[at])[0, 1] for at in (slice(3), slice(3, 6))]))

    null = [mean(np.array([*a, *b])) for a in permutations(x[:3]) for b in permutations(x[3:])]
    chance = against_chance(x, y, measure="pearson", groups=[*"aaabbb"], permutations=4000, seed=0)
    assert chance == pytest.approx(np.mean(np.abs(null) >= abs(mean(x)) - 1e-9), abs=0.02)


def test_within_groups_what_differs_between_them_counts_for_nothing() -> None:
    groups = np.repeat(np.arange(40), 5)
    shared = RNG.normal(size=40)[groups] * 3
    x, y = shared + RNG.normal(size=(2, 200))
    assert against_chance(x, y, measure="spearman", permutations=199, seed=0) == 1 / 200
    small, own = 0, np.random.default_rng(1)
    for sample in range(60):
        x, y = shared + own.normal(size=(2, 200))
        chance = against_chance(x, y, measure="pearson", groups=groups, permutations=99, seed=sample)
        small += chance <= 0.05  # type: ignore[operator]
    assert small <= 9  # 3 expected, standard deviation 1.7
    assert against_chance(x, x + y, measure="kendall", groups=groups, permutations=199, seed=0) == 1 / 200


def test_what_cannot_be_tested_has_no_p() -> None:
    assert against_chance([1, 2, np.nan], [1, 2, 3], measure="pearson", seed=0) is None
    assert against_chance([1, 1, 1], [1, 2, 3], measure="pearson", seed=0) is None
    assert against_chance([1, 2, 3, 4], [2, 1, 4, 3], measure="pearson", groups=[*"aabb"], seed=0) is None
    with pytest.raises(ValueError, match="chance"):
        against_chance([1, 2, 3], [1, 2, 3], measure="accuracy", seed=0)
