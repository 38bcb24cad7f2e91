"""Tables of scores by `--map`: which column is what, a rater a row, and which file and line a message names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssrem.annotated_sets import AnnotatedSet, read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.annotated_sets.columns import divided
from ssrem.errors import AnnotationError


def read(tmp_path: Path, content: str, *pairs: str, name: str = "t.csv") -> AnnotatedSet:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return read_set(path, mapping=dict(pair.split("=", 1) for pair in pairs))


def said(tmp_path: Path, content: str, *pairs: str, name: str = "t.csv") -> str:
    with pytest.raises(AnnotationError) as raised:
        read(tmp_path, content, *pairs, name=name)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def ratings(tmp_path: Path, content: str, *pairs: str, name: str = "t.csv") -> list[Mapping[str, Any]]:
    return [row.ratings for row in read(tmp_path, content, *pairs, name=name).rows]


def table(header: str, rows: Iterable[Iterable[object]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def of_json(rows: Iterable[object]) -> str:
    return "\n".join(map(json.dumps, rows))


def quoted(cell: str) -> str:
    return '"{}"'.format(cell.replace('"', '""'))


HEAD = "context,response,score\n"


def test_well_known_names_need_no_map(tmp_path: Path) -> None:
    header, cells = "Dialogue ID,context,Reply,Model,reference,Overall\n", '7,"a\n b ",r,gpt,t,4\n'
    annotated = read(tmp_path, f"{header}{cells}8,c,r,gpt,NO REF,4\n")
    row, without = annotated.rows
    assert without.reference is None
    assert (annotated.layout, row.dialogue_id, row.context, row.response) == ("csv", "7", ("a", "b"), "r")
    assert (row.system, row.reference, row.ratings) == ("gpt", "t", {"Overall": (4.0,)})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_mapped_columns_alike_in_every_table(tmp_path: Path, name: str) -> None:
    rows = [["ctx", "Fluency", "Relevance", "resp"], ["a ||| b", "3", "4.5", "r"], ["c", "N/A", "2", "s"]]
    if name == "t.jsonl":
        content = of_json(dict(zip(rows[0], row, strict=True)) for row in rows[1:])
    else:
        content = "".join(("," if name == "t.csv" else "\t").join(row) + "\n" for row in rows)
    pairs = ["context=ctx", "response=resp", "score=Fluency+Relevance", "separator=|||"]
    annotated = read(tmp_path, content, *pairs, name=name)
    assert [(row.dialogue_id, row.context, row.ratings) for row in annotated.rows] == [
        ("0", ("a", "b"), {"Fluency": (3.0,), "Relevance": (4.5,)}),
        ("1", ("c",), {"Relevance": (2.0,)}),
    ]
    assert annotated.left_out == {"rating given as N/A or left empty": 1}


def test_a_rater_without_a_score_leaves_the_others_their_columns(tmp_path: Path) -> None:
    content = "context,response,r1,r2,r3,fluency\na,b,,5,3,1\nc,d,1,N/A,,2\n"
    annotated = read(tmp_path, content, "score.overall=r1+r2+r3", "score=fluency")
    assert [row.ratings["fluency"] for row in annotated.rows] == [(1.0,), (2.0,)]
    assert [row.ratings["overall"] for row in annotated.rows] == [(None, 5.0, 3.0), (1.0,)]
    assert annotated.rows[0].scores("overall") == [5.0, 3.0]
    assert labels_of(annotated.rows).human.tolist() == [4.0, 1.0]
    assert annotated.left_out == {"rating given as N/A or left empty": 3}


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_a_score_that_is_nan_is_absent(tmp_path: Path, name: str) -> None:
    row = {"context": "a", "response": "b", "r1": float("nan"), "r2": 4.0}
    if name == "t.jsonl":
        (tmp_path / name).write_text(json.dumps(row))
    else:
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / name)
    annotated = read_set(tmp_path / name, mapping={"score.overall": "r1+r2"})
    assert annotated.rows[0].ratings == {"overall": (None, 4.0)}
    assert annotated.left_out == {"rating given as N/A or left empty": 1}


FRAME = {"context": {"0": "a", "1": "b"}, "response": {"0": "r", "1": "r"}, "score": {"0": 1, "1": 2}}
OF_ZERO = [
    {"context": f"c{n // 2}", "response": "r", "rater": 1 - n % 2, "score": n % 2 + 1} for n in range(8)
]
LABELS = [
    {"context": "c", "response": f"r{n}", "label": label} for n, label in enumerate((True, False, "no", None))
]
QUESTION = "How good? 1 = bad; 2 = poor; 3 = ok; 4 = good"
GIVEN: dict[str, tuple[str, str, list[tuple[tuple[str, ...], dict[str, tuple[float | None, ...]]]]]] = {
    "turns a column each, context=t1+t2": (
        *("csv", "t1,t2,response,score\nhi,ho,r,1\n,ho,r,2\n"),
        [(("hi", "ho"), {"score": (1,)}), (("ho",), {"score": (2,)})],
    ),
    "lists in JSON lines": (
        *("jsonl", '{"context": ["a\\nb", "c"], "response": "r", "score": [4, null, 5]}'),
        [(("a\nb", "c"), {"score": (4, None, 5)})],
    ),
    "a JSON list of rows": (
        *("json", json.dumps([{"history": ["a"], "reply": f"r{n}", "rating": n} for n in (1, 2)])),
        [(("a",), {"rating": (1,)}), (("a",), {"rating": (2,)})],
    ),
    "a data frame as pandas writes it": (
        *("json", json.dumps(FRAME)),
        [(("a",), {"score": (1,)}), (("b",), {"score": (2,)})],
    ),
    "columns of a form by the last part of their names": (
        *("csv", "WorkerId,Input.context,Input.response,Answer.overall\nW1,c,r,4\nW2,c,r,2\n"),
        [(("c",), {"Answer.overall": (4, 2)})],
    ),
    f"a header with other signs than the delimiter, score={QUESTION}": (
        *("csv", f"context,response,{QUESTION}\nc,b,3\n"),
        [(("c",), {QUESTION: (3,)})],
    ),
    "a rater called zero": ("jsonl", of_json(OF_ZERO), [((f"c{n}",), {"score": (2, 1)}) for n in range(4)]),
    "labels of two words, score=label": (
        *("csv", "context,response,label\nc,b,Pass\nc,d,FAIL\nc,e,no\nc,f,\n"),
        [(("c",), {"label": (n,)}) for n in (1, 0, 0)],
    ),
    "labels in JSON, score=label": ("jsonl", of_json(LABELS), [(("c",), {"label": (n,)}) for n in (1, 0, 0)]),
}


@pytest.mark.parametrize("given", GIVEN)
def test_tables_as_people_give_them(tmp_path: Path, given: str) -> None:
    end, content, rows = GIVEN[given]
    annotated = read(tmp_path, content, *given.split(", ")[1:], name=f"t.{end}")
    assert [(row.context, row.ratings) for row in annotated.rows] == rows


@pytest.mark.parametrize(
    ("cell", "turns"),
    [
        ('["Hi", "How are you?"]', ("Hi", "How are you?")),
        ("['Hi', \"How's it?\"]", ("Hi", "How's it?")),
        ('[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]', ("Hi",)),
        ("['Hi' \"How's it?\"\n 'Ho']", ("Hi", "How's it?", "Ho")),  # an array of numpy
        ("[laughs] Hi", ("[laughs] Hi",)),
        ("['Hi' and so on", ("['Hi' and so on",)),
        ("[1, 2]", ("[1, 2]",)),
        ("open a ||| b\nnow", ("open a ||| b", "now")),  # marks are text beside line breaks
        ("<s>old</s> new", ("<s>old</s> new",)),
        *((f"hi{mark}and you?", ("hi", "and you?")) for mark in ("__eou__", " EOU ", "<br>", "\\n", "\t")),
    ],
)
def test_a_cell_may_hold_several_turns(tmp_path: Path, cell: str, turns: tuple[str, ...]) -> None:
    annotated = read(tmp_path, HEAD + f"{quoted(cell)},r,1\n" * 2)
    assert [row.context for row in annotated.rows] == [turns, turns]


@pytest.mark.parametrize("mark", ["__eou__", "<eou>", "[SEP]", "</s>", "|||"])
def test_marks_between_turns_are_recognised(tmp_path: Path, mark: str) -> None:
    annotated = read(tmp_path, f"{HEAD}Hi {mark} Ho {mark},r,1\n")
    assert annotated.rows[0].context == ("Hi", "Ho")
    assert annotated.columns.endswith(f"; turns end at {mark!r}")
    told = read(tmp_path, f"{HEAD}Hi {mark} Ho;x,r,1\n", "separator=;")
    assert told.rows[0].context == (f"Hi {mark} Ho", "x")


def test_messages_of_a_chat_log_are_turns(tmp_path: Path) -> None:
    context = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}, "Ho"]
    context.append({"role": "assistant", "content": None, "tool_calls": []})
    line = {"context": context, "response": "r", "score": 1}
    assert read(tmp_path, json.dumps(line), name="t.jsonl").rows[0].context == ("Hi", "Ho")
    rated = {"context": context, "response": "r", "annotations": {"overall": [1]}}
    assert read(tmp_path, json.dumps([rated]), name="t_eval.json").rows[0].context == ("Hi", "Ho")
    line["context"] = [{"role": "user"}]
    assert "context is neither text nor a list of turns" in said(tmp_path, json.dumps(line), name="t.jsonl")


@pytest.mark.parametrize(
    ("cell", "scores"),
    [
        ("4 - good", (4,)), ("4: good", (4,)), ("-1.5 (bad)", (-1.5,)), ("2.", (2,)), ("3 = fair", (3,)),
        (" 2.5 / 4", (2.5,)), ("4 out of 5", (4,)), ("−2", (-2,)), ("Y", (1,)), ("[1, 2]", (1, 2)),
        ("[None, 5, 4]", (None, 5, 4)), ("[5 5 4]", (5, 5, 4)), ("['5', '4 stars', 'agree (3)']", (5, 4, 3)),
        ("4;5; 3.5", (4, 5, 3.5)), ('[{"rating": 5}]', (5,)),
    ],
)  # fmt: skip
def test_scores_as_programs_print_them(tmp_path: Path, cell: str, scores: tuple[float | None, ...]) -> None:
    content = f"context;x,response,marks\na,b,{quoted(cell)}\n"
    assert ratings(tmp_path, content, "context=context;x", "score=marks") == [{"marks": scores}]


def test_what_is_no_single_number_is_refused(tmp_path: Path) -> None:
    for cell in ("6/5", "1/0", "86%", "4-5", "4 5", "okay", "4 of 5 - good", "4,5"):
        message = said(tmp_path, f"{HEAD}c,r,{quoted(cell)}\n")
        assert "write it as a number, such as 4, '4 - good' or '4/5'" in message, cell
    for date in ("5-Apr", "05-May", "4 - sept"):  # what spreadsheets make of 4/5
        assert f"rating {date!r} of 'score' is neither" in said(tmp_path, f"{HEAD}a,b,{date}\n")


def test_scores_out_of_a_most_and_words_beside_numbers_of_a_scale(tmp_path: Path) -> None:
    """`good` among ratings from 1 to 5 would be a 1, the worst."""
    content = "context,response,stars\na,r,3/7\nb,s,0/7\nc,t,7/7\n"
    assert ratings(tmp_path, content, "score=stars") == [{"stars": (n,)} for n in (3.0, 0.0, 7.0)]
    message = said(tmp_path, content + "d,u,3/10\n", "score=stars")
    assert "line 5: rating '3/10' of 'stars' is out of 10, those before are out of 7" in message
    message = said(tmp_path, f"{HEAD}a,r,1\nb,s,good\nc,t,4\n")
    assert "line 4: 'score' is rated 'good' (line 3), which stands for 1 or 0, and 4 (line 4)" in message


# A well-known name is a guess until the values bear it out


def test_a_column_without_a_name_is_no_field(tmp_path: Path) -> None:
    """The first column is the row index of a data frame."""
    answers = [(f"Where is ship {n}?", f"In port {n}.", rater) for n in range(6) for rater in ("x", "y")]
    rows = [(at, *answer, at % 4) for at, answer in enumerate(answers)]
    annotated = read(tmp_path, table(",context,response,rater,rating", rows))
    shapes = [(row.system, row.reference, len(row.ratings["rating"])) for row in annotated.rows]
    assert shapes == [(None, None, 2)] * 6
    assert annotated.summary == (
        "read as csv: 6 responses, rated 0 to 3; "
        "read context from 'context', response from 'response', score from 'rating', "
        "rater from 'rater'; not used: a column without a name"
    )


def test_names_that_the_values_contradict(tmp_path: Path) -> None:
    """The system's turn, a number of the response and one of the rating are no system, dialogue or rater."""
    rows = [
        (f"c{n}", f"turn {n}", f"r{n}", n % 2 + 1, f"bot{n % 2}", f"job{n}", "poor" if n else "fair")
        for n in range(8)
    ]
    content = table("context,system,reply,response,model,annotator,rating", rows)
    annotated = read(tmp_path, content, "score=response")
    assert {row.system for row in annotated.rows} == {"bot0", "bot1"}
    assert [row.ratings for row in annotated.rows][:2] == [{"response": (1.0,)}, {"response": (2.0,)}]
    assert "not used: system, annotator, rating" in annotated.summary


