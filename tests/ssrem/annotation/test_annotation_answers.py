"""What raters hand in: read whole or refused in one line; careless raters go, and what they said stays on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from ssrem.annotated_sets import read_set
from ssrem.annotation.batch import Batch, BatchPlan, Context, contexts_needed, draw_batch
from ssrem.annotation.review import annotated_rows, record, review
from ssrem.annotation.sheets import ANSWERS_FORMAT, Answer, as_csv, read_answers
from ssrem.errors import AnnotationError

PLAN = BatchPlan(contexts=6, raters=4, redundancy=4, checks=2)
Save = Callable[..., Path]


def batch_of(plan: BatchPlan) -> Batch:
    numbers = range(contexts_needed(plan))
    contexts = [Context(n, (("A", f"question {n}"),), "B", f"answer number {n}") for n in numbers]
    return draw_batch("c", "test", plan, contexts, {"bot": [f"bot {n}" for n in range(plan.contexts)]})


@pytest.fixture(scope="module")
def batch() -> Batch:
    return batch_of(PLAN)


@pytest.fixture
def save(tmp_path: Path, batch: Batch) -> Save:
    def write(name: str, who: str, answers: list[Any], **other: Any) -> Path:
        path = tmp_path / name
        saved = {"format": ANSWERS_FORMAT, "batch": batch.id, "rater": who, "answers": answers, **other}
        path.write_text(json.dumps(saved))
        return path

    return write


def fair(batch: Batch, rater: str, wrong_checks: bool = False, turned: bool = False) -> list[Answer]:
    """Scores by the item's number, nearly as the other raters'."""
    result = []
    for at, item in enumerate(batch.items):
        score = 1 + (at + (at % 3 == int(rater[-1]) % 3)) % 5
        score = 6 - score if turned else score
        if item.expected:
            low, high = item.expected
            score = (5 if high < 3 else 1) if wrong_checks else low
        result.append(Answer(rater, item.id, score))
    return result


def refused(paths: list[Path], batch: Batch, says: str) -> None:
    """Reading the answers is an error of one line."""
    with pytest.raises(AnnotationError) as error:
        read_answers(paths, batch)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_page_files_and_tables_are_read(batch: Batch, save: Save, tmp_path: Path) -> None:
    first, second = batch.items[0].id, batch.items[1].id
    saved = save("1.json", "rater-1", [{"item": first, "score": 4}, {"item": second, "score": 1}])
    lines = as_csv(batch, "rater-2").splitlines(keepends=True)
    filled = [line.replace(",\r\n", ",3.0\r\n") if f",{first}," in line else line for line in lines]
    table, other = tmp_path / "2.csv", tmp_path / "3.csv"
    table.write_text("\ufeff" + "".join(filled), newline="")
    other.write_text(f"rater;item;score\n rater-3;{first} ;2\n")
    given = [("rater-1", first, 4), ("rater-1", second, 1), ("rater-2", first, 3), ("rater-3", first, 2)]
    assert read_answers([saved, table, other], batch) == [Answer(*one) for one in given]


def test_what_is_wrong_is_said_in_one_line(batch: Batch, save: Save) -> None:
    item = {"item": batch.items[0].id}
    one = {**item, "score": 1}
    for answers, other, says in (
        ([{"item": "i99", "score": 1}], {}, "no item 'i99' on the sheet of rater-1"),
        ([{**item, "score": 6}], {}, "1.json, answer 1: 6 is not a score from 1 to 5"),
        *(([{**item, "score": bad}], {}, f"{bad} is not a score") for bad in (0, 2.5, True, None)),
        ([one, {**item, "score": 2}], {}, "a second time; keep one"),
        ([one], {"rater": "eve"}, "no rater 'eve'; the batch has rater-1, rater-2"),
        ([one], {"rater": ["rater-1"]}, "no rater"),
        ([one], {"batch": "other"}, "answers batch other, not"),
        ([item], {}, "is not a file that the rating page saved"),
        ([one], {"format": "x"}, "is not a file that the rating page saved"),
        ([], {}, "no answer in"),
    ):
        refused([save("1.json", "rater-1", answers, **other)], batch, says)


def test_a_rater_in_two_files_and_wrong_tables_are_refused(batch: Batch, save: Save, tmp_path: Path) -> None:
    paths = [save(f"{n}.json", "rater-1", [{"item": batch.items[n].id, "score": 4}]) for n in (0, 1)]
    refused(paths, batch, f"rater-1 answers twice, in {paths[0]} and in {paths[1]}")
    path = tmp_path / "t.csv"
    for text, says in (
        ("rater,item\nrater-1,i1\n", "line 2: no column score"),
        ("rater,item,score\nrater-1,i01,four\n", "'four' is not a score"),
        ("rater,item,score\nrater-1,i01,-1\n", "'-1' is not a score"),
        ("rater,item,score\nrater-1,i01,2\nrater-1,i01,2\n", "line 3: rater-1 scores i01 a second time"),
    ):
        path.write_text(text)
        refused([path], batch, says)


def test_careless_raters_are_left_out_and_named(batch: Batch, tmp_path: Path) -> None:
    answers = [*fair(batch, "rater-1"), *fair(batch, "rater-2")]
    answers += [*fair(batch, "rater-3", wrong_checks=True), *fair(batch, "rater-4", turned=True)]
    result = review(batch, answers, kappa=-0.3)
    assert result.remaining == ["rater-1", "rater-2"]
    reasons = {one.rater: one.reason for one in result.dropped}
    assert reasons["rater-3"] == "passed 0 of 2 attention checks"
    assert reasons["rater-4"].startswith("mean kappa -")
    assert (result.alpha.value or 0) > (result.before.value or 0)
    noted = record(batch, result)
    assert noted["aggregation"] == "mean+checks1+kappa-0.3"
    assert [one["rater"] for one in noted["dropped"]] == ["rater-3", "rater-4"]

    path = tmp_path / "b_eval.json"
    path.write_text(json.dumps(annotated_rows(batch, result)))
    rows = read_set(path).rows
    assert len(rows) == 12 and sum(row.ground_truth for row in rows) == 6
    one = next(row for row in rows if row.response == "bot 3")
    item = next(item for item in batch.items if item.response == "bot 3")
    expected = [a.score for r in ("rater-1", "rater-2") for a in fair(batch, r) if a.item == item.id]
    assert one.ratings == {"overall": tuple(map(float, expected))}
    assert (one.system, one.reference, one.context) == ("bot", "answer number 3", ("question 3",))
    pairs = [row.ratings["overall"] for row in rows if not row.ground_truth]  # without true responses
    assert result.one.value == pytest.approx(spearmanr(*zip(*pairs, strict=True)).statistic)


def test_nobody_left_or_only_checks_is_an_error(batch: Batch) -> None:
    careless = fair(batch, "rater-3", wrong_checks=True)
    checks = [a for a in fair(batch, "rater-1") if batch.by_id[a.item].expected]
    nobody = "no rater is left: rater-3 passed 0 of 2 attention checks"
    for answers, message in ((careless, nobody), (checks, "only attention checks")):
        with pytest.raises(AnnotationError, match=message):
            review(batch, answers, kappa=None)


def test_answers_to_the_second_question_are_a_second_criterion(save: Save, tmp_path: Path) -> None:
    batch = batch_of(PLAN.model_copy(update={"on_topic": True}))
    first, second = batch.sheets["rater-1"][:2]
    answers = [{"item": first, "score": 4, "on-topic": 2}, {"item": second, "score": 1}]
    saved = save("1.json", "rater-1", answers, batch=batch.id)
    head, *lines = as_csv(batch, "rater-2").splitlines(keepends=True)
    assert head.strip().endswith(",score,on-topic")
    filled = [line.replace(",,\r\n", ",3,5\r\n") for line in lines if f",{first}," in line]
    table = tmp_path / "2.csv"
    table.write_text(head + "".join(filled), newline="")
    given = [("rater-1", first, 4, 2), ("rater-1", second, 1), ("rater-2", first, 3, 5)]
    assert read_answers([saved, table], batch) == [Answer(*one) for one in given]
    wrong = save("1.json", "rater-1", [{"item": first, "score": 4, "on-topic": 6}], batch=batch.id)
    refused([wrong], batch, "6 is not a score from 1 to 5")
    table.write_text(head + "".join(line.replace(",3,5", ",,5") for line in filled), newline="")
    refused([table], batch, "line 2: on-topic is answered and score is not; fill in both, or neither")
    every = [
        Answer(one.rater, one.item, one.score, None if at % 7 == 0 else 6 - one.score)
        for rater in batch.sheets
        for at, one in enumerate(fair(batch, rater))
    ]
    reviewed = review(batch, every, kappa=None)
    rows = annotated_rows(batch, reviewed)
    topics = {(one.rater, one.item): one.on_topic for one in every}
    units = sorted((item for item in batch.items if item.expected is None), key=lambda item: item.id)
    assert len(rows) == len(units) == 12
    for row, unit in zip(rows, units, strict=True):
        expected = [topics[rater, unit.id] for rater in row["raters"]]
        assert row["annotations"].get("on-topic", [None] * len(expected)) == expected
        assert len(row["annotations"]["overall"]) == 4
    assert record(batch, reviewed)["alpha_on_topic"]["value"] is not None
    with pytest.raises(AnnotationError, match="leave one of them out"):
        BatchPlan(criterion="on-topic", on_topic=True)
