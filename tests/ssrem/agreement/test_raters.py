"""Agreement among raters by the papers' examples and three libraries; filters of raters, and the noise ceiling."""

from __future__ import annotations

from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from ssrem.agreement.raters import (
    failed_checks,
    fleiss_kappa,
    krippendorff_alpha,
    low_kappa,
    one_rater,
    rating_table,
    reliability_figures,
    split_half,
    weighted_kappa,
    without_outliers,
)

NAN = np.nan
RNG = np.random.default_rng(0)

# Krippendorff 2011, section C: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)

# Fleiss 1971's layout: counts of five categories by fourteen raters for ten subjects; κ = .210.
SUBJECTS = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]

tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, NAN]), min_size=raters, max_size=raters),
        min_size=2,
        max_size=8,
    )
)


def test_krippendorffs_own_example_and_what_has_no_alpha() -> None:
    scales: dict[Any, float] = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}
    for scale, value in scales.items():
        agreement = krippendorff_alpha(OBSERVERS, scale)
        assert agreement.value == pytest.approx(value, abs=0.0005)
        assert (agreement.raters, agreement.units, agreement.outcome) == (4, 11, "ok")
    lonely = krippendorff_alpha([[1, NAN], [NAN, 2]], "ordinal")
    assert (lonely.value, lonely.outcome, lonely.reason) == (None, "too_few", "no unit has two ratings")
    assert krippendorff_alpha(np.ones((2, 3)), "interval").outcome == "constant"
    none: Any = "ratio"
    for table, scale, message in (
        ([1, 2, 3], "nominal", "not a table"),
        ([[1, np.inf]], "nominal", "infinite"),
        ([[1, 2], [1, 2]], none, "no scale 'ratio'; the scales are nominal, ordinal, interval"),
    ):
        with pytest.raises(ValueError, match=message):
            krippendorff_alpha(table, scale)


@given(tables)
@settings(max_examples=25, deadline=None)
def test_alpha_is_that_of_the_library(rows: Any) -> None:
    table = np.array(rows).T
    values = [column[~np.isnan(column)] for column in table.T if (~np.isnan(column)).sum() >= 2]
    for scale in ("nominal", "ordinal", "interval"):
        agreement = krippendorff_alpha(table, scale)  # type: ignore[arg-type]
        if not values:
            assert (agreement.outcome, agreement.value) == ("too_few", None)
        elif len(np.unique(np.concatenate(values))) == 1:
            assert (agreement.outcome, agreement.value) == ("constant", None)
        else:
            expected = krippendorff.alpha(table, level_of_measurement=scale)
            assert agreement.value == pytest.approx(expected, abs=1e-9)


def test_fleiss_example_and_what_has_no_kappa() -> None:
    table = np.array([np.repeat(np.arange(5.0), row) for row in SUBJECTS]).T
    agreement = fleiss_kappa(table)
    assert agreement.value == pytest.approx(0.210, abs=0.0005)
    assert agreement.value == pytest.approx(inter_rater.fleiss_kappa(SUBJECTS))
    assert (agreement.raters, agreement.units) == (14, 10)
    assert fleiss_kappa(np.hstack([table, np.full((14, 1), NAN)])).value == agreement.value
    uneven = fleiss_kappa(OBSERVERS)
    assert uneven.outcome == "uneven" and uneven.reason.startswith("units have 1 to 4 ratings")
    assert fleiss_kappa([[1, 2, NAN]]).outcome == fleiss_kappa(np.full((3, 4), NAN)).outcome == "too_few"
    assert fleiss_kappa(np.ones((3, 4))).outcome == "constant"


def test_weighted_kappa_is_scikit_learns() -> None:
    scale = np.arange(1.0, 6)
    for _ in range(20):
        first = RNG.integers(1, 6, 30).astype(float)
        second = np.clip(first + RNG.integers(-1, 2, 30), 1, 5)
        theirs = cohen_kappa_score(first, second, weights="quadratic", labels=scale)
        assert weighted_kappa(first, second, scale) == pytest.approx(theirs)
        gap = [*first, NAN, 3], [*second, 2, NAN]
        assert weighted_kappa(*gap, scale) == pytest.approx(theirs)
    assert weighted_kappa([NAN, 1], [1, NAN], scale) is None
    assert weighted_kappa([2, 2], [2, 2], scale) is None
    assert weighted_kappa([1, 1], [2, 2], scale) == 0


