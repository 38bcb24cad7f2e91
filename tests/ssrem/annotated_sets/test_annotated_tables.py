"""Tables of scores by `--map`: which column is what, a rater a row, and which file and line a message names."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssrem.annotated_sets import AnnotatedSet, read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.annotated_sets.base import dataset_name
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


def test_well_known_names_need_no_map(tmp_path: Path) -> None:
    annotated = read(tmp_path, 'Dialogue ID,context,Reply,Model,reference,Overall\n7,"a\n b ",r,gpt,t,4\n')
    (row,) = annotated.rows
    assert (annotated.layout, row.dialogue_id, row.context, row.response) == ("csv", "7", ("a", "b"), "r")
    assert (row.system, row.reference, row.ratings) == ("gpt", "t", {"Overall": (4.0,)})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_mapped_columns_alike_in_every_table(tmp_path: Path, name: str) -> None:
    rows = [["ctx", "Fluency", "Relevance", "resp"], ["a ||| b", "3", "4.5", "r"], ["c", "N/A", "2", "s"]]
    if name == "t.jsonl":
        content = "\n".join(json.dumps(dict(zip(rows[0], row, strict=True))) for row in rows[1:])
    else:
        content = "".join(("," if name == "t.csv" else "\t").join(row) + "\n" for row in rows)
    pairs = ["context=ctx", "response=resp", "score=Fluency+Relevance", "separator=|||"]
    annotated = read(tmp_path, content, *pairs, name=name)
    assert [row.context for row in annotated.rows] == [("a", "b"), ("c",)]
    assert [row.ratings for row in annotated.rows] == [
        {"Fluency": (3.0,), "Relevance": (4.5,)},
        {"Relevance": (2.0,)},
    ]
    assert annotated.left_out == {"rating given as N/A or left empty": 1}
    assert [row.dialogue_id for row in annotated.rows] == ["0", "1"]


def test_raters_columns_of_a_criterion(tmp_path: Path) -> None:
    content = "context,response,r1,r2,fluency\na,b,4,5,1\n"
    annotated = read(tmp_path, content, "score.overall=r1+r2", "score=fluency")
    assert annotated.rows[0].ratings == {"overall": (4.0, 5.0), "fluency": (1.0,)}


def test_a_rater_without_a_score_leaves_the_others_their_columns(tmp_path: Path) -> None:
    content = "context,response,r1,r2,r3\na,b,,5,3\nc,d,1,N/A,\n"
    annotated = read(tmp_path, content, "score.overall=r1+r2+r3")
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


def test_turns_a_column_each(tmp_path: Path) -> None:
    annotated = read(tmp_path, "t1,t2,response,score\nhi,ho,r,1\n,ho,r,2\n", "context=t1+t2")
    assert [row.context for row in annotated.rows] == [("hi", "ho"), ("ho",)]


def test_lists_in_json_lines(tmp_path: Path) -> None:
    annotated = read(
        tmp_path, '{"context": ["a\\nb", "c"], "response": "r", "score": [4, null, 5]}', name="t.jsonl"
    )
    assert annotated.rows[0].context == ("a\nb", "c")
    assert annotated.rows[0].ratings == {"score": (4.0, None, 5.0)}
    assert read(tmp_path, 'context;x,response,score\na,b,"[1, 2]"\n', "context=context;x").rows[
        0
    ].ratings == {"score": (1.0, 2.0)}


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
    ],
)
def test_a_cell_may_hold_a_list_of_turns(tmp_path: Path, cell: str, turns: tuple[str, ...]) -> None:
    quoted = cell.replace('"', '""')
    annotated = read(tmp_path, f'context,response,score\n"{quoted}",r,1\n')
    assert annotated.rows[0].context == turns


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
    ("cell", "score"),
    [("4 - good", 4), ("4: good", 4), ("-1.5 (bad)", -1.5), ("2.", 2), ("3 = fair", 3), (" 2.5 / 4", 2.5)],
)
def test_a_number_and_what_it_means(tmp_path: Path, cell: str, score: float) -> None:
    annotated = read(tmp_path, f"context,response,score\nc,r,{cell}\n")
    assert annotated.rows[0].ratings == {"score": (score,)}


@pytest.mark.parametrize("cell", ["6/5", "1/0", "86%", "4-5", "4 5", "okay", "4 of 5 - good", '"4,5"'])
def test_what_is_no_single_number_is_refused(tmp_path: Path, cell: str) -> None:
    message = said(tmp_path, f"context,response,score\nc,r,{cell}\n")
    assert "write it as a number, such as 4, '4 - good' or '4/5'" in message


def test_scores_out_of_a_most(tmp_path: Path) -> None:
    content = "context,response,stars\na,r,3/7\nb,s,0/7\nc,t,7/7\n"
    annotated = read(tmp_path, content, "score=stars")
    assert [row.ratings["stars"] for row in annotated.rows] == [(3.0,), (0.0,), (7.0,)]
    message = said(tmp_path, content + "d,u,3/10\n", "score=stars")
    assert "line 5: rating '3/10' of 'stars' is out of 10, those before are out of 7" in message


# A well-known name is a guess until the values bear it out


def table(header: str, rows: list[tuple[object, ...]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_a_column_without_a_name_is_no_field(tmp_path: Path) -> None:
    """The first column is the row index of a data frame."""
    answers = [(f"Where is ship {n}?", f"In port {n}.", rater) for n in range(6) for rater in ("x", "y")]
    rows = [(at, *answer, at % 4) for at, answer in enumerate(answers)]
    annotated = read(tmp_path, table(",context,response,rater,rating", rows))
    assert len(annotated.rows) == 6
    for row in annotated.rows:
        assert (row.system, row.reference, len(row.ratings["rating"])) == (None, None, 2)
    assert annotated.summary == (
        "read as csv: 6 responses; read context from 'context', response from 'response', score from 'rating', rater "
        "from 'rater'; not used: a column without a name"
    )


def test_names_that_the_values_contradict(tmp_path: Path) -> None:
    """The system's turn, a number of the response and one of the rating are no system, dialogue or rater."""
    rows = [
        (f"c{n}", f"turn {n}", f"r{n}", n % 2 + 1, f"bot{n % 2}", f"job{n}", "poor" if n else "fair")
        for n in range(8)
    ]
    annotated = read(
        tmp_path, table("context,system,reply,response,model,annotator,rating", rows), "score=response"
    )
    assert {row.system for row in annotated.rows} == {"bot0", "bot1"}
    assert [row.ratings for row in annotated.rows][:2] == [{"response": (1.0,)}, {"response": (2.0,)}]
    assert "not used: system, annotator, rating" in annotated.summary


