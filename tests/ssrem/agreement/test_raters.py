"""Agreement among raters: the papers' own examples, and the libraries krippendorff, statsmodels and scikit-learn."""

from __future__ import annotations

from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from ssrem.agreement.raters import fleiss_kappa, krippendorff_alpha, rating_table, weighted_kappa

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
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]

tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, NAN]), min_size=raters, max_size=raters),
        min_size=2,
        max_size=8,
    )
)


@pytest.mark.parametrize(("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(scale: Any, value: float) -> None:
    agreement = krippendorff_alpha(OBSERVERS, scale)
    assert agreement.value == pytest.approx(value, abs=0.0005)
    assert (agreement.raters, agreement.units, agreement.outcome) == (4, 11, "ok")


@given(tables)
@settings(max_examples=60, deadline=None)
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
            assert agreement.value == pytest.approx(
                krippendorff.alpha(table, level_of_measurement=scale), abs=1e-9
            )


def table_of(counts: Any) -> Any:
    return np.array([np.repeat(np.arange(5.0), row) for row in counts]).T


def test_fleiss_example() -> None:
    agreement = fleiss_kappa(table_of(SUBJECTS))
    assert agreement.value == pytest.approx(0.210, abs=0.0005)
    assert agreement.value == pytest.approx(inter_rater.fleiss_kappa(SUBJECTS))
    assert (agreement.raters, agreement.units) == (14, 10)
    gap = np.full((14, 1), NAN)
    assert fleiss_kappa(np.hstack([table_of(SUBJECTS), gap])).value == agreement.value


def test_fleiss_without_a_value() -> None:
    assert fleiss_kappa(OBSERVERS).outcome == "uneven"
    assert fleiss_kappa(OBSERVERS).reason.startswith("units have 1 to 4 ratings")
    assert fleiss_kappa([[1, 2, NAN]]).outcome == "too_few"
    assert fleiss_kappa(np.full((3, 4), NAN)).outcome == "too_few"
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


def test_alpha_without_a_value_and_misuse() -> None:
    lonely = krippendorff_alpha([[1, NAN], [NAN, 2]], "ordinal")
    assert (lonely.value, lonely.outcome, lonely.reason) == (None, "too_few", "no unit has two ratings")
    assert krippendorff_alpha(np.ones((2, 3)), "interval").outcome == "constant"
    with pytest.raises(ValueError, match="not a table"):
        krippendorff_alpha([1, 2, 3], "nominal")
    with pytest.raises(ValueError, match="infinite"):
        krippendorff_alpha([[1, np.inf]], "nominal")


def test_a_table_of_rows() -> None:
    table, raters, units = rating_table(["b", "a", "b"], [7, 7, 9], [1, 2, 3])
    assert (raters, units) == (["a", "b"], ["7", "9"])
    np.testing.assert_array_equal(table, [[2, NAN], [1, 3]])
    with pytest.raises(ValueError, match="repeat the rating"):
        rating_table(["a", "a"], [1, 1], [1, 2])
    with pytest.raises(ValueError, match="do not fit"):
        rating_table(["a"], [1, 1], [1, 2])