def test_steps_of_weighted_kappa_are_those_of_the_scale_whether_all_were_given() -> None:
    first, second = [1.0, 2, 5, 1, 5, 2], [1.0, 5, 5, 2, 5, 1]
    theirs = cohen_kappa_score(first, second, weights="quadratic", labels=range(1, 6))
    *_, ours = reliability_figures(np.array([first, second]))
    assert (ours.measure, ours.value) == ("weighted_kappa", pytest.approx(theirs))


def test_a_table_of_rows() -> None:
    table, raters, units = rating_table(["b", "a", "b"], [7, 7, 9], [1, 2, 3])
    assert (raters, units) == (["a", "b"], ["7", "9"])
    np.testing.assert_array_equal(table, [[2, NAN], [1, 3]])
    wrong = ((["a", "a"], "repeat the rating"), (["a"], "do not fit"), (["a", NAN], "raters are None or NaN"))
    for who, message in wrong:
        with pytest.raises(ValueError, match=message):
            rating_table(who, [1, 1], [1, 2])


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
    checks = failed_checks(RATINGS, NAMES, {"d": [False]}, least=0.75)
    then = low_kappa(checks.ratings, NAMES, bound=0.2, categories=SCALE)
    assert ([checks.name, then.name], then.unjudged) == (["checks0.75", "kappa0.2"], ("d",))


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
    assert (result.value, result.raters) == (pytest.approx(np.mean(expected)), 4)
    assert one_rater([[1, 2, 3]]).outcome == "too_few"
    assert one_rater([[1, 2, 3, 4], [2, 1, 4, 3], [3, 3, 3, 3]]).raters == 2
    assert one_rater(np.ones((3, 5))).value is None


@pytest.mark.parametrize("raters", [2, 3, 8])
def test_reliability_is_that_of_the_model(raters: int) -> None:
    # Rating = truth + noise of the same size: one rating has reliability ½, the mean of k has k / (k + 1).
    draw = np.random.default_rng(raters)
    truth = draw.normal(size=1500)
    table = truth + draw.normal(size=(raters, 1500))
    result = split_half(table, seed=1)
    assert result.value is not None
    assert result.value**2 == pytest.approx(raters / (raters + 1), abs=0.03)
    assert result.value == pytest.approx(stats.spearmanr(truth, table.mean(axis=0)).statistic, abs=0.03)


def test_halves_of_crowds_and_halves_without_a_figure() -> None:
    # 30 people of whom three rated each unit: as reliable as three who rated all.
    draw = np.random.default_rng(0)
    full = draw.normal(size=600) + draw.normal(size=(3, 600))
    crowd = np.full((30, 600), NAN)
    for unit in range(1, 600):
        crowd[draw.choice(30, 3, replace=False), unit] = full[:, unit]
    result = split_half(crowd, seed=1)
    assert (result.units, result.value) == (599, pytest.approx(split_half(full, seed=1).value, abs=0.02))
    assert split_half(crowd, seed=2) != result == split_half(crowd, seed=1)
    assert split_half([[1, 2, NAN], [1, 2, 3]], seed=0).outcome == "too_few"
    assert split_half(np.full((2, 4), NAN), seed=0).units == 0
    assert split_half(np.ones((2, 9)), seed=0).outcome == "constant"
    against = split_half([np.arange(9.0), -np.arange(9.0)], seed=0)
    assert against.value is None and against.outcome in ("degenerate", "constant")


def test_outliers_are_removed_from_each_unit_by_itself() -> None:
    table = [[5, 1, NAN, 3], [5, 2, NAN, NAN], [5, 2, NAN, NAN], [1, 5, NAN, NAN]]
    # 5 5 5 1: median 5, deviations 0 0 0 4, their median 0. 1 2 2 5: median 2, deviations 1 0 0 3, their median .5.
    expected = [[5, NAN, NAN, 3], [5, 2, NAN, NAN], [5, 2, NAN, NAN], [NAN] * 4]
    np.testing.assert_array_equal(without_outliers(table), expected)
