"""PERM-BOTH against all permutations, and its null."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.compare import perm_both
from ssrem.agreement.correlate import ScoredResponses, View, agreement_at

RNG = np.random.default_rng(0)
SYSTEMS = np.repeat(np.arange(5), 2)
HUMAN = RNG.integers(1, 6, 10) + 0.5 * SYSTEMS
FIRST, SECOND = HUMAN + RNG.normal(0, 1, 10), 7 * (HUMAN + RNG.normal(0, 3, 10))


def exact(agreement: Any) -> float:
    """Share of all 2^10 swaps that are at least as extreme, of standardised scores."""
    a, b = stats.zscore(FIRST), stats.zscore(SECOND)
    swaps = product([False, True], repeat=10)
    agreements = np.array([agreement(np.where(swap, b, a)) for swap in swaps])
    null = agreements - agreements[::-1]  # in this order, the last undoes the first
    return float((abs(null) >= abs(null[0]) - 1e-9).mean())


def pooled(x: Any) -> float:
    return float(np.corrcoef(x, HUMAN)[0, 1])


def by_means(x: Any) -> float:
    return float(np.corrcoef(x.reshape(5, 2).mean(axis=1), HUMAN.reshape(5, 2).mean(axis=1))[0, 1])


@pytest.mark.parametrize(
    ("agreement", "settings"),
    [
        (pooled, {}),
        (by_means, {"level": "system", "systems": SYSTEMS}),
    ],
)
def test_it_is_all_permutations(agreement: Any, settings: Any) -> None:
    result = perm_both(FIRST, SECOND, HUMAN, measure="pearson", permutations=5000, seed=0, **settings)
    assert result.p == pytest.approx(exact(agreement), abs=0.025)
    assert result.first == pytest.approx(agreement(FIRST))
    assert result.second == pytest.approx(agreement(SECOND))
    assert (result.resamples, result.seed) == (5000, 0)


def test_means_that_differ_by_rounding_are_tied() -> None:
    draw = np.random.default_rng(1)
    systems = np.repeat(np.arange(6), 5)
    human = draw.integers(3, 16, 30) / 3
    first, second = draw.random(30), human + draw.normal(size=30)
    human[:10] = np.tile(human[:5], 2)[[0, 1, 2, 3, 4, 9, 7, 8, 5, 6]]  # two systems with the same sum
    result = perm_both(first, second, human, level="system", systems=systems, permutations=9, seed=0)
    whole = agreement_at(ScoredResponses(first, human, systems, systems), View(level="system"))
    assert result.first == pytest.approx(whole.statistic)


def test_ranks() -> None:
    result = perm_both(FIRST, SECOND, HUMAN, measure="kendall", permutations=4000, seed=0)
    expected = exact(lambda x: stats.kendalltau(x, HUMAN).statistic)
    assert result.p == pytest.approx(expected, abs=0.03)


def test_p_never_is_zero_and_the_seed_repeats_it() -> None:
    human = np.arange(200.0)
    good, bad = human + RNG.normal(size=200), RNG.normal(size=200)
    result = perm_both(good, bad, human, permutations=499, seed=3)
    assert result.p == pytest.approx(1 / 500)
    assert result == perm_both(good, bad, human, permutations=499, seed=3)
    same = perm_both(good, good, human, permutations=499, seed=3)
    assert (same.difference, same.p) == (0.0, 1.0)


def test_p_is_even_where_both_are_as_good() -> None:
    small = 0
    for sample in range(150):
        human, one, other = RNG.normal(size=(3, 40))
        result = perm_both(one + human, other + human, human, permutations=199, seed=sample)
        small += result.p <= 0.05  # type: ignore[operator]
    assert 1 <= small <= 18  # 7.5 expected, standard deviation 2.7


def test_what_cannot_be_tested_says_why() -> None:
    def outcome(*scores: Any, **settings: Any) -> tuple[Any, ...]:
        result = perm_both(*scores, seed=0, permutations=50, **settings)
        assert result.p is None and result.first is None and result.reason
        return result.outcome, result.n, result.missing

    gap = np.where(np.arange(10) < 8, np.nan, FIRST)
    assert outcome(gap, SECOND, HUMAN) == ("too_few", 2, 8)
    assert outcome(np.ones(10), SECOND, HUMAN) == ("constant", 10, 0)
    few = SYSTEMS < 4
    at = {"level": "system", "systems": SYSTEMS[few]}
    assert outcome(FIRST[few], SECOND[few], HUMAN[few], **at)[0] == "too_few_systems"
    with pytest.raises(ValueError, match="paired bootstrap"):
        perm_both(FIRST, SECOND, HUMAN, measure="accuracy", seed=0)
    with pytest.raises(ValueError, match="needs the system"):
        perm_both(FIRST, SECOND, HUMAN, level="system", seed=0)
    assert perm_both(FIRST, SECOND, HUMAN, measure="accuracy", level="system", systems=SYSTEMS, seed=0).p
