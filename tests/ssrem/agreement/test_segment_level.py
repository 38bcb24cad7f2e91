"""Segment level: groups, ties, and what has no figure."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ssrem.agreement.correlate import (
    MEASURES,
    Figure,
    ScoredResponses,
    View,
    agreement_at,
    calibrated_accuracy,
)
from ssrem.agreement.resample import by_group

RNG = np.random.default_rng(0)
NAN = np.nan

whole = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(1, 5), st.integers(0, 2)), min_size=4, max_size=25
)


def agreement_of(
    scores: Any, human: Any, *, measure: Any, grouping: Any = "pooled", groups: Any = None
) -> Figure:
    """At segment level; groups: the labels of the grouping."""
    labels = (
        {"contexts": np.zeros(len(scores)), f"{grouping}s": groups}
        if grouping != "pooled"
        else {"contexts": ()}
    )
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


def test_ties_by_hand() -> None:
    # People tie the first three. At ε = 4 the scores tie (0, 2) and (2, 6), which agrees, and (6, 8), which does not;
    # (0, 8) and (2, 8) are ordered as people order them and (0, 6) is not: 4 of 6.
    tied = calibrated_accuracy(np.array([0.0, 2, 6, 8]), np.array([1.0, 1, 1, 4]))
    assert tied is not None
    assert tied == (pytest.approx(4 / 6), 4.0, 1)
    ordered = calibrated_accuracy(np.array([0.0, 2, 6, 8]), np.array([1.0, 2, 3, 4]))
    assert ordered == (1.0, 0.0, 1)


@given(whole)
@settings(max_examples=40, deadline=None)
def test_ties_are_calibrated_as_trying_every_epsilon_does(drawn: list[tuple[int, int, int]]) -> None:
    x, y, groups = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    agreement = calibrated_accuracy(x, y, groups.astype(np.int64))
    if agreement is None:
        assert all((groups == group).sum() < 2 for group in groups)
        return
    accuracy, epsilon = best_accuracy(x, y, groups)
    assert agreement[0] == pytest.approx(accuracy, abs=1e-9)
    assert agreement[1] == epsilon


def test_pooled_is_scipy_with_its_p() -> None:
    y = RNG.integers(1, 6, 80).astype(float)
    x = y + RNG.normal(0, 2, 80)
    for measure, theirs in (
        ("pearson", stats.pearsonr),
        ("spearman", stats.spearmanr),
        ("kendall", stats.kendalltau),
    ):
        agreement = agreement_of(x, y, measure=measure)  # type: ignore[arg-type]
        expected = theirs(x, y)
        assert agreement.statistic == pytest.approx(expected.statistic)
        assert agreement.p == pytest.approx(expected.pvalue)
        assert (agreement.n, agreement.groups, agreement.outcome) == (80, 1, "ok")


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_groups_are_averaged_and_those_without_a_coefficient_left_out(measure: Any) -> None:
    x = np.array([1.0, 2, 3, 4, 9, 1, 5, 5, 5, 2, 7, NAN, 3, 1, 2])
    y = np.array([1.0, 3, 2, 4, 1, 2, 1, 2, 3, 1, 2, 5, 4, 4, 4])
    groups = [*"aaaa", *"bb", *"ccc", *"ddd", *"eee"]
    agreement = agreement_of(x, y, measure=measure, grouping="system", groups=groups)
    assert agreement.statistic == pytest.approx(agreement_of(x[:4], y[:4], measure=measure).statistic)
    assert (agreement.groups, agreement.n, agreement.missing, agreement.p) == (1, 4, 1, None)
    both = agreement_of(
        [*x[:4], *x[:4]], [*y[:4], *-y[:4]], measure=measure, grouping="context", groups=[0] * 4 + [1] * 4
    )
    assert both.statistic == pytest.approx(0)
    assert (both.groups, both.n) == (2, 8)


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_groups_too_small_for_a_coefficient_are_in_no_resample(measure: Any) -> None:
    draw = np.random.default_rng(0)
    x, y, weights = draw.normal(size=12), draw.normal(size=12), draw.integers(0, 3, (50, 12)).astype(float)
    groups = np.array([0] * 5 + [1] * 5 + [2] * 2)
    enough = groups < 2
    rows = np.arange(12)
    expected = by_group(x[enough], y[enough], groups[enough], rows[enough], measure)(weights)
    assert by_group(x, y, groups, rows, measure)(weights) == pytest.approx(expected, nan_ok=True)


def test_accuracy_by_group_has_one_epsilon_and_takes_ties_as_answers() -> None:
    x = np.array([1.0, 1.1, 5, 2, 2.1, 2.2, 9])
    y = np.array([1.0, 1, 2, 3, 3, 3, 1])
    groups = [*"aaa", *"bbb", "c"]
    agreement = agreement_of(x, y, measure="accuracy", grouping="context", groups=groups)
    assert (agreement.statistic, agreement.groups, agreement.n) == (1.0, 2, 6)
    assert agreement.epsilon == pytest.approx(0.2)
    assert agreement.p is None


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("grouping", ["pooled", "system", "context"])
def test_what_has_no_figure_says_why(measure: Any, grouping: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def agreement(x: Any, y: Any, groups: Any) -> tuple[Any, Any, str]:
        one = agreement_of(x, y, measure=measure, grouping=grouping, groups=groups)
        assert one.p is None and one.epsilon is None
        return one.statistic, one.outcome, one.reason

    assert agreement([1, 1, 1], [1, 2, 3], [*"aaa"]) == (None, "constant", "the scores are all the same")
    assert agreement([1, 2, 3], [1, 1, 1], [*"aaa"])[2] == "the human scores are all the same"
    assert agreement([1, 2, NAN], [1, 2, 3], [*"aaa"])[:2] == (None, "too_few")
    assert agreement([], [], [])[:2] == (None, "too_few")
    if grouping != "pooled":
        assert agreement([1, 2, 3], [1, 2, 3], [*"abc"])[:2] == (None, "too_few")
    if measure == "accuracy":
        monkeypatch.setattr("ssrem.agreement.correlate.MAX_PAIRS", 2)
        assert agreement([1, 2, 3], [1, 2, 3], [*"aaa"])[1] == "too_many"


def test_misuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="infinity"):
        agreement_of([1, np.inf, 2], [1, 2, 3], measure="accuracy")
    with pytest.raises(ValueError, match="one length"):
        agreement_of([1, 2], [1, 2, 3], measure="pearson")
    with pytest.raises(ValueError, match="needs the system"):
        agreement_of([1, 2, 3], [1, 2, 3], measure="pearson", grouping="system")
    with pytest.raises(ValueError, match="2 contexts do not fit 3"):
        agreement_of([1, 2, 3], [1, 2, 3], measure="pearson", grouping="context", groups=[1, 2])
    with pytest.raises(ValueError, match="systems are None"):
        agreement_of([1, 2, 3], [1, 2, 3], measure="pearson", grouping="system", groups=["a", None, "a"])
    monkeypatch.setattr("ssrem.agreement.correlate.MAX_PAIRS", 2)
    with pytest.raises(ValueError, match="compare by context"):
        calibrated_accuracy(np.arange(3.0), np.arange(3.0))
