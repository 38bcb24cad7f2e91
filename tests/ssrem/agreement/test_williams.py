"""Williams' test: a published example, its null, and what it cannot test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.significance import williams, williams_t

RNG = np.random.default_rng(0)


def test_published_example() -> None:
    # The example of r.test in the R package psych, case A of Steiger 1980: t = -0.89, p < 0.37 (two-sided, cut).
    t = williams_t(0.4, 0.5, 0.1, 103)
    assert t == pytest.approx(-0.89, abs=0.005)
    assert 2 * stats.t.sf(abs(t), 100) == pytest.approx(0.375, abs=0.005)


def test_it_is_the_formula_with_the_determinant() -> None:
    rows = RNG.multivariate_normal([0, 0, 0], [[1, 0.3, 0.6], [0.3, 1, 0.4], [0.6, 0.4, 1]], 50)
    r = np.corrcoef(rows.T)
    spread = 2 * np.linalg.det(r) * 49 / 47 + ((r[0, 2] + r[1, 2]) / 2) ** 2 * (1 - r[0, 1]) ** 3
    t = (r[0, 2] - r[1, 2]) * np.sqrt(49 * (1 + r[0, 1]) / spread)
    result = williams(*rows.T)
    assert result.p == pytest.approx(2 * stats.t.sf(abs(t), 47))
    assert (result.first, result.second) == pytest.approx((r[0, 2], r[1, 2]))
    assert result.difference == pytest.approx(r[0, 2] - r[1, 2])
    greater = williams(*rows.T, sides="greater")
    assert greater.p == pytest.approx(stats.t.sf(t, 47))
    assert (result.sides, greater.sides, result.n, result.outcome) == ("two-sided", "greater", 50, "ok")


def test_sides_and_order() -> None:
    human = RNG.normal(size=40)
    good, bad = human + RNG.normal(size=40), human + 3 * RNG.normal(size=40)
    one, other = williams(good, bad, human), williams(bad, good, human)
    assert one.p == pytest.approx(other.p) and one.difference == pytest.approx(-other.difference)  # type: ignore[operator]
    sides = [williams(*pair, human, sides="greater").p for pair in ((good, bad), (bad, good))]
    assert sum(sides) == pytest.approx(1)  # type: ignore[arg-type]
    assert 2 * sides[0] == pytest.approx(one.p)  # type: ignore[operator]
    ranks = williams(np.exp(good), bad, human, measure="spearman")
    assert ranks.first == pytest.approx(stats.spearmanr(good, human).statistic)


def test_p_is_even_where_both_are_as_good() -> None:
    small = 0
    for _ in range(400):
        human, one, other = RNG.normal(size=(3, 40))
        small += williams(one + human, other + human, human).p < 0.05  # type: ignore[operator]
    assert 8 <= small <= 34  # 20 expected, standard deviation 4.4


def test_what_cannot_be_tested_says_why_and_p_never_is_zero() -> None:
    human = np.arange(30.0)
    noise = RNG.normal(size=30)
    same = williams(noise, 2 * noise + 1, human)
    assert (same.outcome, same.p, same.difference) == ("degenerate", None, pytest.approx(0))
    assert williams(np.ones(30), noise, human).reason == "the first evaluator's scores are all the same"
    assert williams(noise, np.ones(30), human).outcome == "constant"
    assert williams(noise, human, np.ones(30)).reason == "the human scores are all the same"
    few = williams([1, 2, 3, np.nan], [2, 1, 3, 4], [1, 2, 3, 4])
    assert (few.outcome, few.n, few.missing, few.first) == ("too_few", 3, 1, None)
    many = np.arange(5000.0)
    sure = williams(many + RNG.normal(size=5000), RNG.normal(size=5000), many)
    assert sure.p is not None and 0 < sure.p < 1e-300