def test_raters_whose_names_never_repeat_are_numbered_by_position(tmp_path: Path) -> None:
    rows = [(f"c{n // 2}", f"r{n // 2}", f"assignment {n}", n % 4) for n in range(12)]
    annotated = read(tmp_path, table("context,response,WorkerId,score", rows))
    assert [len(row.ratings["score"]) for row in annotated.rows] == [2] * 6
    assert "not used: WorkerId" in annotated.summary


def test_a_survey_calls_the_answer_on_its_scale_a_response(tmp_path: Path) -> None:
    rows = [(f"c{n}", n % 5, f"text {n}", n % 5) for n in range(8)]
    annotated = read(tmp_path, table("context,response,completion,score", rows))
    assert annotated.rows[3].response == "text 3"


def test_systems_that_answer_one_context_are_systems(tmp_path: Path) -> None:
    rows = [("c", f"r{n}", f"m{n}", n) for n in range(6)]
    annotated = read(tmp_path, table("context,response,model,score", rows))
    assert {row.system for row in annotated.rows} == {f"m{n}" for n in range(6)}


def test_decimal_commas_are_read_where_told(tmp_path: Path) -> None:
    content = "sep=;\ncontext;response;score\nc;r;3,5\n"
    assert "--map decimal=, if commas stand before decimals" in said(tmp_path, content)
    assert ratings(tmp_path, content, "decimal=,") == [{"score": (3.5,)}]