def test_a_survey_calls_the_answer_on_its_scale_a_response(tmp_path: Path) -> None:
    rows = [(f"c{n}", n % 5, f"text {n}", n % 5) for n in range(8)]
    annotated = read(tmp_path, table("context,response,completion,score", rows))
    assert annotated.rows[3].response == "text 3"


def test_raters_whose_names_never_repeat_are_numbered_by_position(tmp_path: Path) -> None:
    rows = [(f"c{n // 2}", f"r{n // 2}", f"assignment {n}", n % 4) for n in range(12)]
    annotated = read(tmp_path, table("context,response,WorkerId,score", rows))
    assert [len(row.ratings["score"]) for row in annotated.rows] == [2] * 6
    assert "not used: WorkerId" in annotated.summary


def test_systems_that_answer_one_context_are_systems(tmp_path: Path) -> None:
    annotated = read(
        tmp_path, table("context,response,model,score", [("c", f"r{n}", f"m{n}", n) for n in range(6)])
    )
    assert {row.system for row in annotated.rows} == {f"m{n}" for n in range(6)}


def test_decimal_commas_are_read_where_told(tmp_path: Path) -> None:
    content = "sep=;\ncontext;response;score\nc;r;3,5\n"
    assert "--map decimal=, if commas stand before decimals" in said(tmp_path, content)
    annotated = read(tmp_path, content, "decimal=,")
    assert annotated.rows[0].ratings == {"score": (3.5,)}


