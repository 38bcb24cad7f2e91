"""Paired bootstrap: against SciPy's, and the decisions that it must come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.compare import compare_with_champion

RNG = np.random.default_rng(0)


def noisy(human: Any, noise: float) -> Any:
    return human + noise * RNG.normal(size=len(human))


def test_bound_of_a_mean_is_that_of_scipy() -> None:
    champion, challenger = RNG.random(400), RNG.random(400)
    comparison = compare_with_champion("set", champion, challenger, np.arange(400).astype(str), margin=0.01)
    theirs = stats.bootstrap(
        (challenger - champion,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        confidence_level=0.9,
        rng=np.random.default_rng(1),
    ).confidence_interval.low
    assert comparison.difference == pytest.approx(np.mean(challenger - champion))
    assert comparison.low == pytest.approx(theirs, abs=0.004)


def test_agreement_is_spearman_of_scipy() -> None:
    human = RNG.integers(1, 6, 300).astype(float)
    champion, challenger = noisy(human, 1), noisy(human, 2)
    comparison = compare_with_champion("set", champion, challenger, np.arange(300), human=human, margin=0.05)
    assert comparison.champion == pytest.approx(stats.spearmanr(champion, human).statistic)
    assert comparison.challenger == pytest.approx(stats.spearmanr(challenger, human).statistic)
    assert (
        comparison.low is not None
        and comparison.difference is not None
        and comparison.low < comparison.difference
    )
    assert comparison.not_worse is False


def test_the_same_scores_are_not_worse_and_better_ones_neither() -> None:
    human = RNG.integers(1, 6, 300).astype(float)
    champion = noisy(human, 3)
    same = compare_with_champion("set", champion, champion, np.arange(300), human=human, margin=0.0)
    assert (same.difference, same.low, same.not_worse) == (0.0, 0.0, True)
    better = compare_with_champion(
        "set", champion, noisy(human, 0.5), np.arange(300), human=human, margin=0.0
    )
    assert better.not_worse


def test_responses_of_one_group_are_drawn_together() -> None:
    groups = np.repeat(np.arange(20), 20)
    shift = np.repeat(RNG.normal(size=20), 20)  # each group's responses all differ by the same
    champion = np.zeros(400)
    alone = compare_with_champion("set", champion, shift, np.arange(400), margin=0.01)
    together = compare_with_champion("set", champion, shift, groups, margin=0.01)
    assert together.groups == 20 and together.n == 400
    assert together.difference == pytest.approx(alone.difference)
    assert together.low is not None and alone.low is not None
    spread = together.difference - together.low  # type: ignore[operator]
    assert spread > 3 * (alone.difference - alone.low)  # type: ignore[operator]


def test_the_order_of_rows_does_not_matter_to_figures_nor_the_seed_to_repeats() -> None:
    champion, challenger = RNG.random(100), RNG.random(100)
    groups = np.arange(100) // 4
    one = compare_with_champion("set", champion, challenger, groups, margin=0.01)
    assert one == compare_with_champion("set", champion, challenger, groups, margin=0.01)
    turned = compare_with_champion("set", champion[::-1], challenger[::-1], groups[::-1], margin=0.01)
    assert turned.low == pytest.approx(one.low)


CONSTANT, VARIED = np.ones(50), np.arange(50.0)


@pytest.mark.parametrize(
    ("champion", "challenger", "human", "not_worse", "says"),
    [
        (VARIED, CONSTANT, VARIED, False, "challenger's scores are constant"),
        (CONSTANT, VARIED, VARIED, None, "constant"),
        (VARIED, VARIED, CONSTANT, None, "people's, are constant"),
        (VARIED[:10], VARIED[:10], VARIED[:10], None, "too few to compare: 10 responses"),
    ],
)
def test_what_cannot_be_compared_says_so(
    champion: Any, challenger: Any, human: Any, not_worse: bool | None, says: str
) -> None:
    groups = np.arange(len(human))
    comparison = compare_with_champion("set", champion, challenger, groups, human=human, margin=0.05)
    assert comparison.not_worse is not_worse
    assert says in comparison.outcome
    assert comparison.low is None