def test_a_file_in_another_encoding_or_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(f"{HEAD}疲れた,r,4\n".encode("shift_jis"))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 cut off")
    faults = {"a.csv": "save the file as UTF-8", "b.parquet": "not a Parquet file that can be read"}
    for name, fault in faults.items():
        with pytest.raises(AnnotationError, match=fault):
            read_set(tmp_path / name)


def test_a_json_list_of_rows_where_the_layout_or_its_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"q": "a", "r": "b", "stars": 3}, {"q": "c", "r": "d", "stars": null}]')
    for layout in ("jsonl", None):
        annotated = read_set(path, layout, {"context": "q", "response": "r", "score": "stars"})
        assert [row.ratings for row in annotated.rows] == [{"stars": (3.0,)}]
    assert "the content is of no known layout" in said(tmp_path, path.read_text(), name="t.json")


LONG = """\
context,response,model,criterion,score,rater
a,r,gpt,fluency,4,ann
a,s,gpt,fluency,1,ann
a,r,gpt,fluency,5,bob
a,r,gpt,relevance,,bob
a,r,gpt,relevance,2,ann
a,r,other,fluency,3,ann
"""


def test_raters_a_row_are_numbered_by_name_whatever_the_order_of_rows(tmp_path: Path) -> None:
    header, *lines = LONG.splitlines()
    lines += ["a,s,gpt,fluency,2,cid"]
    by_response = {
        ("r", "gpt"): {"fluency": (4.0, 5.0), "relevance": (2.0,)},
        ("s", "gpt"): {"fluency": (1.0, None, 2.0)},
        ("r", "other"): {"fluency": (3.0,)},
    }
    for order in (lines, lines[::-1], [*lines[3:], *lines[:3]]):
        annotated = read(tmp_path, "\n".join([header, *order]))
        assert {(row.response, row.system): row.ratings for row in annotated.rows} == by_response
        assert annotated.left_out == {"rating given as N/A or left empty": 1}
    in_order = read(tmp_path, "\n".join([header, *lines])).rows
    assert [(row.response, row.system) for row in in_order] == list(by_response)