def test_columns_of_a_form_are_known_by_the_last_part_of_their_names(tmp_path: Path) -> None:
    rows = "".join(f"{worker},c,r,{score}\n" for worker, score in (("W1", 4), ("W2", 2)))
    annotated = read(tmp_path, f"WorkerId,Input.context,Input.response,Answer.overall\n{rows}")
    assert [row.ratings for row in annotated.rows] == [{"Answer.overall": (4.0, 2.0)}]
    assert "no column is known as score" in said(tmp_path, "context,response,a.score,b.score\nc,r,1,2\n")


def test_tables_as_other_programs_save_them(tmp_path: Path) -> None:
    """Semicolons, UTF-16 and Parquet, as spreadsheets and data frames are saved."""
    text = 'context;response;score\n"Hi, you\nHo";r;4\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (tmp_path / "b.csv").write_text(text, encoding="utf-16")
    pq.write_table(
        pa.table({"context": [["Hi, you", "Ho"]], "response": ["r"], "score": [4]}), tmp_path / "c.pq"
    )
    assert dataset_name(tmp_path / "c.parquet") == "c"
    sets = [read_set(tmp_path / name) for name in ("a.csv", "b.csv", "c.pq")]
    assert [annotated.layout for annotated in sets] == ["csv", "csv", "parquet"]
    for annotated in sets:
        assert annotated.rows[0].context == ("Hi, you", "Ho")
        assert annotated.rows[0].ratings == {"score": (4.0,)}


def test_a_file_in_another_encoding_or_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("context,response,score\n疲れた,r,4\n".encode("shift_jis"))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 cut off")
    for name, fault in (
        ("a.csv", "save the file as UTF-8"),
        ("b.parquet", "not a Parquet file that can be read"),
    ):
        with pytest.raises(AnnotationError, match=fault):
            read_set(tmp_path / name)


def test_a_json_list_of_rows_where_the_layout_or_its_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"q": "a", "r": "b", "stars": 3}, {"q": "c", "r": "d", "stars": null}]')
    for layout in ("jsonl", None):
        annotated = read_set(path, layout, {"context": "q", "response": "r", "score": "stars"})
        assert [row.ratings for row in annotated.rows] == [{"stars": (3.0,)}]
    assert "the content is of no known layout" in said(tmp_path, path.read_text(), name="t.json")


def test_a_json_list_of_rows_with_well_known_names_needs_no_layout(tmp_path: Path) -> None:
    rows = [{"history": ["a"], "reply": "b", "rating": score} for score in (1, 2)]
    annotated = read(tmp_path, json.dumps(rows), name="t.json")
    assert [row.ratings for row in annotated.rows] == [{"rating": (1.0,)}, {"rating": (2.0,)}]


LONG = """\
context,response,model,criterion,score,rater
a,r,gpt,fluency,4,ann
a,s,gpt,fluency,1,ann
a,r,gpt,fluency,5,bob
a,r,gpt,relevance,,bob
a,r,gpt,relevance,2,ann
a,r,other,fluency,3,ann
"""


def test_a_rater_a_row(tmp_path: Path) -> None:
    annotated = read(tmp_path, LONG)
    assert [(row.response, row.system) for row in annotated.rows] == [
        ("r", "gpt"),
        ("s", "gpt"),
        ("r", "other"),
    ]
    assert annotated.rows[0].ratings == {"fluency": (4.0, 5.0), "relevance": (2.0,)}
    assert annotated.left_out == {"rating given as N/A or left empty": 1}


