"""Cases to read: the right responses are chosen, shortened texts say so, and the page stays small."""

from __future__ import annotations

from typing import Any

import pytest

from ssrem.report.cases import (
    BYTES_A_PAGE,
    CASES_A_PAGE,
    EACH,
    LETTERS,
    TURNS,
    chosen,
    percentiles,
    with_texts,
)


def judged(scores: dict[str, list[float]], human: list[float], dataset: str = "d") -> list[dict[str, Any]]:
    return [
        {
            **{"evaluator": name, "version": 1, "dataset": dataset, "criterion": "overall", "part": "f"},
            **{"response_id": str(at), "human": rating, "raters": 4, "score": score},
        }
        for name, own in scores.items()
        for at, (score, rating) in enumerate(zip(own, human, strict=True))
    ]


def text(response_id: object, dataset: str = "d", **changes: Any) -> dict[str, Any]:
    row = {"context": ["Hi!"], "response": "Hello.", "reference": None, "system": None}
    return {"dataset": dataset, "response_id": str(response_id), **row, **changes}


def test_ties_share_the_middle_of_their_ranks() -> None:
    assert percentiles([3.0, 1.0, 3.0, 9.0]).tolist() == [50.0, 12.5, 50.0, 87.5]


def test_each_kind_is_chosen_and_the_middle_is_not() -> None:
    human = [5.0, 1.0, 1.5, 4.5, 3.0, 3.1]
    cases = chosen(judged({"a": [0.9, 0.1, 0.8, 0.2, 0.5, 0.51]}, human))
    kinds = {case.response_id: case.picks for case in cases}
    shown = ["liked", "disliked", "high", "low"]
    assert [kinds[str(at)] for at in range(4)] == [[("a", 1, kind)] for kind in shown]
    assert [kind for case in cases[:4] for *_, kind in case.picks] == shown
    assert not [kind for at in ("4", "5") for *_, kind in kinds.get(at, []) if kind in ("high", "low")]
    (first,) = (case for case in cases if case.response_id == "2")
    assert (first.human, first.raters, first.percentile) == (1.5, 4, 25.0)
    assert [(s.evaluator, s.part, s.value, s.percentile) for s in first.scores] == [("a", "f", 0.8, 75.0)]


def test_a_case_of_two_evaluators_is_shown_once_with_the_scores_of_all() -> None:
    human = [1.0, 2.0, 3.0, 4.0, 5.0]
    cases = chosen(judged({"a": human, "b": human, "c": [0.0] * 5}, human))
    top = next(case for case in cases if case.response_id == "4")
    assert top.picks == [("a", 1, "liked"), ("b", 1, "liked"), ("c", 1, "low")]
    reasons = {kind: [score.evaluator for score in scores] for kind, scores in top.reasons.items()}
    assert reasons == {"liked": ["a", "b"], "low": ["c"]}
    assert [s.percentile for s in top.scores] == [90.0, 90.0, 50.0]


def test_too_few_responses_and_missing_scores_choose_nothing() -> None:
    assert chosen(judged({"a": [1, 2, 3, 4]}, [1, 2, 3, 4])) == []
    assert chosen(judged({"a": [float("nan")] * 9}, list(range(9)))) == []
    assert chosen([]) == []


def test_a_long_conversation_is_cut_and_says_so() -> None:
    cases = chosen(judged({"a": [1, 2, 3, 4, 5]}, [1, 2, 3, 4, 5]))
    turns = [f"turn {n}" for n in range(TURNS + 3)]
    long = text(4, context=turns, response="x" * (LETTERS + 1000), reference="r", system="bot")
    (case,) = with_texts(cases, [long])
    assert case.turns == turns[3:]
    assert case.earlier == 3
    assert case.response == f"{'x' * LETTERS} … (1,000 letters more)"
    assert (case.reference, case.system) == ("r", "bot")


@pytest.mark.parametrize(("letters", "fewest"), [(10, CASES_A_PAGE), (LETTERS, 30)])
def test_there_are_never_more_than_a_page_holds_and_every_set_keeps_some(letters: int, fewest: int) -> None:
    n = 200
    points = [
        row
        for number in range(40)
        for row in judged({"a": [(7 * i) % n for i in range(n)]}, list(range(n)), f"d{number}")
    ]
    cases = chosen(points)
    assert len(cases) == CASES_A_PAGE < 40 * 4 * EACH
    words = {"context": ["y" * letters] * TURNS, "response": "z" * letters}
    texts = [text(case.response_id, case.dataset, **words) for case in cases]
    shown = with_texts(cases, texts)
    assert fewest <= len(shown) <= CASES_A_PAGE
    assert sum(len("".join(case.turns)) for case in shown) <= BYTES_A_PAGE
    assert [case.dataset for case in shown] == sorted((c.dataset for c in shown), key=lambda d: int(d[1:]))
    if letters == 10:
        assert len({case.dataset for case in shown}) == 40