def test_a_rater_who_scores_again(tmp_path: Path) -> None:
    again = LONG + "a,r,gpt,fluency,4,bob\n"
    fault = "t.csv, line 8: rater bob scores the response of line 2 by 'fluency' again"
    assert fault in said(tmp_path, again)
    header, *rows = again.splitlines()
    apart = "\n".join([f"{header},dialogue", *(f"{row},{number}" for number, row in enumerate(rows))])
    assert len(read(tmp_path, apart).rows) == 7 - 1  # one has no rating


def test_what_is_not_there_is_counted(tmp_path: Path) -> None:
    annotated = read(tmp_path, f"{HEAD}a,,1\na,  ,2\na,r,\n,r,5\n")
    assert [(row.context, row.ratings) for row in annotated.rows] == [((), {"score": (5.0,)})]
    assert annotated.left_out == {
        "row without a response": 2,
        "response without any rating": 1,
        "rating given as N/A or left empty": 1,
    }
    assert "2 rows without a response, 1 rating given" in annotated.summary


@pytest.mark.parametrize(
    ("content", "pairs", "named"),
    [
        (f"{HEAD}a,b,1\nc,d\n", (), "line 3: 2 cells, the header has 3"),
        (f"{HEAD}a,b,1\nc,d,okay\n", (), "line 3: rating 'okay' of 'score'"),
        (f'{HEAD}"a\nb",r,1\nc,"d"x,1\n', (), "line 4: a quote that is not closed, or out of place"),
        (HEAD, (), "nothing to compare with"),
        ("context,response\na,b\n", (), "no column is known as score; the columns are context, response"),
        ("ctx,response,score\na,b,1\n", ("context=contxt",), "--map names the column 'contxt', which is not"),
        ("context,response,score,score\na,b,1,1\n", (), "the column 'score' is there twice"),
        ("context,response,score,rater\na,b,1,\n", (), "line 2: no rater in the column 'rater'"),
        ("context,response,score,criterion\na,b,1,\n", (), "line 2: no criterion in the column 'criterion'"),
        ("context,response,a,b,criterion\na,b,1,2,c\n", ("score=a+b",), "a row has one score, not 2 (a, b)"),
    ],
)
def test_a_message_names_file_line_and_way_out(
    tmp_path: Path, content: str, pairs: tuple[str, ...], named: str
) -> None:
    # csv's own sniffing is of no interest here
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(AnnotationError) as raised:
        read_set(tmp_path / "t.csv", "csv", dict(pair.split("=", 1) for pair in pairs))
    assert named in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "t.csv"))