def test_raters_are_numbered_by_name_whatever_the_order_of_rows(tmp_path: Path) -> None:
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


def test_a_rater_who_scores_again(tmp_path: Path) -> None:
    again = LONG + "a,r,gpt,fluency,4,bob\n"
    assert "t.csv, line 8: rater bob scores the response of line 2 by 'fluency' again" in said(
        tmp_path, again
    )
    header, *rows = again.splitlines()
    apart = "\n".join([f"{header},dialogue", *(f"{row},{number}" for number, row in enumerate(rows))])
    assert len(read(tmp_path, apart).rows) == 7 - 1  # one has no rating


def test_what_is_not_there_is_counted(tmp_path: Path) -> None:
    annotated = read(tmp_path, "context,response,score\na,,1\na,  ,2\na,r,\n,r,5\n")
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
        ("context,response,score\na,b,1\nc,d\n", (), "line 3: 2 cells, the header has 3"),
        ("context,response,score\na,b,1\nc,d,okay\n", (), "line 3: rating 'okay' of 'score'"),
        (
            'context,response,score\n"a\nb",r,1\nc,"d"x,1\n',
            (),
            "line 4: a quote that is not closed, or out of place",
        ),
        ("context,response,score\n", (), "nothing to compare with"),
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


def test_json_lines_that_hold_no_text(tmp_path: Path) -> None:
    row = {"context": 3, "response": "r", "score": 1}
    assert "row 1: context is neither text" in said(tmp_path, json.dumps(row), name="t.jsonl")
    row = {"context": "a", "response": ["r", "s"], "score": 1}
    assert "row 1: response is not text" in said(tmp_path, json.dumps(row), name="t.jsonl")


@pytest.mark.parametrize(
    ("mapping", "named"),
    [
        ({"scores": "a"}, "no field 'scores'; did you mean score?; the fields are context, response, score"),
        ({"response": "a+b"}, "response is one column"),
        ({"separator": ""}, "write FIELD=COLUMN"),
        ({"decimal": ",,"}, "one sign"),
    ],
)
def test_a_mapping_that_is_none(tmp_path: Path, mapping: dict[str, str], named: str) -> None:
    (tmp_path / "t.csv").write_text("context,response,score\na,b,1\n")
    with pytest.raises(AnnotationError, match="--map") as raised:
        read_set(tmp_path / "t.csv", mapping=mapping)
    assert named in str(raised.value)


def test_one_mapping_for_a_dump_and_annotated_sets() -> None:
    mapping = {"speaker": "S", "text": "T", "score.overall": "a+b", "context": "c"}
    assert divided(mapping) == ({"speaker": "S", "text": "T"}, {"score.overall": "a+b", "context": "c"})
    assert divided(None) == (None, None)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_labels_of_two_words_are_one_and_zero(tmp_path: Path, name: str) -> None:
    if name == "t.csv":
        content = "context,response,label\na,b,Pass\na,c,FAIL\na,d,no\na,e,\n"
    else:
        rows = [("b", True), ("c", False), ("d", "no"), ("e", None)]
        content = "\n".join(json.dumps({"context": "a", "response": r, "label": v}) for r, v in rows)
    annotated = read(tmp_path, content, "score=label", name=name)
    assert [row.ratings["label"] for row in annotated.rows] == [(1.0,), (0.0,), (0.0,)]


def test_the_column_of_people_is_read_or_asked_for(tmp_path: Path) -> None:
    rows = [(f"c{number}", "b", 0.3, number % 5) for number in range(6)]
    people = read(tmp_path, table("context,response,score,human_quality", rows))
    assert list(people.rows[0].ratings) == ["human_quality"]
    assert "the scores of people may be in 'score' or 'rating'; name the one with --map score=" in said(
        tmp_path, table("context,response,score,rating", rows)
    )
    assert "may be in 'human_a_score' or 'human_b_score'" in said(
        tmp_path, table("context,response,human_a_score,human_b_score", rows)
    )
    form = read(tmp_path, table("Input.context,Input.response,Input.score,Answer.rating", rows))
    assert list(form.rows[0].ratings) == ["Answer.rating"]
    assert "no column is known as score" in said(tmp_path, table("context,response,judge.score,n", rows))


