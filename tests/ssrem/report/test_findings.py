"""The first sentences of the report: the best evaluator, what cannot be answered, and what is no better than chance."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from ssrem.report.data import ReportData
from ssrem.report.findings import answer, no_better
from ssrem.report.page import jinja_environment


def correlation(evaluator: str, dataset: str, spearman: float | None, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"spearman_low": None, "spearman_high": None}
    row |= {"evaluator": evaluator, "version": "v1", "dataset": dataset, "criterion": "overall", "score": "h"}
    row |= {"aggregation": "mean", "level": "segment", "n": 100, "excluded": 0, "outcome": "ok"}
    return row | {"spearman": spearman, "spearman_p": 0.0001} | changes


def share(evaluator: str, kind: str, above: float | None, n: int = 150) -> dict[str, Any]:
    row: dict[str, Any] = {"evaluator": evaluator, "version": "v1", "corpus": "talk", "learned_from": "talk"}
    return row | {"kind": kind, "gt_above": above, "n": n}


def against(first: str, second: str, p: float | None, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": "one", "criterion": "overall", "level": "segment"}
    row |= {"test": "paired-bootstrap", "p_holm": p, "first_statistic": 0.4, "second_statistic": 0.3}
    return row | {"first": first, "first_version": "v1", "second": second, "second_version": "v1"} | changes


def said(correlations: list[dict[str, Any]], **rows: list[dict[str, Any]]) -> str:
    """The first sentences, as text."""
    data = ReportData("now", "0", "home", correlations=correlations, **rows)
    template = jinja_environment().get_template("answer.html")
    html = template.render(data=data, answer=answer(data), no_better=["a & b."])
    return " ".join(unescape(re.sub("<.*?>", "", html)).split())


def test_the_best_has_the_highest_mean_over_the_sets_that_all_share() -> None:
    a = [correlation("a", "one", 0.2), correlation("a", "two", 0.4)]
    b = [correlation("b", name, rho) for name, rho in (("one", 0.1), ("two", 0.3), ("three", 0.99))]
    assert said([*a, *b]).startswith(
        "a agrees best with human ratings, with a mean Spearman correlation of 0.300 over 2 criteria of 2 annotated "
        "sets, weighted by the responses of each set, which its criteria share equally; next is b with 0.200."
    )
    assert "a & b." in said(a)  # what is no better than chance stands at the top


def test_a_set_weighs_by_its_responses_not_by_its_criteria() -> None:
    criteria = [
        correlation(name, "large", rho, criterion=criterion, n=900)
        for name, rho in (("a", 0.4), ("b", 0.2))
        for criterion in ("overall", "grammar", "content")
    ]
    small = [correlation("a", "small", -0.9, n=15), correlation("b", "small", 0.9, n=15)]
    expected = (900 * 0.4 - 15 * 0.9) / 915
    assert f"a mean Spearman correlation of {expected:.3f} over 4 criteria of 2" in said([*criteria, *small])


def test_only_the_hybrid_score_of_mean_human_scores_counts() -> None:
    differing = (("score", "f"), ("aggregation", "median"), ("outcome", "flagged"), ("level", "system"))
    others = [correlation("a", "one", 0.9) | {name: value} for name, value in differing]
    text = said([correlation("a", "one", 0.2), *others])
    assert text.startswith(
        "a, the only evaluator compared with human ratings, has a Spearman correlation of 0.200 on one, overall "
        "(h, p < 0.001, n = 100)."
    )


@pytest.mark.parametrize("hybrid", [{"n": 3}, {"spearman": None, "outcome": "no reference"}])
def test_f_stands_in_where_fewer_or_no_responses_have_a_hybrid_score(hybrid: dict[str, Any]) -> None:
    text = said([correlation("a", "one", 0.9) | hybrid, correlation("a", "one", 0.3, score="f")])
    assert "has a Spearman correlation of 0.300" in text and "n = 100" in text


@pytest.mark.parametrize(
    ("correlations", "sentence"),
    [
        ([], "responses that people rated: ssrem ratings pull conture fetches some"),
        ([correlation("a", "one", None, outcome="constant")], "No annotated set gave a correlation"),
        ([correlation("a", "one", 0.1), correlation("b", "two", 0.1)], "no annotated set in common"),
        ([correlation("a", "one", -0.1), correlation("b", "one", -0.2)],
         "No evaluator agrees with human ratings: the best, a, has a Spearman correlation of −0.100"),
        ([correlation("a", "talk", 0.07, level="conversation")],
         "The ratings of whole conversations are the only human scores: the highest Spearman correlation is 0.070 "
         "(a with talk, overall, p < 0.001, n = 100)."),
    ],
)  # fmt: skip
def test_says_plainly_what_cannot_be_answered(correlations: list[dict[str, Any]], sentence: str) -> None:
    assert sentence in said(correlations, identification=[share("a", "SC", 0.6)])


def test_identification_is_that_of_the_best_evaluator_or_else_the_best_of_all() -> None:
    kinds = [("GT", None), ("SC", 0.61), ("Rand", 0.8), ("Context", 0.2)]
    shares = [*(share("a", *one) for one in kinds), share("b", "SC", 0.99)]
    text = said([correlation("a", "one", 0.3), correlation("b", "one", 0.1)], identification=shares)
    assert (
        "On the test split of talk, the f of a ranks the true response above a false one in 61% (SC), 80% (Rand) and a "
        "copied turn of the context in 20% of the cases."
    ) in text
    assert "the f of b" in said([], identification=[share("a", "SC", 0.6), share("b", "SC", 0.7)])


@pytest.mark.parametrize(
    ("first", "second", "p", "lead"),
    [
        ("a", "b", 0.031, "significant"),
        ("a", "b", 0.05, "not significant"),
        ("b", "a", 0.01, "not significant"),
    ],
)
def test_whether_the_lead_is_significant(first: str, second: str, p: float, lead: str) -> None:
    rows = [correlation(who, at, rho) for who, rho in (("a", 0.4), ("b", 0.3)) for at in ("one", "two")]
    untested = against(first, second, None, dataset="two")
    text = said(rows, comparisons=[against(first, second, p), untested])
    assert f"Its lead over b is {lead} (paired bootstrap, p = {p:.3f} after Holm" in text
    both = [against("a", "b", 0.01), against("b", "a", 0.01, dataset="two")]
    assert "is significant on 1 of the 2 criteria tested" in said(rows, comparisons=both)
    assert "lead" not in said(rows)


def name(evaluator: str, _: str) -> str:
    return evaluator


def test_identification_at_chance_is_said() -> None:
    kinds = [("GT", None), ("Rand", 0.527), ("SC", 0.6), ("SS", None)]
    rows = [share("e", kind, above, 0 if kind == "SS" else 150) for kind, above in kinds]
    assert no_better(rows, [], [], name) == [
        "e tells the true response from a random one in 52.7% of cases: chance is 50% "
        "(talk, n = 150, 95% interval 44.7% to 60.5%)."
    ]
    assert no_better([share("e", "Rand", 0.527, 15_000)], [], [], name) == []  # above chance, if only just
    (copied,) = no_better([share("e", "Context", 0.16) | {"learned_from": "other"}], [], [], name)
    assert "a copied turn of its context in 16.0%" in copied and "learned from other, n = 150" in copied
    assert no_better([share("length", "Rand", 0.5)], [], [], name) == []


def test_small_corpora_share_a_sentence() -> None:
    names = [f"day{day}" for day in range(10)]
    learned = {"learned_from": ", ".join(names)}
    days = [share("e", "SC", 0.4 + at / 50, 10) | {"corpus": day, **learned} for at, day in enumerate(names)]
    large = share("e", "SC", 0.5, 2_000)
    assert no_better([*days, large], [], [], name) == [
        f"e tells the true response from another one of the same conversation in {share}% of cases: chance is 50% "
        f"({corpus}, n = {n}, 95% interval {low}% to {high}%)."
        for corpus, share, n, low, high in (
            ("talk", "50.0", "2,000", "47.8", "52.2"),
            ("10 small corpora", "49.0", "100", "39.4", "58.7"),
        )
    ]


def test_a_correlation_that_may_be_none_and_what_stands_below_a_baseline_are_said() -> None:
    correlations = [
        correlation("e", "people", 0.05, spearman_low=-0.05),
        correlation("e", "people", 0.3, spearman_low=0.2, criterion="grammar"),
        correlation("e", "people", 0.05, spearman_low=-0.05, level="conversation"),
        correlation("e", "people", 0.05, spearman_low=-0.05, aggregation="median"),
        correlation("e", "people", 0.05, criterion="style"),
        correlation("e", "others", 0.25, spearman_low=0.15),
        correlation("e", "others", 0.05, spearman_low=-0.05, score="f"),
        correlation("cosine", "people", 0.05, spearman_low=-0.05),
    ]
    compared = [
        against("cosine", "e", 0.001),
        against("e", "length", 0.04, second_statistic=0.01),
        against("e", "length", 0.04, criterion="grammar"),
        against("cosine", "length", 0.001),
        against("other", "cosine", 0.3),
        against("other", "length", 0.3, level="system"),
        against("other", "e", 0.001),
    ]
    assert no_better([], correlations, compared, name) == [
        "e: its Spearman with human scores is not above chance (0) on 1 of 3 criteria, not above an untrained baseline "
        "on 1 of 2 criteria.",
        "other: its Spearman with human scores is not significantly above an untrained baseline on 1 of 1 criterion.",
    ]
