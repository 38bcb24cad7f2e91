"""Annotated sets as their authors publish them: what is read, what is left out and counted, what a message names."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssrem.annotated_sets import LAYOUTS, layout_of, read_set
from ssrem.annotated_sets.base import Source
from ssrem.errors import AnnotationError

USR: dict[str, Any] = {
    "context": "hello there \n do you sail ? \n\n",
    "fact": "boats float .",
    "annotators": ["a", "b"],
    "responses": [
        {
            "response": "every summer .\n",
            "model": "Original Ground Truth",
            "Natural": [3, 2],
            "Overall": [5, 4],
        },
        {"response": "i sail sail .\n", "model": "Seq2Seq", "Natural": [1, 1], "Overall": [2, "N/A (odd)"]},
    ],
}
FED: dict[str, Any] = {
    "context": "User: Hi!\nSystem: Hello: how are you?\nand yours?\nUser: Fine",
    "response": "System: Good to hear",
    "system": "Ada",
    "annotations": {"Interesting": [0, 2, "N/A (no idea)"], "Correct": ["N/A", "n/a (none)"]},
}
WHOLE: dict[str, Any] = {"context": "User: Hi!", "system": "Ada", "annotations": {"Coherent": [1, "N/A (x)"]}}
GRADE: dict[str, Any] = {"ID": 7, "Dataset": "chat", "DialogModel": "ranker", "HumanScores": "[4, 5, 3]"}
GRADE |= {"Context": "do you sail ?|||every summer .", "Response": "i like boats . "}


def written(tmp_path: Path, rows: object, name: str = "data.json") -> Path:
    path = tmp_path / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return path


def said(path: Path, layout: str | None = None, mapping: Mapping[str, str] | None = None) -> str:
    with pytest.raises(AnnotationError) as raised:
        read_set(path, layout, mapping)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("change", [{"response": "\ud800"}, {"annotations": {"\udc00": [1]}}])
def test_what_is_no_text(tmp_path: Path, change: dict[str, Any]) -> None:
    row = {"context": "a", "response": "r", "annotations": {"overall": [1]}}
    assert "row 2: an escape such as" in said(written(tmp_path, [row, {**row, **change}]))


# EVAL


def test_eval_leaves_out_and_counts_ratings_that_are_missing(tmp_path: Path) -> None:
    given = [[4, "N/A"], None, [], "N/A", [None, 2]]
    rows = [
        {"context": ["a"], "response": f"r{n}", "annotations": {"overall": written, "fluent": [n, 3]}}
        for n, written in enumerate(given)
    ]
    nobody = {"context": ["a"], "response": "r", "annotations": {"overall": None}}
    annotated = read_set(written(tmp_path, [*rows, nobody, {**nobody, "annotations": {}}]))
    assert [row.ratings.get("overall") for row in annotated.rows] == [(4.0,), None, None, None, (None, 2.0)]
    assert annotated.rows[1].ratings == {"fluent": (1.0, 3.0)}
    assert annotated.summary == (
        "read as eval: 5 responses, rated 0 to 4; "
        "left out: 6 ratings given as N/A or left empty, 2 responses without any rating"
    )
    message = said(written(tmp_path, [{**nobody, "annotations": {"overall": [4, "okay"]}}]))
    assert "row 1: rating 'okay' of 'overall' is neither a number up to 1e+09 nor N/A" in message


def test_eval_takes_raters_by_name_where_rows_name_them(tmp_path: Path) -> None:
    given = [(["ann", "bob"], [1, 2]), (["cy", "bob"], [3, None]), (["cy", "ann"], [5, 4])]
    rows = [
        {"context": ["a"], "response": f"r{n}", "annotations": {"overall": scores}, "raters": raters}
        for n, (raters, scores) in enumerate(given)
    ]
    annotated = read_set(written(tmp_path, rows)).rows
    assert [one.ratings["overall"] for one in annotated] == [(1, 2), (None, None, 3), (4, None, 5)]
    assert [one.dialogue_id for one in annotated] == ["0", "1", "2"]
    rows[1]["annotations"] = {"overall": [3]}
    assert "row 2: 2 raters, but 1 scores of 'overall'" in said(written(tmp_path, rows))


def test_eval_leaves_out_rows_without_a_response_and_references_beyond_the_first(tmp_path: Path) -> None:
    row = {"context": ["a"], "response": "r", "annotations": {"overall": [1, float("nan"), 3]}}
    blank = [{**row, "response": None}, {**row, "response": " "}, {"context": ["a"], "annotations": {}}]
    annotated = read_set(written(tmp_path, [*blank, {**row, "reference": ["x", "y", "z"]}]))
    (one,) = annotated.rows
    assert (one.dialogue_id, one.reference, one.ratings) == ("3", "x", {"overall": (1.0, None, 3.0)})
    assert annotated.summary == (
        "read as eval: 1 response, rated 1 to 3; "
        "left out: 3 rows without a response, 2 references beyond the first of a response, "
        "1 rating given as N/A or left empty"
    )
    assert "row 1: response is not text" in said(written(tmp_path, [{**row, "response": [5]}]))


def test_compressed_files_are_read(tmp_path: Path) -> None:
    for name, rows in (("a.json", [FED, FED]), ("a.csv", "context,response,score\r\na,b,1\r\n")):
        plain, packed = written(tmp_path, rows, name), tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        assert read_set(packed).rows == read_set(plain).rows
        packed.write_bytes(packed.read_bytes()[:-9])
        assert "the gzip data is damaged or cut off" in said(packed)


# USR


def test_usr(tmp_path: Path) -> None:
    annotated = read_set(written(tmp_path, [USR, USR]))
    assert annotated.layout == "usr"
    true, generated = annotated.rows[:2]
    assert true.context == generated.context == ("hello there", "do you sail ?")
    assert (generated.response, generated.reference) == ("i sail sail .", "every summer .")
    assert (generated.system, generated.ratings) == ("Seq2Seq", {"Natural": (1.0, 1.0), "Overall": (2.0,)})
    assert (true.ground_truth, generated.ground_truth) == (True, False)
    assert [row.dialogue_id for row in annotated.rows] == ["0", "0", "1", "1"]
    left_out = "left out: 2 ratings given as N/A or left empty"
    assert annotated.summary == f"read as usr: 4 responses of 2 systems, rated 1 to 5; {left_out}"
    # Inside an object, with lists of turns and scores apart.
    answer = {"response": "x", "model": "m", "annotators": ["a"], "scores": {"Natural": [3, 2], "Overall": 4}}
    rows = [{"context": ["hello", "do you sail ?"], "responses": [answer]}]
    annotated = read_set(written(tmp_path, json.dumps({"version": 1, "data": rows}, indent=2)))
    (row,) = annotated.rows
    assert (annotated.layout, row.context) == ("usr", ("hello", "do you sail ?"))
    assert row.ratings == {"Natural": (3.0, 2.0), "Overall": (4.0,)}


# FED


def test_fed(tmp_path: Path) -> None:
    annotated = read_set(written(tmp_path, [FED, WHOLE, FED]))
    assert annotated.layout == "fed"
    row = annotated.rows[0]
    assert row.context == ("Hi!", "Hello: how are you?\nand yours?", "Fine")
    assert (row.response, row.system, row.reference) == ("Good to hear", "Ada", None)
    assert row.ratings == {"Interesting": (0.0, 2.0)}
    assert annotated.left_out == {"row without a response": 1, "rating given as N/A or left empty": 6}
    # With speakers in lower case, and a list of turns.
    listed = {**FED, "context": FED["context"].lower().split("\n"), "response": "system: good"}
    row = read_set(written(tmp_path, [listed])).rows[0]
    assert (row.context, row.response) == (("hi!", "hello: how are you?\nand yours?", "fine"), "good")


# GRADE


def test_grade_of_one_data_set_and_of_several_which_wants_a_part(tmp_path: Path) -> None:
    annotated = read_set(written(tmp_path, [GRADE]))
    (row,) = annotated.rows
    assert (annotated.layout, annotated.part) == ("grade", None)
    assert row.context == ("do you sail ?", "every summer .")
    assert (row.dialogue_id, row.response, row.system) == ("7", "i like boats .", "ranker")
    assert row.ratings == {"coherence": (4.0, 5.0, 3.0)}
    path = written(tmp_path, [GRADE, {**GRADE, "Dataset": "talk"}])
    assert "holds the sets chat, talk; name one, as in --layout grade:chat" in said(path)
    assert "no set 'gossip'; it holds chat, talk" in said(path, "grade:gossip")
    annotated = read_set(path, "grade:talk")
    assert (len(annotated.rows), annotated.part) == (1, "talk")
    assert annotated.summary.startswith("read as grade:talk: 1 response")


# ConTurE


def conture_turn(user: object, chatbot: object, **ratings: object) -> dict[str, Any]:
    return {"user": user, "chatbot": chatbot, **ratings}


CONTURE: dict[str, Any] = {
    "dialog_id": 41,
    "turns": [
        conture_turn("User: Any fish?", "Chatbot: Cod.", **{"overall impression": 2}),
        conture_turn("User: How much?", "Chatbot: ", **{"overall impression": 0}),
        conture_turn("And now?", "chatbot:  Two crowns", **{"overall impression": [1, None]}),
    ],
    "dialog_ratings": [{"coherent": 3}],
}


def test_conture(tmp_path: Path) -> None:
    annotated = read_set(written(tmp_path, [CONTURE, {**CONTURE, "dialog_id": 42, "dialog_ratings": {}}]))
    first, second, *others = annotated.rows
    assert (first.dialogue_id, first.context, first.response) == ("41", ("Any fish?",), "Cod.")
    assert second.context == ("Any fish?", "Cod.", "How much?", "And now?")
    assert (second.response, second.system) == ("Two crowns", None)
    assert [row.ratings for row in (first, second)] == [{"overall impression": (n,)} for n in (2.0, 1.0)]
    assert [row.dialogue_id for row in others] == ["42", "42"]
    assert annotated.summary == (
        "read as conture: 4 responses, rated 1 to 2; "
        "left out: 1 rating of a whole dialogue, 2 rows without a response, "
        "2 ratings given as N/A or left empty"
    )


# Zhao et al.

ZHAO: dict[str, Any] = {
    "d3": {
        "context": [["A", "Any fish? "], ["B", "Which?"]],
        "reference": ["A", "Cod."],
        "responses": {
            "s2s": {
                "uttr": "Eel .",
                "scores": {
                    "w9": {"overall": 4, "fact": "true", "overall_is_outlier": False},
                    "w1": {"overall": 2, "fact": "na"},
                },
            },
            "hred": {"uttr": "Hm.", "scores": {"w9": {"overall": 1, "fact": "false"}}},
            "vhred": {"uttr": "What?"},
        },
    }
}


def test_zhao(tmp_path: Path) -> None:
    annotated = read_set(written(tmp_path, ZHAO))
    first, second = annotated.rows
    assert (first.dialogue_id, first.context, first.response) == ("d3", ("Any fish?", "Which?"), "Eel .")
    assert (first.system, first.reference) == ("s2s", "Cod.")
    for change in ({"context": "a"}, {"responses": {"s2s": 3}}, {"reference": 5}):
        malformed = written(tmp_path, {**ZHAO, "d4": {**ZHAO["d3"], **change}}, "malformed.json")
        assert "dialogue d4: expected context, reference and responses of systems" in said(malformed)
    assert first.ratings == {"overall": (2.0, 4.0), "fact": (None, 1.0)}
    assert second.ratings == {"overall": (None, 1.0), "fact": (None, 0.0)}
    assert annotated.summary == (
        "read as zhao: 2 responses of 2 systems, rated 0 to 4; left out: 1 rating given as N/A or left empty, "
        "1 response without any rating"
    )


# DailyDialog++


def test_dailydialog_plusplus(tmp_path: Path) -> None:
    row = {"id": 8, "context": ["Any fish?"], "positive_responses": ["Cod.", "Eel."]}
    row["adversarial_negative_responses"] = ["Fish live in water."]
    annotated = read_set(written(tmp_path, [row, {**row, "random_negative_responses": ["No."]}]))
    assert annotated.layout == "dailydialog-plusplus"
    assert [row.ratings["relevance"] for row in annotated.rows] == [(n,) for n in (1, 1, 0, 1, 1, 0, 0)]
    assert {row.system for row in annotated.rows} == {"positive", "adversarial_negative", "random_negative"}
    malformed = written(tmp_path, [{**row, "positive_responses": 1}])
    assert "row 1: no list of positive_responses" in said(malformed)


# Label Studio


def answer(name: str, kind: str, value: object) -> dict[str, Any]:
    return {"from_name": name, "to_name": "chat", "type": kind, "value": {kind: value}}


def test_label_studio(tmp_path: Path) -> None:
    """Three annotators, one of whom skipped a task; ratings, numbers, choices, and a comment that is no rating."""
    data = {"dialogue": [{"author": "ann", "text": "Any fish?"}], "response": "Cod.", "model": "cook"}
    by_five = [answer("quality", "rating", 4), answer("fluent", "choices", ["yes"])]
    by_five.append(answer("why", "text", ["ok"]))
    annotations = [
        {"completed_by": 5, "result": by_five},
        {"completed_by": {"id": 3, "email": "x@y.z"}, "result": [answer("quality", "number", 2.5)]},
        {"completed_by": 9, "was_cancelled": True, "result": [answer("quality", "rating", 1)]},
    ]
    other = {**data, "response": "Eel."}
    again = [{"completed_by": 5, "result": [answer("quality", "choices", ["3 - fair"])]}]
    tasks = [
        {"id": 71, "data": data, "annotations": annotations, "predictions": []},
        {"id": 72, "data": other, "annotations": again},
    ]
    annotated = read_set(written(tmp_path, tasks))
    cod, eel = annotated.rows
    assert (cod.context, cod.response, cod.system) == (("Any fish?",), "Cod.", "cook")
    # Raters in order of their names: 3, 5.
    assert cod.ratings == {"quality": (2.5, 4.0), "fluent": (None, 1.0)}
    assert (eel.response, eel.ratings) == ("Eel.", {"quality": (None, 3.0)})
    assert annotated.layout == "label-studio"
    assert "left out: 1 task that an annotator skipped, 1 answer without a rating" in annotated.summary
    read = "read dialogue from 'task', criterion from 'from_name', rater from 'completed_by'"
    assert read in annotated.summary
    mapped = read_set(written(tmp_path, tasks), mapping={"reference": "model"})
    assert mapped.rows[0].reference == "cook"


def test_a_malformed_label_studio_file(tmp_path: Path) -> None:
    data = {"data": {"context": "a", "response": "b"}}
    whole = {**data, "annotations": [{"result": [answer("q", "rating", 1)]}]}
    fault = "row 2: expected an object with data and a list of annotations"
    assert fault in said(written(tmp_path, [whole, data]))
    no_object = {"data": {}, "annotations": [3]}
    assert "row 2, annotation 1: no list result" in said(written(tmp_path, [whole, no_object]))
    unknown = {**whole, "data": {"before": "a", "after": "b"}}
    assert "no column is known as context or response" in said(written(tmp_path, [unknown, unknown]))


# Votes on pairs


def vote(winner: object, judge: str | None = "r1", swapped: bool = False, **more: object) -> dict[str, Any]:
    """A vote on what two systems answer to one question; by default `long` is model_a."""
    sides = [("long", "In the old harbour."), ("short", "There.")]
    row: dict[str, Any] = {"question_id": "q7", "winner": winner, "judge": judge}
    for side, (model, answer) in zip("ba" if swapped else "ab", sides, strict=True):
        messages = [("system", "Be kind."), ("user", "Where?"), ("assistant", answer)]
        row[f"model_{side}"] = model
        row[f"conversation_{side}"] = [{"role": role, "content": text} for role, text in messages]
    return {**row, **more}


VOTES = [
    vote("model_a"),
    vote("model_a", "r2", swapped=True),
    vote("tie (bothbad)", "r3"),
    vote("model_b", "r4"),
    vote("model_a", "r4"),
    vote(None, "r5"),
]


def pairwise_files(tmp_path: Path) -> list[Path]:
    cells = [{name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()} for row in VOTES]
    table = io.StringIO()
    writer = csv.DictWriter(table, list(VOTES[0]))
    writer.writeheader()
    writer.writerows(cells)
    paths = [
        written(tmp_path, VOTES, "votes.json"),
        written(tmp_path, "\n".join(map(json.dumps, VOTES)), "votes.jsonl"),
        written(tmp_path, table.getvalue(), "votes.csv"),
    ]
    for name, rows in (("lists", VOTES), ("cells", cells)):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
        paths.append(tmp_path / f"{name}.parquet")
    return paths


def test_votes_on_a_pair_are_ratings_of_its_two_responses(tmp_path: Path) -> None:
    for path in pairwise_files(tmp_path):
        annotated = read_set(path)
        long, short = annotated.rows
        assert (long.system, short.system, long.context) == ("long", "short", ("Where?",))
        assert long.ratings == {"preference": (1.0, 0.0, 0.5, 0.5)}  # r4 voted for each once
        assert short.ratings == {"preference": (0.0, 1.0, 0.5, 0.5)}
        assert long.dialogue_id == short.dialogue_id == "1: q7, long / short"
        assert annotated.summary == (
            "read as pairwise: 2 responses of 2 systems, rated 0 to 1; "
            "5 votes on 1 pair of responses; left out: 1 vote of a rater "
            "on a pair again, averaged with those before, 1 vote without a winner"
        )


def test_votes_without_models_are_of_their_texts(tmp_path: Path) -> None:
    """The same two responses in either order are one pair; a vote on one response twice says nothing."""
    names = ("prompt", "response_a", "response_b", "winner", "annotator")
    votes = [
        ("Where?", "here", "there", "A", "ann"),
        *[("Where?", "there", "here", "b", "ben")] * 2,
        ("Where?", "here", "here", "tie", "ann"),
        ("Who?", "here", "no", "both_bad", "ann"),
    ]
    annotated = read_set(written(tmp_path, [dict(zip(names, one, strict=True)) for one in votes]))
    assert [(row.dialogue_id, row.response, row.system, row.ratings) for row in annotated.rows] == [
        ("1", "here", None, {"preference": (1.0, 1.0)}),
        ("1", "there", None, {"preference": (0.0, 0.0)}),
        ("2", "here", None, {"preference": (0.5,)}),
        ("2", "no", None, {"preference": (0.5,)}),
    ]
    assert "1 vote on two responses that are the same" in annotated.summary


def test_what_was_chosen_and_rejected_is_a_vote(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Where?"}
    texts = {"chosen": "here", "rejected": "no"}
    talks = {side: [asked, {"role": "assistant", "content": text}] for side, text in texts.items()}
    for sides in (texts, talks):
        annotated = read_set(written(tmp_path, [{"prompt": "Where?", **sides, "chosen_model": "x"}]))
        assert annotated.layout == "pairwise"
        assert [(row.context, row.response, row.system, row.ratings) for row in annotated.rows] == [
            (("Where?",), "no", None, {"preference": (0.0,)}),
            (("Where?",), "here", "x", {"preference": (1.0,)}),
        ]


def test_raters_of_an_object_are_its_keys(tmp_path: Path) -> None:
    marks = [{"ann": 1, "ben": 2}, {"ben": 3}, {"cy": 4, "ann": 5}]
    rows = [{"context": f"c{n}", "response": "r", "marks": given} for n, given in enumerate(marks)]
    path = written(tmp_path, rows)
    annotated = read_set(path, "jsonl", {"score.overall": "marks.*"})
    assert [row.ratings["overall"] for row in annotated.rows] == [(1, 2), (None, 3), (5, None, 4)]


def test_of_a_later_turn_what_the_conversations_share_is_the_context(tmp_path: Path) -> None:
    more = [{"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "Quite."}]
    first, later = vote("model_a", turn=1), vote("model_b", turn=2)
    for row in (first, later):
        for side in "ab":
            row[f"conversation_{side}"] = [*row[f"conversation_{side}"], *more]
    annotated = read_set(written(tmp_path, [first, later]))
    assert [row.context for row in annotated.rows] == [("Where?",)] * 2 + [("Where?", "Sure?")] * 2
    assert [row.response for row in annotated.rows] == ["In the old harbour.", "There.", "Quite.", "Quite."]
    assert annotated.left_out == {"answer before, to which the other system's differs": 2}


# What is wrong, and what it is

NO_TEXT = [{"role": "assistant", "content": 5}]
OTHER = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Me"}]


@pytest.mark.parametrize(
    ("whole", "change", "named"),
    [
        (USR, {"responses": 5}, "row 2: no list of responses"),
        (USR, {"responses": [1]}, "row 2, response 1: expected an object"),
        (USR, {"responses": [{"model": "m"}]}, "row 2, response 1: no response"),
        (USR, {"responses": [{"response": "r", "model": 3}]}, "row 2, response 1: model is not text"),
        (USR, {"context": [5]}, "row 2, response 1: context is neither text nor a list of turns"),
        (FED, {"annotations": {"Correct": [[3], {"a": 1}]}}, "row 2: rating {'a': 1} of 'Correct'"),
        (GRADE, {"HumanScores": "[4,"}, "row 2: rating '[4,' of 'coherence'"),
        (CONTURE, {"turns": "none"}, "row 2: no list of turns"),
        (CONTURE, {"turns": [5]}, "row 2, turn 1: expected an object, not 5"),
        (CONTURE, {"turns": [conture_turn("a", 7, good=1)]}, "row 2, turn 1: chatbot is not text"),
        (vote("tie"), {"winner": "model_c"}, "row 2: the winner is 'model_c', not one of model_a, a"),
        (vote("tie"), {"conversation_b": "Hi"}, "row 2: conversation_b is no list of messages with role"),
        (vote("tie"), {"conversation_b": []}, "row 2: conversation_b has no answer 1"),
        (vote("tie"), {"turn": 2}, "row 2: conversation_a has no answer 2"),
        (vote("tie"), {"conversation_b": NO_TEXT}, "row 2: a message of conversation_b is not text"),
        (vote("tie"), {"conversation_a": OTHER}, "row 2: the two conversations differ in what the user says"),
    ],
)
def test_a_malformed_row_is_named(
    tmp_path: Path, whole: dict[str, Any], change: dict[str, Any], named: str
) -> None:
    path = written(tmp_path, [whole, {**whole, **change}])
    assert said(path).startswith(f"{path}, {named}")


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        ("a.json", [WHOLE], "fed"),
        ("a.jsonl", json.dumps(vote("tie")), "pairwise"),
        ("a.json", [{"data": {"context": "a"}, "annotations": []}], "label-studio"),
        ("a.txt", [{"context": "a", "response": "b", "annotations": {"x": [1]}}], "eval"),
        ("a.jsonl", '{"context": "a", "response": "b", "annotations": {"x": [1]}}', "eval"),
        ("a.jsonl", '{"context": "a", "response": "b", "score": 1}', "jsonl"),
        ("a", "context,response,score\na,b,1\n", "csv"),
        ("a", "context\tresponse\tscore\na\tb\t1\n", "tsv"),
        ("a.json", "[]", "eval"),
        ("a.json", "no json", "eval"),
    ],
)
def test_the_layout_is_told_from_the_content(tmp_path: Path, name: str, content: object, layout: str) -> None:
    assert layout_of(Source(written(tmp_path, content, name))) == layout


def test_an_unknown_layout_lists_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.dat"
    message = f"{path}: the content is of no known layout; the layouts are {', '.join(LAYOUTS)}; name one with --layout"
    row = "; a row is {'question': 'a', 'reply': 'b'}; name its keys with --map, as in --map context=KEY.KEY"
    for content, more in (("one word\n", ""), ([{"question": "a", "reply": "b"}], row)):
        assert said(written(tmp_path, content, "a.dat")).startswith(message + more)
    assert "is a folder; give a file" in said(tmp_path)
    twice = written(tmp_path, "context,response,score,score\na,b,1,2\n", "t.csv")
    assert "the column 'score' is there twice; rename one" in said(twice)
    assert f"no layout 'bogus'; the layouts are {', '.join(LAYOUTS)}" in said(path, "bogus")
    assert "only grade files hold several sets" in said(path, "usr:one")
    assert "read as fed: 0 responses" in said(written(tmp_path, [USR], "usr.json"), "fed")


def test_votes_with_a_mark_at_the_side_that_won(tmp_path: Path) -> None:
    lists = {"prompt": '["Where?", "When?"]'}
    lists |= {"response_a": '["Here.", null]', "response_b": '["Here.", "Now."]'}
    marks = {"winner_model_a": "0", "winner_model_b": "1", "winner_tie": "0"}
    rows = [lists | marks, lists | marks | {"prompt": '["Who?", "When?"]', "winner_model_b": "0"}]
    annotated = read_set(written(tmp_path, rows))
    assert [(row.context, row.response, row.ratings["preference"]) for row in annotated.rows] == [
        (("Where?", "Here.", "When?"), "Now.", (1.0,)),
        (("Who?", "Here.", "When?"), "Now.", (0.5,)),
    ]
    no_list = written(tmp_path, [rows[0] | {"prompt": "Where?"}], "b.json")
    assert "row 1: prompt is no list of texts" in said(no_list)
    chosen = {"prompt": "Where?", "chosen": "here", "rejected": "there"}
    for row, name in ((chosen, "rejected"), (rows[0], "winner_model_b"), (rows[0], "prompt")):
        lacking = written(tmp_path, [row, {key: row[key] for key in row if key != name}], "c.json")
        assert f"row 2: no {name}" in said(lacking)


def test_votes_of_other_names_and_transcripts(tmp_path: Path) -> None:
    alpaca = {"output_1": "Here.", "output_2": "No.", "generator_1": "x", "generator_2": "y"}
    asked: list[Any] = [("Where?", 2.0), ("Who?", "x")]
    rows = [alpaca | {"instruction": text, "preference": preferred} for text, preferred in asked]
    annotated = read_set(written(tmp_path, rows, "a.json"))
    assert [(one.response, one.system, one.ratings["preference"]) for one in annotated.rows] == [
        *(("Here.", "x", (0.0,)), ("No.", "y", (1.0,)), ("Here.", "x", (1.0,)), ("No.", "y", (0.0,))),
    ]
    talk = "\n\nHuman: Where?\n\nAssistant: Here.\n\nMind the step.\n\nHuman: Thanks\n\nAssistant: "
    annotated = read_set(written(tmp_path, [{"chosen": f"{talk}Bye", "rejected": f"{talk}No"}], "b.json"))
    assert [(one.context, one.response) for one in annotated.rows] == [
        (("Where?", "Here.\n\nMind the step.", "Thanks"), text) for text in ("Bye", "No")
    ]
    unasked = [{"message": "Where?", "chosen": "Here.", "rejected": "No."}]
    assert "row 1: no context" in said(written(tmp_path, unasked, "c.json"))


def test_a_table_of_scores_may_have_winners(tmp_path: Path) -> None:
    row = {"context": "a", "response": "b", "score": 1, "response_a": "b", "response_b": "c", "winner": "a"}
    assert read_set(written(tmp_path, [row])).rows[0].ratings == {"score": (1.0,)}


def test_what_is_no_rating_is_left_out_and_counted(tmp_path: Path) -> None:
    rated = {"overall": [4, 5], "annotator_ids": [7, 8], "num_raters": 2, "comment": "good"}
    annotated = read_set(written(tmp_path, [{"context": "a", "response": "b", "annotations": rated}]))
    assert annotated.rows[0].ratings == {"overall": (4.0, 5.0)}
    for name in ("annotator_ids", "comment"):
        assert f"value of {name!r}, which is no rating" in annotated.left_out


def test_responses_by_their_ids_and_in_groups(tmp_path: Path) -> None:
    row = {"context": "a", "response": "b", "score": 1}
    for value in ({"x": row, "y": {**row, "score": 2}}, {"train": [row], "test": [{**row, "score": 2}]}):
        annotated = read_set(written(tmp_path, value))
        assert [one.ratings for one in annotated.rows] == [{"score": (1.0,)}, {"score": (2.0,)}]