def test_a_mapping_that_is_none(tmp_path: Path) -> None:
    for pair, named in (
        ("scores=a", "no field 'scores'; did you mean score?; the fields are context, response, score"),
        ("response=a+b", "response is one column"),
        ("separator=", "write FIELD=COLUMN"),
        ("decimal=,,", "one sign"),
    ):
        message = said(tmp_path, f"{HEAD}a,b,1\n", pair)
        assert named in message and "--map" in message


def test_one_mapping_for_a_dump_and_annotated_sets() -> None:
    mapping = {"speaker": "S", "text": "T", "score.overall": "a+b", "context": "c"}
    assert divided(mapping) == ({"speaker": "S", "text": "T"}, {"score.overall": "a+b", "context": "c"})
    assert divided(None) == (None, None)


def criteria(tmp_path: Path, header: str, rows: Iterable[Iterable[object]]) -> list[str]:
    return list(ratings(tmp_path, table(header, rows))[0])


def test_the_column_of_people_is_read_or_asked_for(tmp_path: Path) -> None:
    rows = [(f"c{number}", "b", 0.3, number % 5) for number in range(6)]
    assert criteria(tmp_path, "context,response,score,human_quality", rows) == ["human_quality"]
    form = "Input.context,Input.response,Input.score,Answer.rating"
    assert criteria(tmp_path, form, rows) == ["Answer.rating"]
    for header, message in {
        "score,rating": "people may be in 'score' or 'rating'; name the one with --map score=",
        "human_a_score,human_b_score": "may be in 'human_a_score' or 'human_b_score'",
        "a.score,b.score": "no column is known as score",
        "judge.score,n": "no column is known as score",
    }.items():
        assert message in said(tmp_path, table(f"context,response,{header}", rows))
    verdicts = [(f"c{at}", "r", at % 5, ("pass", "fail")[at % 2]) for at in range(6)]
    assert criteria(tmp_path, "context,response,score,human_verdict", verdicts) == ["human_verdict"]
    words = [(f"c{at}", "r", at % 5, ("relevant", "unrelated")[at % 2]) for at in range(6)]
    assert "rating 'relevant' of 'human_label'" in said(
        tmp_path, table("context,response,score,human_label", words)
    )


