"""Sentences about evaluators that are no better than chance or than an untrained baseline."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from ssrem.agreement import share_interval
from ssrem.report.data import COLUMNS
from ssrem.report.verdict import verdict


def name(evaluator: str, _: int) -> str:
    return evaluator


def share(kind: str, above: float | None, n: int, evaluator: str = "ssrem") -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS["identification"], 0.0)
    return row | {
        "evaluator": evaluator,
        "version": 1,
        "corpus": "talk",
        "learned_from": "talk",
        "kind": kind,
        "gt_above": above,
        "n": n,
    }


def correlation(spearman: float, low: float | None, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS["correlations"])
    row |= {"evaluator": "ssrem", "version": 1, "dataset": "people", "criterion": "overall", "score": "f"}
    row |= {"aggregation": "mean", "level": "segment", "outcome": "ok", "n": 100, "spearman": spearman}
    return row | {"spearman_low": low, "spearman_high": spearman + 0.1} | changes


def compared(
    first: str, high: float, second: str, low: float, p: float | None, **changes: Any
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": "people", "criterion": "overall", "level": "segment"}
    row |= {"test": "paired-bootstrap", "p_holm": p}
    row |= {"first": first, "first_version": 1, "first_statistic": high}
    return row | {"second": second, "second_version": 1, "second_statistic": low} | changes


def test_the_interval_is_wilsons() -> None:
    for wins, n in ((0, 7), (3, 7), (79, 150), (150, 150)):
        expected = stats.binomtest(wins, n).proportion_ci(method="wilson")
        assert share_interval(wins / n, n) == pytest.approx((expected.low, expected.high))
    assert share_interval(0.0, 12)[0] == 0
    assert share_interval(1.0, 12)[1] == 1


def test_identification_at_chance_is_said() -> None:
    rows = [share("GT", None, 150), share("Rand", 0.527, 150), share("SC", 0.6, 150), share("SS", None, 0)]
    (sentence,) = verdict(rows, [], [], name)
    assert sentence == (
        "ssrem tells the true response from a random one in 52.7% of cases: chance is 50% "
        "(talk, n = 150, 95% interval 44.7% to 60.5%)."
    )
    assert verdict([share("Rand", 0.527, 15_000)], [], [], name) == []  # above chance, if only just
    assert (
        "a copied turn of its context in 16.0%" in verdict([share("Context", 0.16, 15_000)], [], [], name)[0]
    )
    assert verdict([share("Rand", 0.5, 150, "length")], [], [], name) == []


def test_a_correlation_that_may_be_none_is_said() -> None:
    rows = [
        correlation(0.05, -0.05),
        correlation(-0.2, -0.3, criterion="content"),
        correlation(0.3, 0.2, criterion="grammar"),
        correlation(0.05, -0.05, level="conversation"),
        correlation(0.05, -0.05, aggregation="median"),
        correlation(0.05, None, criterion="style"),
        correlation(0.25, 0.15, score="h", criterion="style", dataset="others"),
        correlation(0.05, -0.05, criterion="style", dataset="others"),
        correlation(0.05, -0.05, evaluator="cosine"),
    ]
    assert verdict([], rows, [], name) == [
        "ssrem: on 2 of 4 criteria its Spearman with human scores is not above chance, 0: .05 (people, overall, 95% "
        "interval −.05 to .15); −.20 (people, content, 95% interval −.30 to −.10)."
    ]


def test_what_stands_below_a_baseline_is_said() -> None:
    rows = [
        compared("cosine", 0.30, "ssrem", 0.12, 0.001),
        compared("cosine", 0.31, "ssrem", 0.30, 0.8, criterion="content"),
        compared("cosine", 0.30, "length", 0.01, 0.001),
        compared("ssrem", 0.12, "length", 0.01, 0.04),
        compared("ssrem", 0.32, "length", 0.01, 0.04, criterion="grammar"),
        compared("rsrem", 0.33, "cosine", 0.30, 0.3),
        compared("rsrem", 0.33, "length", 0.30, 0.3, level="system"),
        compared("rsrem", 0.33, "ssrem", 0.12, 0.001),
    ]
    assert verdict([], [], rows, name) == [
        "ssrem: on 2 of 3 criteria its Spearman with human scores is not above that of an untrained baseline: .12, "
        "cosine .30 (people, overall, p = 0.001); .30, cosine .31 (people, content, p = 0.8).",
        "rsrem: on 1 of 1 criterion its Spearman with human scores is not significantly above that of an untrained "
        "baseline: .33, cosine .30 (people, overall, p = 0.3).",
    ]


def test_no_more_than_three_figures_a_sentence() -> None:
    rows = [compared("cosine", 0.3, "ssrem", 0.1, 0.01, criterion=f"c{n}") for n in range(5)]
    (sentence,) = verdict([], [], rows, name)
    assert sentence.count("cosine") == 3 and sentence.endswith("; and 2 more.")
