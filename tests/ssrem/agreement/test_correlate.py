"""Coefficients by hand, of SciPy and of brute force; at segment level with its groups and ties, and at system level."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ssrem.agreement.correlate import (
    MEASURES,
    MIN_SYSTEMS,
    ROW_COEFFICIENTS,
    Figure,
    ScoredResponses,
    View,
    accuracy_rows,
    agreement_at,
    calibrated_accuracy,
    kendall,
    pearson,
    regression_line,
    spearman,
)
from ssrem.agreement.resample import by_group, weighted_coefficient, weighted_statistic

NAN = np.nan
RNG = np.random.default_rng(0)
SCIPY: dict[str, Any] = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


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
    y = RNG.integers(0, 7, 20).astype(float)
    x = np.round(RNG.normal(size=20), 1) if tied else RNG.normal(size=20)
    weights = RNG.integers(0, 3, (8, 20)).astype(float)
    first, second = np.array(list(combinations(range(20), 2))).T
    differences = np.sort(abs(x[first] - x[second]))
    for epsilon in (0.0, 0.7, differences[40], differences[100], differences[-1]):
        agreeing = [accuracy(x[[i, j]], y[[i, j]], epsilon) for i, j in zip(first, second, strict=True)]
        weight = weights[:, first] * weights[:, second]
        computed = weighted_coefficient("accuracy", x, y, np.arange(20), epsilon)(weights)
        assert computed == pytest.approx(weight @ np.array(agreeing) / weight.sum(axis=1), abs=1e-12)


def test_rows_of_accuracy_and_that_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = RNG.integers(0, 4, (5, 9)).astype(float), RNG.integers(0, 4, (5, 9)).astype(float)
    assert accuracy_rows(x, y) == pytest.approx([accuracy(a, b) for a, b in zip(x, y, strict=True)])
    x, y = RNG.normal(size=(5, 30)), RNG.normal(size=30)
    whole = {measure: ROW_COEFFICIENTS[measure](x, y) for measure in MEASURES}
    monkeypatch.setattr("ssrem.agreement.correlate._BLOCK", 100)
    for measure in MEASURES:
        assert ROW_COEFFICIENTS[measure](x, y) == pytest.approx(whole[measure], abs=1e-12)


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_a_resample_that_does_not_vary_has_no_figure(measure: Any) -> None:
    x, y = np.array([1e6 + 0.1, 1e6 + 0.1, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 3.0])
    weights = np.array([[2.0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 4], [1, 1, 1, 1]])
    computed = weighted_coefficient(measure, x, y, np.arange(4))(weights)
    assert np.isnan(computed).tolist() == [True, True, True, False]
    x = np.array([2e6, 1.0, 2.0, 4.0])  # an outlier takes no figure from resamples without it
    assert weighted_coefficient(measure, x, y, np.arange(4))(np.array([[0.0, 1, 1, 1]]))[0] > 0.7
    rows = ROW_COEFFICIENTS[measure](np.array([[1.0, 1, 1], [1, 2, 3]]), np.array([2.0, 1, 4]))
    assert np.isnan(rows).tolist() == [True, False]


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("n", [7, 90])  # below and above where Kendall changes its way
def test_rows_are_those_of_scipy(measure: Any, n: int) -> None:
    x, y = np.round(RNG.normal(size=(6, n)), 1), RNG.integers(1, 6, n).astype(float)
    computed = ROW_COEFFICIENTS[measure](x, y)
    assert computed == pytest.approx([SCIPY[measure](row, y).statistic for row in x], abs=1e-12)


def test_tiny_table_by_hand_and_a_perfect_correlation_of_few_pairs_may_be_chance() -> None:
    # Two neighbouring swaps: Σd² = 4, so ρ = 1 - 6·4 / (5·24) = .8; 8 of 10 pairs agree, so τ = (8 - 2) / 10.
    for coefficient, expected in ((pearson, 0.8), (spearman, 0.8), (kendall, 0.6)):
        assert coefficient([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).statistic == pytest.approx(expected)
    perfect = (
        ([1, 2, 3], 1 / 3),
        ([1, 2, 3, 4], 1 / 12),
        ([1, 1, 2, 2], 1 / 3),
        ([1, 1, 2], 1 / 3),
        (range(60), 0),
    )
    for values, p in perfect:
        for sign in (1, -1):
            correlation: Any = spearman(np.array(values), sign * np.array(values))
            assert (correlation.statistic, correlation.p) == (sign, pytest.approx(p)) and correlation.p > 0


def test_intervals_and_the_regression_line() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=40)
    y = x + generator.normal(size=40)
    interval = stats.pearsonr(x, y).confidence_interval(0.95)
    correlation, rho, tau = pearson(x, y), spearman(x, y), kendall(x, y)
    assert (correlation.low, correlation.high) == pytest.approx((interval.low, interval.high))
    half = 1.959964 * math.sqrt((1 + rho.statistic**2 / 2) / 37)
    assert rho.low == pytest.approx(math.tanh(math.atanh(rho.statistic) - half), abs=1e-6)
    half = 1.959964 * math.sqrt(0.437 / 36)
    assert tau.high == pytest.approx(math.tanh(math.atanh(tau.statistic) + half), abs=1e-6)
    assert regression_line([0, 1, 2, 3], [1, 3, 5, 7]) == pytest.approx((2, 1))
    assert regression_line([2, 2], [1, 3]) is None
    x, y = np.random.default_rng(2).normal(size=(2, 50))
    expected = stats.linregress(x, y)
    assert regression_line(x, y) == pytest.approx((expected.slope, expected.intercept))


@pytest.mark.parametrize("correlate", [pearson, spearman, kendall, regression_line])
def test_nan_is_refused_and_counted(correlate: Any) -> None:
    with pytest.raises(ValueError, match="2 of 4 pairs"):
        correlate([1, math.nan, 3, 4], [1, 2, math.inf, 4])
    with pytest.raises(ValueError, match="same length"):
        correlate([1, 2, 3], [1, 2])


def test_perfect_agreement_has_a_p_and_a_point_for_an_interval_and_constants_have_no_figures() -> None:
    x = np.arange(2000.0)
    for coefficient in (pearson, spearman, kendall):
        found: Any = coefficient(x, 2 * x)
        assert found.statistic == pytest.approx(1) and 0 < found.p < 1e-100
        assert found.low <= found.statistic <= found.high
        constant, few = coefficient([1, 1, 1, 1], [1, 2, 3, 4]), coefficient([1, 2], [1, 2])
        assert (constant.outcome, constant.statistic, constant.p, constant.n) == ("constant", None, None, 4)
        assert (few.outcome, few.statistic, few.n) == ("too_few", None, 2)
        assert "on one side" in constant.reason and few.reason == "2 pairs; 3 are needed"
    assert pearson([1, 2, 3], [1, 3, 2]).low is None and pearson([1, 2, 3], [1, 3, 2]).reason


of_one = st.tuples(st.integers(-20, 20), st.integers(1, 5), st.integers(0, 2))


def at_segments(scores: Any, human: Any, measure: Any, grouping: Any = "pooled", groups: Any = None) -> Any:
    """At segment level; groups: the labels of the grouping."""
    labels: dict[str, Any] = {"contexts": ()}
    if grouping != "pooled":
        labels = {"contexts": np.zeros(len(scores)), f"{grouping}s": groups}
    return agreement_at(ScoredResponses(scores, human, **labels), View(measure, "segment", grouping))


def best_accuracy(x: Any, y: Any, groups: Any) -> tuple[float, float]:
    """Every ε tried by brute force: the highest mean accuracy, and the smallest ε that has it."""
    pairs = [(i, j) for i, j in combinations(range(len(x)), 2) if groups[i] == groups[j]]
    tried = {}
    for epsilon in sorted({0.0, *(abs(x[i] - x[j]) for i, j in pairs)}):
        shares: dict[Any, list[bool]] = {}
        for i, j in pairs:
            by_score = 0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j])
            shares.setdefault(groups[i], []).append(by_score == np.sign(y[i] - y[j]))
        tried[epsilon] = round(float(np.mean([np.mean(share) for share in shares.values()])), 10)
    best = max(tried.values())
    return best, min(epsilon for epsilon, value in tried.items() if value == best)


def test_ties_by_hand_and_by_group_with_one_epsilon() -> None:
    # People tie the first three. At ε = 4 the scores tie (0, 2) and (2, 6), which agrees, and (6, 8), which does not;
    # (0, 8) and (2, 8) are ordered as people order them and (0, 6) is not: 4 of 6.
    scores = np.array([0.0, 2, 6, 8])
    assert calibrated_accuracy(scores, np.array([1.0, 1, 1, 4])) == (pytest.approx(4 / 6), 4.0, 1)
    assert calibrated_accuracy(scores, np.array([1.0, 2, 3, 4])) == (1.0, 0.0, 1)
    x, y = np.array([1.0, 1.1, 5, 2, 2.1, 2.2, 9]), np.array([1.0, 1, 2, 3, 3, 3, 1])
    agreement = at_segments(x, y, measure="accuracy", grouping="context", groups=[*"aaabbbc"])
    assert (agreement.statistic, agreement.groups, agreement.n, agreement.p) == (1.0, 2, 6, None)
    assert agreement.epsilon == pytest.approx(0.2)


@given(st.lists(of_one, min_size=4, max_size=18))
@settings(max_examples=30, deadline=None)
def test_ties_are_calibrated_as_trying_every_epsilon_does(drawn: list[tuple[int, int, int]]) -> None:
    x, y, groups = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    agreement = calibrated_accuracy(x, y, groups.astype(np.int64))
    if agreement is None:
        assert all((groups == group).sum() < 2 for group in groups)
    else:
        accuracy, epsilon = best_accuracy(x, y, groups)
        assert agreement[:2] == (pytest.approx(accuracy, abs=1e-9), epsilon)


def test_pooled_is_scipy_with_its_p() -> None:
    y = RNG.integers(1, 6, 80).astype(float)
    x = y + RNG.normal(0, 2, 80)
    for measure, coefficient in SCIPY.items():
        agreement, expected = at_segments(x, y, measure=measure), coefficient(x, y)
        assert (agreement.statistic, agreement.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert (agreement.n, agreement.groups, agreement.outcome) == (80, 1, "ok")


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_groups_are_averaged_and_those_too_small_for_a_coefficient_left_out(measure: Any) -> None:
    x = np.array([1.0, 2, 3, 4, 9, 1, 5, 5, 5, 2, 7, NAN, 3, 1, 2])
    y = np.array([1.0, 3, 2, 4, 1, 2, 1, 2, 3, 1, 2, 5, 4, 4, 4])
    by_system = at_segments(x, y, measure=measure, grouping="system", groups=[*"aaaabbcccdddeee"])
    assert by_system.statistic == pytest.approx(at_segments(x[:4], y[:4], measure=measure).statistic)
    assert (by_system.groups, by_system.n, by_system.missing, by_system.p) == (1, 4, 1, None)
    two = {"grouping": "context", "groups": [0] * 4 + [1] * 4}
    both = at_segments([*x[:4], *x[:4]], [*y[:4], *-y[:4]], measure=measure, **two)
    assert (both.statistic, both.groups, both.n) == (pytest.approx(0), 2, 8)
    # They are in no resample either.
    draw, rows = np.random.default_rng(0), np.arange(12)
    x, y, weights = draw.normal(size=12), draw.normal(size=12), draw.integers(0, 3, (50, 12)).astype(float)
    groups = np.array([0] * 5 + [1] * 5 + [2] * 2)
    enough = groups < 2
    expected = by_group(x[enough], y[enough], groups[enough], rows[enough], measure)(weights)
    assert by_group(x, y, groups, rows, measure)(weights) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("grouping", ["pooled", "system", "context"])
def test_what_has_no_figure_says_why(measure: Any, grouping: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def agreement(x: Any, y: Any, groups: str) -> tuple[Any, Any, str]:
        one = at_segments(x, y, measure=measure, grouping=grouping, groups=[*groups])
        assert one.p is None and one.epsilon is None
        return one.statistic, one.outcome, one.reason

    assert agreement([1, 1, 1], [1, 2, 3], "aaa") == (None, "constant", "the scores are all the same")
    assert agreement([1, 2, 3], [1, 1, 1], "aaa")[2] == "the human scores are all the same"
    assert agreement([1, 2, NAN], [1, 2, 3], "aaa")[:2] == agreement([], [], "")[:2] == (None, "too_few")
    if grouping != "pooled":
        assert agreement([1, 2, 3], [1, 2, 3], "abc")[:2] == (None, "too_few")
    if measure == "accuracy":
        monkeypatch.setattr("ssrem.agreement.correlate.MAX_PAIRS", 2)
        assert agreement([1, 2, 3], [1, 2, 3], "aaa")[1] == "too_many"


def test_misuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for scores, how, message in (
        ([1, np.inf, 2], {"measure": "accuracy"}, "infinity"),
        ([1, 2], {"measure": "pearson"}, "one length"),
        ([1, 2, 3], {"grouping": "system"}, "needs the system"),
        ([1, 2, 3], {"grouping": "context", "groups": [1, 2]}, "2 contexts do not fit 3"),
        ([1, 2, 3], {"grouping": "system", "groups": ["a", None, "a"]}, "systems are None"),
    ):
        with pytest.raises(ValueError, match=message):
            at_segments(scores, [1, 2, 3], **{"measure": "pearson", **how})
    monkeypatch.setattr("ssrem.agreement.correlate.MAX_PAIRS", 2)
    with pytest.raises(ValueError, match="compare by context"):
        calibrated_accuracy(np.arange(3.0), np.arange(3.0))


SYSTEMS, CONTEXTS = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
HUMAN = RNG.integers(1, 6, 120) + 0.2 * SYSTEMS
SCORES = HUMAN + RNG.normal(0, 2, 120)


def at_systems(scores: Any, human: Any, systems: Any, *, measure: Any, force: bool = False) -> Figure:
    """At system level; every response has a context of its own."""
    responses = ScoredResponses(scores, human, np.arange(len(scores)), systems)
    return agreement_at(responses, View(measure, "system", force=force))


def means(values: Any) -> Any:
    return [values[system == SYSTEMS].mean() for system in range(6)]


def test_at_system_level_it_is_scipy_of_the_means_and_accuracy_a_share_of_pairs() -> None:
    for measure, coefficient in SCIPY.items():
        agreement = at_systems(SCORES, HUMAN, SYSTEMS, measure=measure)
        expected = coefficient(means(SCORES), means(HUMAN))
        assert (agreement.statistic, agreement.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert (agreement.groups, agreement.n, agreement.missing, agreement.forced) == (6, 120, 0, False)
    constant = at_systems(np.tile([1.0, 2.0], 60), HUMAN, SYSTEMS, measure="kendall")
    assert (constant.statistic, constant.outcome) == (None, "constant")
    a, b = means(SCORES), means(HUMAN)
    alike = [np.sign(a[i] - a[j]) == np.sign(b[i] - b[j]) for i, j in combinations(range(6), 2)]
    agreement = at_systems(SCORES, HUMAN, SYSTEMS, measure="accuracy")
    assert (agreement.statistic, agreement.p) == (pytest.approx(np.mean(alike)), None)
    # A response without a score counts on neither side.
    scores = SCORES.copy()
    scores[:3] = np.nan
    agreement = at_systems(scores, HUMAN, SYSTEMS, measure="pearson")
    expected = stats.pearsonr(*([one[3:20].mean(), *means(one)[1:]] for one in (SCORES, HUMAN)))
    assert agreement.statistic == pytest.approx(expected.statistic)
    assert (agreement.missing, agreement.n) == (3, 117)


def test_too_few_systems_are_refused_unless_forced_and_then_flagged() -> None:
    def of(count: int, measure: str = "pearson", force: bool = True) -> Figure:
        few = count > SYSTEMS
        return at_systems(SCORES[few], HUMAN[few], SYSTEMS[few], measure=measure, force=force)

    refused, forced = of(MIN_SYSTEMS - 1, force=False), of(MIN_SYSTEMS - 1)
    assert (refused.statistic, refused.outcome, refused.groups) == (None, "too_few_systems", 4)
    assert refused.reason == "4 systems; 5 are needed unless forced"
    assert forced.statistic == pytest.approx(stats.pearsonr(means(SCORES)[:4], means(HUMAN)[:4]).statistic)
    assert forced.forced and forced.outcome == "ok" and not of(6).forced
    assert of(2).outcome == "too_few_systems" and of(2, "accuracy").forced


@pytest.mark.parametrize("measure", ["spearman", "kendall", "accuracy"])
def test_equal_means_are_ties_in_whatever_order_they_are_summed(measure: Any) -> None:
    draw = np.random.default_rng(0)
    human = np.tile(draw.normal(size=20), 6) + (SYSTEMS >= 3)  # two values of the means, three systems each
    turned = np.concatenate([draw.permutation(human[system == SYSTEMS]) for system in range(6)])
    assert len(set(np.bincount(SYSTEMS, turned).tolist())) > 2, "their sums differ by rounding"
    figures = [at_systems(SCORES, values, SYSTEMS, measure=measure).statistic for values in (human, turned)]
    assert figures[0] == figures[1]
    responses = [ScoredResponses(SCORES, values, CONTEXTS, SYSTEMS) for values in (human, turned)]
    sums = [weighted_statistic(one, View(measure, "system"))(np.ones((1, 20))) for one in responses]
    assert [float(one[0]) for one in sums] == pytest.approx(figures)
