"""Coefficients of many resamples at once are those of SciPy, one resample at a time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement import correlate
from ssrem.agreement.correlate import MEASURES, ROW_COEFFICIENTS, accuracy_rows
from ssrem.agreement.resample import weighted_coefficient

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
    computed = weighted_coefficient(measure, x, y, np.arange(len(x)))(weights)
    for row, value in zip(weights.astype(int), computed, strict=True):
        expected = SCIPY[measure](np.repeat(x, row), np.repeat(y, row)).statistic
        assert value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("tied", [True, False])
def test_accuracy_under_weights_counts_pairs_of_different_responses(tied: bool) -> None:
    y = RNG.integers(0, 7, 30).astype(float)
    x = np.round(RNG.normal(size=30), 1) if tied else RNG.normal(size=30)
    weights = RNG.integers(0, 3, (8, 30)).astype(float)
    pairs = list(combinations(range(30), 2))
    differences = sorted(abs(x[i] - x[j]) for i, j in pairs)
    for epsilon in (0.0, 0.7, differences[40], differences[200], differences[-1]):
        agreeing = np.array([accuracy(x[[i, j]], y[[i, j]], epsilon) for i, j in pairs])
        computed = weighted_coefficient("accuracy", x, y, np.arange(30), epsilon)(weights)
        for row, value in zip(weights, computed, strict=True):
            weight = np.array([row[i] * row[j] for i, j in pairs])
            assert value == pytest.approx((weight * agreeing).sum() / weight.sum(), abs=1e-12)


def test_blocks_of_rows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = RNG.normal(size=(5, 30)), RNG.normal(size=30)
    for measure in MEASURES:
        whole = ROW_COEFFICIENTS[measure](x, y)
        with monkeypatch.context() as patch:
            patch.setattr(correlate, "_BLOCK", 100)
            assert ROW_COEFFICIENTS[measure](x, y) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_a_resample_that_does_not_vary_has_no_figure(measure: Any) -> None:
    x, y = np.array([1e6 + 0.1, 1e6 + 0.1, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 3.0])
    weights = np.array([[2.0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 4], [1, 1, 1, 1]])
    computed = weighted_coefficient(measure, x, y, np.arange(len(x)))(weights)
    assert np.isnan(computed).tolist() == [True, True, True, False]
    rows = ROW_COEFFICIENTS[measure](np.array([[1.0, 1, 1], [1, 2, 3]]), np.array([2.0, 1, 4]))
    assert np.isnan(rows).tolist() == [True, False]


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("n", [7, 90])  # below and above where Kendall changes its way
def test_rows_are_those_of_scipy(measure: Any, n: int) -> None:
    x, y = np.round(RNG.normal(size=(6, n)), 1), RNG.integers(1, 6, n).astype(float)
    computed = ROW_COEFFICIENTS[measure](x, y)
    assert computed == pytest.approx([SCIPY[measure](row, y).statistic for row in x], abs=1e-12)


def test_rows_of_accuracy() -> None:
    x, y = RNG.integers(0, 4, (5, 9)).astype(float), RNG.integers(0, 4, (5, 9)).astype(float)
    assert accuracy_rows(x, y) == pytest.approx([accuracy(a, b) for a, b in zip(x, y, strict=True)])