def test_criteria_a_row_are_told_by_their_column(tmp_path: Path) -> None:
    rows = [(f"c{at // 2}", "r", ("fluency", "relevance")[at % 2], at % 5) for at in range(12)]
    annotated = read(tmp_path, table("context,response,dimension,score", rows))
    assert [dict(row.ratings) for row in annotated.rows[:2]] == [
        {"fluency": (0.0,), "relevance": (1.0,)},
        {"fluency": (2.0,), "relevance": (3.0,)},
    ]
    topics = [(f"c{at}", "r", ("film", "food")[at % 2], at % 5) for at in range(12)]
    assert {*read(tmp_path, table("context,response,aspect,score", topics)).rows[0].ratings} == {"score"}


def test_rows_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    rows = [(f"c{at // 3}", "r", at % 5) for at in range(12)]
    message = "12 of 12 rows have the context and response of another one; say what tells them apart with --map rater="
    assert message in said(tmp_path, table("context,response,score", rows))
    named = [(*row, "xyz"[at % 3] + " " * (at % 2)) for at, row in enumerate(rows)]
    by_participant = read(tmp_path, table("context,response,score,participant_id", named))
    assert [row.ratings["score"] for row in by_participant.rows[:2]] == [(0.0, 1.0, 2.0), (3.0, 4.0, 0.0)]


def test_a_rater_may_be_called_zero(tmp_path: Path) -> None:
    rows = [
        {"context": f"c{n // 2}", "response": "r", "rater": 1 - n % 2, "score": n % 2 + 1} for n in range(8)
    ]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), name="t.jsonl")
    assert [row.ratings for row in found.rows] == [{"score": (2.0, 1.0)}] * 4


def test_keys_within_objects(tmp_path: Path) -> None:
    marks = [{"by": "ann", "mark": 4}, {"by": "bob", "mark": 2}]
    row = {"in": {"said": ["a", "b"]}, "out": {"reply": "r"}, "marks": marks}
    other = {**row, "marks": marks[::-1]}  # raters in another order, by the same names
    pairs = ("context=in.said", "response=out.reply", "score.overall=marks.*.mark", "rater=marks.*.by")
    lines = f"{json.dumps(row)}\n{json.dumps({**other, 'out': {'reply': 's'}})}\n"
    annotated = read(tmp_path, lines, *pairs, name="t.jsonl")
    assert [(one.context, one.response) for one in annotated.rows] == [(("a", "b"), "r"), (("a", "b"), "s")]
    assert [one.ratings for one in annotated.rows] == [{"overall": (4.0, 2.0)}] * 2
    assert "score.overall from 'marks.*.mark'" in annotated.columns
    by_name = json.dumps({"context": "a", "response": "r", "score": {"ann": 4, "bob": 2}})
    assert read(tmp_path, by_name, "score.all=score.*", name="u.jsonl").rows[0].ratings == {"all": (4.0, 2.0)}
    assert "score.overall=KEY.* for raters" in said(tmp_path, by_name, name="u.jsonl")
    one = {"context": "a", "response": "r", "score": {"value": 4, "scale": "1 to 5"}}
    assert read(tmp_path, json.dumps(one), name="w.jsonl").rows[0].ratings == {"score": (4.0,)}
    assert "1 raters, but 2 scores" in said(
        tmp_path,
        json.dumps({"context": "a", "response": "r", "rater": ["x"], "score": [1, 2]}),
        name="v.jsonl",
    )
    assert "'in.nothing', which is not there; the columns are in, out, marks" in said(
        tmp_path, lines, "context=in.nothing", *pairs[1:], name="t.jsonl"
    )