def test_what_is_beside_the_scores_of_people(tmp_path: Path) -> None:
    rows = [(f"c{at}", "r", at % 3, at % 5) for at in range(6)]
    for name in ("human_age", "humanness", "human_response_length"):
        assert criteria(tmp_path, f"context,response,{name},score", rows) == ["score"]
    assert criteria(tmp_path, "context,response,human,x", rows) == ["human"]
    unclear = "the scores of people may be in 'score' or 'human'"
    assert unclear in said(tmp_path, table("context,response,human,score", rows))
    names = [(f"c{at}", "r", f"user_{at % 2}", at % 5) for at in range(6)]
    assert criteria(tmp_path, "context,response,human,score", names) == ["score"]
    blank = [(f"c{at}", "r", "", at % 5) for at in range(6)]
    assert criteria(tmp_path, "context,response,score,rating", blank) == ["rating"]
    row = {"response": "r", "score": 0.5}
    lists = of_json({**row, "context": f"c{at}", "human_scores": [at, 2]} for at in range(6))
    assert ratings(tmp_path, lists, name="t.jsonl")[1] == {"human_scores": (1.0, 2.0)}


def test_criteria_a_row_are_told_by_their_column(tmp_path: Path) -> None:
    rows = [(f"c{at // 2}", "r", ("fluency", "relevance")[at % 2], at % 5) for at in range(12)]
    assert ratings(tmp_path, table("context,response,dimension,score", rows))[:2] == [
        {"fluency": (0.0,), "relevance": (1.0,)},
        {"fluency": (2.0,), "relevance": (3.0,)},
    ]
    topics = [(f"c{at}", "r", ("film", "food")[at % 2], at % 5) for at in range(12)]
    assert criteria(tmp_path, "context,response,aspect,score", topics) == ["score"]


