"""Correlations against hand-checked tables and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.correlate import kendall, pearson, regression_line, spearman

X = [1.0, 2.0, 3.0, 4.0, 5.0]
Y = [2.0, 1.0, 4.0, 3.0, 5.0]


def test_tiny_table_by_hand() -> None:
    # Two neighbouring swaps: Σd² = 4, so ρ = 1 - 6·4 / (5·24) = .8; 8 of 10 pairs agree, so τ = (8 - 2) / 10.
    assert pearson(X, Y).statistic == pytest.approx(0.8)
    assert spearman(X, Y).statistic == pytest.approx(0.8)
    assert kendall(X, Y).statistic == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("values", "p"), [([1, 2, 3], 1 / 3), ([1, 2, 3, 4], 1 / 12), ([1, 1, 2, 2], 1 / 3), (range(60), 0)]
)
def test_a_perfect_rank_correlation_of_few_pairs_may_be_chance(values: list[float], p: float) -> None:
    for sign in (1, -1):
        correlation = spearman(np.array(values), sign * np.array(values))
        assert correlation.statistic == sign
        assert correlation.p == pytest.approx(p)
        assert correlation.p > 0


def test_intervals() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=40)
    y = x + generator.normal(size=40)
    interval = stats.pearsonr(x, y).confidence_interval(0.95)
    correlation = pearson(x, y)
    assert (correlation.low, correlation.high) == pytest.approx((interval.low, interval.high))

    rho = spearman(x, y)
    error = math.sqrt((1 + rho.statistic**2 / 2) / 37)
    assert rho.low == pytest.approx(math.tanh(math.atanh(rho.statistic) - 1.959964 * error), abs=1e-6)
    tau = kendall(x, y)
    assert tau.high == pytest.approx(
        math.tanh(math.atanh(tau.statistic) + 1.959964 * math.sqrt(0.437 / 36)), abs=1e-6
    )


@pytest.mark.parametrize("correlate", [pearson, spearman, kendall])
def test_constant_and_too_few_give_no_figures(correlate) -> None:  # type: ignore[no-untyped-def]
    constant = correlate([1, 1, 1, 1], [1, 2, 3, 4])
    assert (constant.outcome, constant.statistic, constant.p, constant.n) == ("constant", None, None, 4)
    few = correlate([1, 2], [1, 2])
    assert (few.outcome, few.statistic, few.n) == ("too_few", None, 2)


@pytest.mark.parametrize("correlate", [pearson, spearman, kendall, regression_line])
def test_nan_is_refused_and_counted(correlate) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="2 of 4 pairs"):
        correlate([1, math.nan, 3, 4], [1, 2, math.inf, 4])
    with pytest.raises(ValueError, match="same length"):
        correlate([1, 2, 3], [1, 2])


def test_p_never_is_zero_and_perfect_agreement_has_a_point_for_an_interval() -> None:
    x = np.arange(2000.0)
    for correlate in (pearson, spearman, kendall):
        correlation = correlate(x, 2 * x)
        assert correlation.statistic == pytest.approx(1)
        assert correlation.p is not None and 0 < correlation.p < 1e-100
        assert correlation.low is not None and correlation.low <= correlation.statistic <= correlation.high
    assert pearson([1, 2, 3], [1, 3, 2]).low is None


def test_regression_line() -> None:
    line = regression_line([0, 1, 2, 3], [1, 3, 5, 7])
    assert line == pytest.approx((2, 1))
    assert regression_line([2, 2], [1, 3]) is None
    generator = np.random.default_rng(2)
    x, y = generator.normal(size=(2, 50))
    expected = stats.linregress(x, y)
    fitted = regression_line(x, y)
    assert fitted == pytest.approx((expected.slope, expected.intercept))
