"""Coefficients of many resamples at once are those of SciPy, one resample at a time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement import coefficients
from ssrem.agreement.coefficients import (
    accuracy_rows,
    row_coefficients,
    weighted_accuracy,
    weighted_coefficients,
)
from ssrem.agreement.inputs import MEASURES

RNG = np.random.default_rng(0)
SCIPY: dict[str, Any] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}


def accuracy(x: Any, y: Any, epsilon: float = 0.0) -> float:
    """Brute force over pairs."""
    agreeing = [
        (0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j])) == np.sign(y[i] - y[j])
        for i, j in combinations(range(len(x)), 2)
    ]
    return float(np.mean(agreeing))


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_weighting_is_the_data_repeated(measure: Any, tied: bool) -> None:
    y = RNG.integers(1, 6, 40).astype(float)
    x = np.round(y + RNG.normal(0, 2, 40)) if tied else y + RNG.normal(0, 2, 40)
    weights = RNG.integers(0, 4, (20, 40)).astype(float)
    computed = weighted_coefficients(measure)(weights, x, y)
    for row, value in zip(weights.astype(int), computed, strict=True):
        expected = SCIPY[measure](np.repeat(x, row), np.repeat(y, row)).statistic
        assert value == pytest.approx(expected, abs=1e-10)


def test_accuracy_under_weights_counts_pairs_of_different_responses() -> None:
    x, y = RNG.normal(size=12), RNG.integers(0, 3, 12).astype(float)
    weights = RNG.integers(0, 3, (8, 12)).astype(float)
    for epsilon in (0.0, 0.7):
        computed = weighted_accuracy(weights, x, y, epsilon)
        for row, value in zip(weights, computed, strict=True):
            pairs = [(i, j) for i, j in combinations(range(12), 2)]
            weight = np.array([row[i] * row[j] for i, j in pairs])
            agreeing = np.array([accuracy(x[[i, j]], y[[i, j]], epsilon) for i, j in pairs])
            assert value == pytest.approx((weight * agreeing).sum() / weight.sum())


@pytest.mark.parametrize("measure", MEASURES)
def test_blocks_of_pairs_make_no_difference(measure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = RNG.normal(size=(2, 30))
    weights = RNG.integers(0, 3, (5, 30)).astype(float)
    whole = weighted_coefficients(measure)(weights, x, y), row_coefficients(measure)(weights, y)
    monkeypatch.setattr(coefficients, "_BLOCK", 100)
    assert weighted_coefficients(measure)(weights, x, y) == pytest.approx(whole[0], abs=1e-12)
    assert row_coefficients(measure)(weights, y) == pytest.approx(whole[1], abs=1e-12)


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_a_resample_that_does_not_vary_has_no_figure(measure: Any) -> None:
    x, y = np.array([1e6 + 0.1, 1e6 + 0.1, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 3.0])
    weights = np.array([[2.0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 4], [1, 1, 1, 1]])
    computed = weighted_coefficients(measure)(weights, x, y)
    assert np.isnan(computed).tolist() == [True, True, True, False]
    rows = row_coefficients(measure)(np.array([[1.0, 1, 1], [1, 2, 3]]), np.array([2.0, 1, 4]))
    assert np.isnan(rows).tolist() == [True, False]


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("n", [7, 90])  # below and above where Kendall changes its way
def test_rows_are_those_of_scipy(measure: Any, n: int) -> None:
    x, y = np.round(RNG.normal(size=(6, n)), 1), RNG.integers(1, 6, n).astype(float)
    computed = row_coefficients(measure)(x, y)
    assert computed == pytest.approx([SCIPY[measure](row, y).statistic for row in x], abs=1e-12)


def test_rows_of_accuracy() -> None:
    x, y = RNG.integers(0, 4, (5, 9)).astype(float), RNG.integers(0, 4, (5, 9)).astype(float)
    assert accuracy_rows(x, y) == pytest.approx([accuracy(a, b) for a, b in zip(x, y, strict=True)])