def test_rows_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    rows = [(f"c{at // 3}", "r", at % 5) for at in range(12)]
    message = "12 of 12 rows have the context and response of another one; say what tells them apart with --map rater="
    assert message in said(tmp_path, table("context,response,score", rows))
    named = [(*row, "xyz"[at % 3] + " " * (at % 2)) for at, row in enumerate(rows)]
    by_participant = ratings(tmp_path, table("context,response,score,participant_id", named))
    assert by_participant[:2] == [{"score": (0.0, 1.0, 2.0)}, {"score": (3.0, 4.0, 0.0)}]


def test_keys_within_objects(tmp_path: Path) -> None:
    marks = [{"by": "ann", "mark": 4}, {"by": "bob", "mark": 2}]
    row = {"in": {"said": ["a", "b"]}, "out": {"reply": "r"}, "marks": marks}
    other = {**row, "out": {"reply": "s"}, "marks": marks[::-1]}  # raters in another order, by the same names
    pairs = ("context=in.said", "response=out.reply", "score.overall=marks.*.mark", "rater=marks.*.by")
    annotated = read(tmp_path, of_json([row, other]), *pairs, name="t.jsonl")
    assert [(one.context, one.response, one.ratings) for one in annotated.rows] == [
        (("a", "b"), response, {"overall": (4.0, 2.0)}) for response in "rs"
    ]
    assert "score.overall from 'marks.*.mark'" in annotated.columns
    missing = said(tmp_path, of_json([row, other]), "context=in.nothing", *pairs[1:], name="t.jsonl")
    assert "'in.nothing', which is not there; the columns are in, out, marks" in missing


def test_scores_within_objects(tmp_path: Path) -> None:
    row = {"context": "a", "response": "r"}
    by_name = json.dumps({**row, "score": {"ann": 4, "bob": 2}})
    assert ratings(tmp_path, by_name, "score.all=score.*", name="u.jsonl") == [{"all": (4.0, 2.0)}]
    assert "score.overall=KEY.* for raters" in said(tmp_path, by_name, name="u.jsonl")
    one = json.dumps({**row, "score": {"value": 4, "scale": "1 to 5"}})
    assert ratings(tmp_path, one, name="w.jsonl") == [{"score": (4.0,)}]
    two = json.dumps({**row, "rater": ["x"], "score": [1, 2]})
    assert "1 raters, but 2 scores" in said(tmp_path, two, name="v.jsonl")
    scores = [{"name": "user", "value": 1}, {"name": "judge", "value": 0.5}]
    named = of_json({**row, "context": f"c{at}", "score": scores[:: 1 - 2 * at]} for at in range(2))
    assert "--map score=KEY.*.value criterion=KEY.*.name" in said(tmp_path, named, name="n.jsonl")
    pairs = ("score=score.*.value", "criterion=score.*.name")
    assert ratings(tmp_path, named, *pairs, name="n.jsonl") == [{"user": (1.0,), "judge": (0.5,)}] * 2
    assert "1 criteria, but 2 scores" in said(
        tmp_path, json.dumps({**row, "criterion": ["x"], "score": [1, 2]}), name="x.jsonl"
    )


def test_messages_and_references_in_cells(tmp_path: Path) -> None:
    """As pandas saves lists of messages, arrays of them, and lists of references."""
    messages = "[{'role': 'user', 'content': 'Hi, you'}\n {'role': 'bot', 'content': \"How's it?\"}]"
    cells = map(quoted, (messages, "[{'content': 'r'}]", "['t', 'u']", "1"))
    annotated = read(tmp_path, table("context,response,references,score", [cells]))
    (row,) = annotated.rows
    assert (row.context, row.response, row.reference) == (("Hi, you", "How's it?"), "r", "t")
    assert annotated.left_out["reference beyond the first of a response"] == 1
    message = quoted('{"role": "assistant", "content": "r"}')
    assert read(tmp_path, f"{HEAD}x,{message},1\n").rows[0].response == "r"
    # JSON that is said, and texts.
    for cell in ('["a", "b"]', "[]", "()", '{"id": 1}', "(smiles) yes", "[laughs]"):
        assert read(tmp_path, f"{HEAD}x,{quoted(cell)},1\n").rows[0].response == cell
    fault = "line 2: context is neither text nor a list of turns"
    assert fault in said(tmp_path, f'{HEAD}"[[""A"", ""Hi""]]",r,1\n')


