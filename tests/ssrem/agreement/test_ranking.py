"""Holm's correction, clusters of significance, and a whole table."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from ssrem.agreement.compare import holm, paired_bootstrap, perm_both, ranking, significance_clusters
from ssrem.agreement.correlate import View

RNG = np.random.default_rng(0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 12))
@settings(deadline=None)
def test_holm_is_that_of_statsmodels(p: list[float], gap: int) -> None:
    with patch("gc.collect"):  # which it calls, and which takes most of a second after many other tests
        expected = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(expected)
    untested: list[float | None] = [*p[:gap], None, *p[gap:]]  # no test does not count
    assert [one for one in holm(untested) if one is not None] == pytest.approx(expected)


def test_holm_of_nothing_and_of_no_p() -> None:
    assert (holm([]), holm([None])) == ([], [None])


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        ("ab ac ad bc bd cd", [1, 2, 3, 4]),
        ("ac ad bc bd", [1, 1, 2, 2]),
        (
            "ac ad bd",
            [1, 1, 1, 1],
        ),  # b and c are not told apart, so no line may run between them, nor elsewhere
        ("ab ac ad bd cd", [1, 2, 2, 3]),
        ("", [1, 1, 1, 1]),
    ],
)
def test_a_line_runs_where_all_above_beat_all_below(apart: str, expected: list[int]) -> None:
    significant = {tuple(pair) for pair in apart.split()}
    assert significance_clusters("abcd", lambda above, below: (above, below) in significant) == expected


def test_who_scored_few_does_not_decide_what_is_compared() -> None:
    human = RNG.normal(size=100)
    scores: dict[str, Any] = {name: human + RNG.normal(size=100) for name in ("one", "other", "few")}
    scores["few"][:40] = np.nan
    scores["other"][:5] = np.nan
    table = ranking(scores, partial(perm_both, human=human, permutations=49, seed=0))
    (pair,) = table.compared
    assert {pair.better, pair.worse} == {"one", "other"} and pair.difference.n == 95
    last = table.ranked[-1]
    assert (last.evaluator, last.statistic, last.reason) == (
        "few",
        None,
        "it scored 60 responses, another evaluator 100",
    )


def test_a_table() -> None:
    human = RNG.normal(size=300)
    scores: dict[str, Any] = {
        "bad": RNG.normal(size=300),
        "best": human + 0.3 * RNG.normal(size=300),
        "constant": np.ones(300),
        "good": human + 1.0 * RNG.normal(size=300),
        "as good": human + 1.0 * RNG.normal(size=300),
    }
    scores["bad"][0] = np.nan
    table = ranking(scores, partial(perm_both, human=human, measure="pearson", permutations=499, seed=0))
    assert [one.evaluator for one in table.ranked][0::3] == ["best", "bad"]
    assert [one.cluster for one in table.ranked] == [1, 2, 2, 3, None]
    assert table.ranked[-1].evaluator == "constant"
    assert table.ranked[-1].reason == "its scores are all the same"
    assert len(table.compared) == 6
    assert all(pair.difference.n == 299 and pair.difference.difference >= 0 for pair in table.compared)  # type: ignore[operator]
    assert holm([pair.difference.p for pair in table.compared]) == [pair.corrected for pair in table.compared]
    reached = {one.evaluator: one.statistic for one in table.ranked}
    for pair in table.compared:
        assert (pair.difference.first, pair.difference.second) == pytest.approx(
            (reached[pair.better], reached[pair.worse])
        )


def test_intervals_turn_with_the_pair() -> None:
    human = RNG.normal(size=60)
    scores = {"a": human + RNG.normal(0, 3, 60), "b": human + RNG.normal(0, 0.5, 60)}
    test = partial(paired_bootstrap, human=human, contexts=np.arange(60), view=View(), resamples=200, seed=0)
    (pair,) = ranking(scores, test).compared
    straight = test(scores["b"], scores["a"])
    assert (pair.better, pair.worse) == ("b", "a")
    assert (pair.difference.low, pair.difference.high) == pytest.approx((straight.low, straight.high))
    assert pair.difference.difference == straight.difference


def test_a_table_of_what_cannot_be_told_apart() -> None:
    human = RNG.normal(size=30)
    noise = human + RNG.normal(size=30)
    same = ranking({"a": noise, "b": noise + 1}, partial(perm_both, human=human, seed=0))
    assert [one.cluster for one in same.ranked] == [1, 1]
    assert same.compared[0].corrected == 1
    alone = ranking({"a": noise}, partial(perm_both, human=human, seed=0))
    assert alone.ranked[0].cluster is None and "no other" in alone.ranked[0].reason
    few = ranking({"a": noise[:2], "b": human[:2]}, partial(perm_both, human=human[:2], seed=0))
    assert few.compared == () and "2 responses" in few.ranked[0].reason