@pytest.mark.parametrize("mark", ["__eou__", "<eou>", "[SEP]", "</s>", "|||"])
def test_marks_between_turns_are_recognised(tmp_path: Path, mark: str) -> None:
    annotated = read(tmp_path, f"context,response,score\nHi {mark} Ho {mark},r,1\n")
    assert annotated.rows[0].context == ("Hi", "Ho")
    assert annotated.columns.endswith(f"; turns end at {mark!r}")
    told = read(tmp_path, f"context,response,score\nHi {mark} Ho;x,r,1\n", "separator=;")
    assert told.rows[0].context == (f"Hi {mark} Ho", "x")


@pytest.mark.parametrize(
    ("cell", "scores"),
    [
        ("[None, 5, 4]", (None, 5.0, 4.0)),
        ("[5 5 4]", (5.0, 5.0, 4.0)),
        ("['5', '4 stars', 'agree (3)']", (5.0, 4.0, 3.0)),
        ('[{"rating": 5}]', (5.0,)),
        ("4 out of 5", (4.0,)),
        ("−2", (-2.0,)),
        ("Y", (1.0,)),
    ],
)
def test_scores_as_programs_print_them(tmp_path: Path, cell: str, scores: tuple[float | None, ...]) -> None:
    quoted = cell.replace('"', '""')
    annotated = read(tmp_path, f'context,response,marks\na,b,"{quoted}"\n', "score=marks")
    assert annotated.rows[0].ratings == {"marks": scores}


def test_what_is_beside_the_scores_of_people(tmp_path: Path) -> None:
    rows = [(f"c{at}", "r", at % 3, at % 5) for at in range(6)]
    for name in ("human_age", "humanness", "human_response_length"):
        assert {*read(tmp_path, table(f"context,response,{name},score", rows)).rows[0].ratings} == {"score"}
    assert {*read(tmp_path, table("context,response,human,x", rows)).rows[0].ratings} == {"human"}
    unclear = "the scores of people may be in 'score' or 'human'"
    assert unclear in said(tmp_path, table("context,response,human,score", rows))
    names = [(f"c{at}", "r", f"user_{at % 2}", at % 5) for at in range(6)]
    assert {*read(tmp_path, table("context,response,human,score", names)).rows[0].ratings} == {"score"}
    listed = [
        {"context": f"c{at}", "response": "r", "score": 0.5, "human_scores": [at, 2]} for at in range(6)
    ]
    lines = "\n".join(map(json.dumps, listed))
    assert read(tmp_path, lines, name="t.jsonl").rows[1].ratings == {"human_scores": (1.0, 2.0)}
    blank = [(f"c{at}", "r", "", at % 5) for at in range(6)]
    assert {*read(tmp_path, table("context,response,score,rating", blank)).rows[0].ratings} == {"rating"}


def test_marks_are_text_beside_line_breaks(tmp_path: Path) -> None:
    annotated = read(tmp_path, 'context,response,score\n"open a ||| b\nnow",r,1\n')
    assert annotated.rows[0].context == ("open a ||| b", "now")
    struck = read(tmp_path, "context,response,score\n<s>old</s> new,r,1\n")
    assert struck.rows[0].context == ("<s>old</s> new",)


def test_a_date_is_no_score(tmp_path: Path) -> None:
    """Spreadsheets turn 4/5 into a date."""
    for cell in ("5-Apr", "05-May", "4 - sept"):
        assert f"rating {cell!r} of 'score' is neither" in said(
            tmp_path, f"context,response,score\na,b,{cell}\n"
        )