def test_raters_without_a_name_of_a_named_item(tmp_path: Path) -> None:
    rows = [(item, f"hi {item}", "yes", score) for item in range(6) for score in (1, 2, 3)]
    content = table("item,context,response,score", rows)
    assert "dialogue=COLUMN" in said(tmp_path, content)
    assert ratings(tmp_path, content, "dialogue=item") == [{"score": (1.0, 2.0, 3.0)}] * 6


def test_speakers_before_turns_are_taken_off(tmp_path: Path) -> None:
    rows = '"User: hi\nall\nBot: yo\nUser: what\nBot:",Bot: fine,4\n"User: go\nAssistant:",no: never,2\n'
    annotated = read(tmp_path, HEAD + rows)
    assert [(row.context, row.response) for row in annotated.rows] == [
        (("hi\nall", "yo", "what"), "fine"),
        (("go",), "no: never"),
    ]
    assert "speakers before turns are taken off" in annotated.columns


def test_two_columns_that_may_be_the_context_are_asked_for(tmp_path: Path) -> None:
    rows = "".join(f'"[""hi {n}"", ""yo""]",what {n},fine,{n}\n' for n in range(3))
    content = f"history,query,response,score\n{rows}"
    assert "--map context=history or context=query, or context=history+query if" in said(tmp_path, content)
    annotated = read(tmp_path, content, "context=history+query")
    assert annotated.rows[0].context == ("hi 0", "yo", "what 0")
    constant = content.replace("what 1", "what 0").replace("what 2", "what 0")
    assert read(tmp_path, constant).rows[1].context == ("hi 1", "yo")


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_rated_messages_answer_those_before_them(tmp_path: Path, name: str) -> None:
    names = ("dialogue_id", "speaker", "text", "rating")
    rows = [("a", "user", "hi", ""), ("b", "user", "yo", ""), ("a", "bot", "hello", 4), ("a", "bot", "so", 1)]
    content = table(",".join(names), rows)
    if name == "t.json":
        content = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    annotated = read(tmp_path, content, name=name)
    assert [(row.context, row.response, row.ratings) for row in annotated.rows] == [
        (("hi",), "hello", {"rating": (4.0,)}),
        (("hi", "hello"), "so", {"rating": (1.0,)}),
    ]
    assert "read context from 'the messages before', response from 'text'" in annotated.columns
    assert "sort it" not in annotated.columns


def test_rated_messages_do_not_answer_those_of_systems_and_tools(tmp_path: Path) -> None:
    said = (("system", "be kind", ""), ("user", "hi", ""), ("tool", "{}", ""), ("assistant", "hello", 4))
    (row,) = read(tmp_path, table("chat_id,role,text,score", [("a", *one) for one in said])).rows
    assert (row.context, row.response) == (("hi",), "hello")


@pytest.mark.parametrize(
    ("name", "values"),
    [("turn", (2, 1, 1)), ("time", ("2024-05-01 10:00", "2024-05-01 09:59", "2024-05-01 09:58"))],
)
def test_rated_messages_that_are_not_in_order_are_noticed(tmp_path: Path, name: str, values: Any) -> None:
    rows = [("a", values[0], "hi", ""), ("b", values[2], "yo", ""), ("a", values[1], "hello", 4)]
    annotated = read(tmp_path, table(f"dialogue_id,{name},text,rating", rows))
    assert f"is not that of {name!r}: sort it" in annotated.columns
