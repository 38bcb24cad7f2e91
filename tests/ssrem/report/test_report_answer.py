"""The first sentences of the report: the best evaluator, on which datasets, and what cannot be answered."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from ssrem.report.answer import answer
from ssrem.report.data import COLUMNS, ReportData
from ssrem.report.page import jinja_environment


def correlation(evaluator: str, dataset: str, spearman: float | None, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS["correlations"])
    row |= {"evaluator": evaluator, "version": "v1", "dataset": dataset, "criterion": "overall", "score": "h"}
    row |= {"aggregation": "mean", "level": "segment", "n": 100, "excluded": 0, "outcome": "ok"}
    return row | {"spearman": spearman, "spearman_p": 0.0001} | changes


def answer_text(correlations: list[dict[str, Any]], **rows: list[dict[str, Any]]) -> str:
    data = ReportData("now", "0", "home", correlations=correlations, **rows)
    html = jinja_environment().get_template("answer.html").render(answer=answer(data), no_better=["a & b."])
    return " ".join(unescape(re.sub("<.*?>", "", html)).split())


def share(evaluator: str, kind: str, above: float | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS["identification"], 0.0)
    return row | {"evaluator": evaluator, "version": "v1", "corpus": "talk", "kind": kind, "gt_above": above}


def test_the_best_has_the_highest_mean_over_the_sets_that_all_share() -> None:
    text = answer_text(
        [
            correlation("a", "one", 0.2),
            correlation("a", "two", 0.4),
            correlation("b", "one", 0.1),
            correlation("b", "two", 0.3),
            correlation("b", "three", 0.99),
        ]
    )
    assert (
        "a agrees best with human ratings, with a mean Spearman correlation of 0.300 over 2 annotated sets"
        in text
    )
    assert "next is b with 0.200." in text
    assert "from 0.200 (one, overall, p < 0.001) to 0.400 (two, overall, p < 0.001)" in text


def test_what_is_no_better_than_chance_stands_at_the_top() -> None:
    assert "a & b." in answer_text([correlation("a", "one", 0.2)])


def test_a_set_weighs_by_its_responses_not_by_its_criteria() -> None:
    criteria = [
        correlation(name, "large", rho, criterion=criterion, n=900)
        for name, rho in (("a", 0.4), ("b", 0.2))
        for criterion in ("overall", "grammar", "content")
    ]
    small = [correlation("a", "small", -0.9, n=15), correlation("b", "small", 0.9, n=15)]
    text = answer_text([*criteria, *small])
    expected = (900 * 0.4 - 15 * 0.9) / 915
    assert f"a agrees best with human ratings, with a mean Spearman correlation of {expected:.3f}" in text
    assert "over 4 criteria of 2 annotated sets, weighted by their responses; next is b" in text


def test_only_the_hybrid_score_of_mean_human_scores_counts() -> None:
    text = answer_text(
        [
            correlation("a", "one", 0.2),
            correlation("a", "one", 0.9, score="f"),
            correlation("a", "one", 0.9, aggregation="median"),
            correlation("a", "one", 0.9, outcome="flagged"),
            correlation("a", "one", 0.9, level="system"),
        ]
    )
    assert "a, the only evaluator compared with human ratings, has a Spearman correlation of 0.200" in text
    assert "score h, p < 0.001, n = 100." in text


def test_a_hybrid_score_of_fewer_responses_does_not_count() -> None:
    few = correlation("a", "one", 0.9, n=3)
    text = answer_text([few, correlation("a", "one", 0.2, score="f", n=100)])
    assert "has a Spearman correlation of 0.200" in text and "score f, p < 0.001, n = 100." in text


def test_f_stands_in_where_there_is_no_hybrid_score() -> None:
    text = answer_text(
        [correlation("a", "one", 0.3, score="f"), correlation("a", "one", None, outcome="no reference")]
    )
    assert "correlation of 0.300" in text
    assert "its score f" in text


def test_an_evaluator_that_does_not_agree_is_not_praised() -> None:
    assert (
        "No evaluator agrees with human ratings: the best, a, has a Spearman correlation of −0.100"
        in answer_text([correlation("a", "one", -0.1), correlation("b", "one", -0.2)])
    )


@pytest.mark.parametrize(
    ("correlations", "sentence"),
    [
        ([], "responses that people rated: ssrem ratings pull conture fetches some"),
        ([correlation("a", "one", None, outcome="constant")], "No annotated set gave a correlation"),
        ([correlation("a", "one", 0.1), correlation("b", "two", 0.1)], "no annotated set in common"),
    ],
)
def test_says_plainly_what_cannot_be_answer_text(correlations: list[dict[str, Any]], sentence: str) -> None:
    assert sentence in answer_text(correlations, identification=[share("a", "SC", 0.6)])


def test_ratings_of_conversations_stand_in_as_what_they_are() -> None:
    text = answer_text([correlation("a", "talk", 0.07, level="conversation")])
    assert "responses that people rated: ssrem ratings pull conture fetches some" in text
    assert "The ratings of whole conversations are the only human scores" in text
    assert "0.070 (a with talk, overall, p < 0.001, n = 100)" in text


def test_identification_is_that_of_the_best_evaluator() -> None:
    shares = [
        share("a", "GT", None),
        share("a", "SC", 0.61),
        share("a", "Rand", 0.8),
        share("a", "Context", 0.2),
    ]
    text = answer_text(
        [correlation("a", "one", 0.3), correlation("b", "one", 0.1)],
        identification=[*shares, share("b", "SC", 0.99)],
    )
    assert "On the test split of talk, the f of a ranks the true response above a false one in" in text
    assert "61% (SC) and 80% (Rand) of the cases, and above a copied turn of the context in 20%." in text
    assert "99%" not in text


def test_without_correlations_the_best_identification_is_reported() -> None:
    assert "the f of b" in answer_text([], identification=[share("a", "SC", 0.6), share("b", "SC", 0.7)])


def test_nothing_measured() -> None:
    assert "ssrem run" in answer_text([])


def against(first: str, second: str, dataset: str, p: float | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS["comparisons"])
    row |= {"dataset": dataset, "criterion": "overall", "level": "segment"}
    row |= {"test": "paired-bootstrap", "p_holm": p}
    return row | {"first": first, "first_version": "v1", "second": second, "second_version": "v1"}


@pytest.mark.parametrize(
    ("compared", "sentence"),
    [
        (
            [("a", "b", "one", 0.031)],
            "Its lead over b is significant (p = 0.031 in a paired bootstrap, after Holm",
        ),
        ([("a", "b", "one", 0.05)], "Its lead over b is not significant (p = 0.050 in"),
        ([("b", "a", "one", 0.01)], "Its lead over b is not significant (p = 0.010 in"),
    ],
)
def test_whether_the_lead_is_significant(compared: list[Any], sentence: str) -> None:
    rows = [correlation("a", "one", 0.4), correlation("b", "one", 0.3)]
    assert sentence in answer_text(rows, comparisons=[against(*one) for one in compared])


def test_a_lead_over_several_sets_is_counted_and_one_that_was_not_tested_is_not_reported() -> None:
    rows = [
        correlation(who, at, rho) for who, rho in (("a", 0.4), ("b", 0.3)) for at in ("one", "two", "three")
    ]
    compared = [
        against("a", "b", "one", 0.01),
        against("b", "a", "two", 0.01),
        against("a", "b", "three", None),
    ]
    text = answer_text(rows, comparisons=compared)
    assert "Its lead over b is significant on 1 of the 2 criteria tested" in text
    assert "lead" not in answer_text(rows)