def test_messages_and_references_in_cells(tmp_path: Path) -> None:
    """As pandas saves lists of messages, arrays of them, and lists of references."""
    messages = "[{'role': 'user', 'content': 'Hi, you'}\n {'role': 'bot', 'content': \"How's it?\"}]"
    quoted = messages.replace('"', '""')
    cells = [quoted, "[{'content': 'r'}]", "['t', 'u']", "1"]
    content = "context,response,references,score\n" + ",".join(f'"{cell}"' for cell in cells) + "\n"
    annotated = read(tmp_path, content)
    (row,) = annotated.rows
    assert (row.context, row.response, row.reference) == (("Hi, you", "How's it?"), "r", "t")
    assert annotated.left_out["reference beyond the first of a response"] == 1
    for cell in (
        '["a", "b"]',
        "[]",
        "()",
        '{"id": 1}',
        "(smiles) yes",
        "[laughs]",
    ):  # JSON that is said, and texts
        quoted = cell.replace('"', '""')
        assert read(tmp_path, f'context,response,score\nx,"{quoted}",1\n').rows[0].response == cell
    fault = "line 2: context is neither text nor a list of turns"
    assert fault in said(tmp_path, 'context,response,score\n"[[""A"", ""Hi""]]",r,1\n')


def test_a_header_with_other_signs_than_the_delimiter(tmp_path: Path) -> None:
    question = "How good? 1 = bad; 2 = poor; 3 = ok; 4 = good"
    annotated = read(tmp_path, f"context,response,{question}\na,b,3\n", f"score={question}")
    assert annotated.rows[0].ratings == {question: (3.0,)}


@pytest.mark.parametrize("mark", ["__eou__", " EOU ", "<br>", "\\n", "\t"])
def test_marks_between_turns(tmp_path: Path, mark: str) -> None:
    annotated = read(tmp_path, "context,response,score\n" + f"hi{mark}and you?,fine,3\n" * 2)
    assert [row.context for row in annotated.rows] == [("hi", "and you?")] * 2


def test_raters_without_a_name_of_a_named_item(tmp_path: Path) -> None:
    table = "item,context,response,score\n" + "".join(
        f"{item},hi {item},yes,{score}\n" for item in range(6) for score in (1, 2, 3)
    )
    assert "dialogue=COLUMN" in said(tmp_path, table)
    annotated = read(tmp_path, table, "dialogue=item")
    assert [row.ratings for row in annotated.rows] == [{"score": (1.0, 2.0, 3.0)}] * 6


def test_a_reference_that_says_there_is_none(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "context,response,reference,score\nhi,yes,NO REF,3\n").rows
    assert row.reference is None


def test_speakers_before_turns_are_taken_off(tmp_path: Path) -> None:
    rows = '"User: hi\nall\nBot: yo\nUser: what\nBot:",Bot: fine,4\n"User: go\nAssistant:",no: never,2\n'
    annotated = read(tmp_path, f"context,response,score\n{rows}")
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


def test_a_data_frame_as_pandas_writes_it(tmp_path: Path) -> None:
    frame = {"context": {"0": "a", "1": "b"}, "response": {"0": "r", "1": "s"}, "score": {"0": 1, "1": 2}}
    annotated = read(tmp_path, json.dumps(frame), name="t.json")
    assert [(row.context, row.response, row.ratings) for row in annotated.rows] == [
        (("a",), "r", {"score": (1.0,)}),
        (("b",), "s", {"score": (2.0,)}),
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_rated_messages_answer_those_before_them(tmp_path: Path, name: str) -> None:
    rows = [("a", "user", "hi", ""), ("b", "user", "yo", ""), ("a", "bot", "hello", 4), ("a", "bot", "so", 1)]
    content = "dialogue_id,speaker,text,rating\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    if name == "t.json":
        content = json.dumps(
            [dict(zip(("dialogue_id", "speaker", "text", "rating"), row, strict=True)) for row in rows]
        )
    annotated = read(tmp_path, content, name=name)
    assert [(row.context, row.response, row.ratings) for row in annotated.rows] == [
        (("hi",), "hello", {"rating": (4.0,)}),
        (("hi", "hello"), "so", {"rating": (1.0,)}),
    ]
    assert "read context from 'the messages before', response from 'text'" in annotated.columns
