"""Filters of raters, and the noise ceiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.raters import (
    failed_checks,
    low_kappa,
    one_rater,
    split_half,
    without_outliers,
)

NAN = np.nan
RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=200)


def rated(noise: list[float]) -> Any:
    """Ratings from 1 to 5 by raters of such noise."""
    rows = [TRUTH + one * RNG.normal(size=200) for one in noise]
    return np.clip(np.round(np.array(rows) + 3), 1, 5)


NAMES, SCALE = [*"abcdef"], range(1, 6)
RATINGS = rated([0.5, 0.5, 0.6, 0.5, 0.6, 0.5])
RATINGS[3] = RNG.integers(1, 6, 200)  # answers blindly


def test_failed_checks() -> None:
    checks = {"a": [True, True, True], "b": [True, False, True], "c": [False, True, False], "f": []}
    strict = failed_checks(RATINGS, NAMES, checks)
    assert [one.rater for one in strict.dropped] == ["b", "c"]
    assert strict.dropped[0].reason == "passed 2 of 3 attention checks"
    assert strict.dropped[0].figure == pytest.approx(2 / 3)
    assert strict.unjudged == ("d", "e", "f")
    assert np.isnan(strict.ratings).all(axis=1).tolist() == [False, True, True, False, False, False]
    assert not np.isnan(RATINGS).any()  # what was given stays as it was
    mild = failed_checks(RATINGS, NAMES, checks, least=0.5)
    assert ([one.rater for one in mild.dropped], mild.name) == (["c"], "checks0.5")


def test_low_kappa() -> None:
    result = low_kappa(RATINGS, NAMES, bound=0.3, categories=SCALE)
    assert [one.rater for one in result.dropped] == ["d"]
    assert abs(result.dropped[0].figure) < 0.15
    assert "with 5 others, below 0.3" in result.dropped[0].reason
    assert (result.name, result.unjudged) == ("kappa0.3", ())
    assert np.isnan(result.ratings[3]).all() and (result.ratings[0] == RATINGS[0]).all()
    alone = RATINGS.copy()
    alone[0, 4:] = NAN  # four units are shared with others
    assert low_kappa(alone, NAMES, bound=0.3, categories=SCALE).unjudged == ("a",)


def test_filters_make_a_name() -> None:
    checks = failed_checks(RATINGS, NAMES, {"d": [False]}, least=0.75)
    then = low_kappa(checks.ratings, NAMES, bound=0.2, categories=SCALE)
    assert then.unjudged == ("d",)
    assert [checks.name, then.name] == ["checks0.75", "kappa0.2"]


def test_one_rater_against_the_others() -> None:
    table = RATINGS[:4].copy()
    table[0, :150] = NAN
    table[1:, 199] = NAN  # nobody else rated it
    expected = []
    for rater in range(4):
        others = np.delete(table, rater, axis=0)
        both = ~np.isnan(table[rater]) & (~np.isnan(others)).any(axis=0)
        mean = np.nanmean(others[:, both], axis=0)
        expected.append(stats.spearmanr(table[rater][both], mean).statistic)
    result = one_rater(table)
    assert result.value == pytest.approx(np.mean(expected))
    assert result.raters == 4


def test_one_rater_without_a_figure() -> None:
    assert one_rater([[1, 2, 3]]).outcome == "too_few"
    flat = one_rater([[1, 2, 3, 4], [2, 1, 4, 3], [3, 3, 3, 3]])
    assert flat.raters == 2
    assert one_rater(np.ones((3, 5))).value is None


@pytest.mark.parametrize("raters", [2, 3, 5, 8])
def test_reliability_is_that_of_the_model(raters: int) -> None:
    # Rating = truth + noise of the same size: one rating has reliability ½, the mean of k has k / (k + 1).
    draw = np.random.default_rng(raters)
    truth = draw.normal(size=1500)
    table = truth + draw.normal(size=(raters, 1500))
    result = split_half(table, seed=1)
    assert result.value is not None
    assert result.value**2 == pytest.approx(raters / (raters + 1), abs=0.03)
    assert result.value == pytest.approx(stats.spearmanr(truth, table.mean(axis=0)).statistic, abs=0.03)


def test_halves_of_crowds() -> None:
    # 30 people of whom three rated each unit: as reliable as three who rated all.
    draw = np.random.default_rng(0)
    full = draw.normal(size=600) + draw.normal(size=(3, 600))
    crowd = np.full((30, 600), NAN)
    for unit in range(600):
        crowd[draw.choice(30, 3, replace=False), unit] = full[:, unit]
    crowd[:, 0] = NAN
    result = split_half(crowd, seed=1)
    assert result.units == 599
    assert result.value == pytest.approx(split_half(full, seed=1).value, abs=0.02)
    assert result == split_half(crowd, seed=1)
    assert result != split_half(crowd, seed=2)


def test_halves_without_a_figure() -> None:
    assert split_half([[1, 2, NAN], [1, 2, 3]], seed=0).outcome == "too_few"
    assert split_half(np.full((2, 4), NAN), seed=0).units == 0
    assert split_half(np.ones((2, 9)), seed=0).outcome == "constant"
    against = split_half([np.arange(9.0), -np.arange(9.0)], seed=0)
    assert against.value is None and against.outcome in ("degenerate", "constant")


def test_outliers_are_removed_from_each_unit_by_itself() -> None:
    nan = float("nan")
    table = [[5, 1, nan, 3], [5, 2, nan, nan], [5, 2, nan, nan], [1, 5, nan, nan]]
    left = without_outliers(table)
    # 5 5 5 1: median 5, deviations 0 0 0 4, their median 0. 1 2 2 5: median 2, deviations 1 0 0 3, their median .5.
    expected = [[5, nan, nan, 3], [5, 2, nan, nan], [5, 2, nan, nan], [nan, nan, nan, nan]]
    np.testing.assert_array_equal(left, expected)
