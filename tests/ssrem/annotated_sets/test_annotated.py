"""Annotated sets of the project's own layout: what is read, and which file and row a message names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.annotated_sets import read_set
from ssrem.annotated_sets.annotated import Annotated, labels_of
from ssrem.annotated_sets.base import dataset_name
from ssrem.errors import AnnotationError

ROW: dict[str, Any] = {"context": ["a", "b"], "response": "r", "annotations": {"overall": [1, 2.5]}}


def write(tmp_path: Path, rows: object) -> Path:
    path = tmp_path / "set_eval.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return path


def read_annotated(path: Path) -> tuple[Annotated, ...]:
    return read_set(path, "eval").rows


def test_a_row_is_read(tmp_path: Path) -> None:
    (row,) = read_annotated(write(tmp_path, [{**ROW, "dialogue_id": 7, "reference": "t", "model": "gpt"}]))
    assert (row.dialogue_id, row.context, row.response) == ("7", ("a", "b"), "r")
    assert (row.reference, row.system, row.ratings) == ("t", "gpt", {"overall": (1.0, 2.5)})
    assert row.sample.context == ("a", "b")
    (row,) = read_annotated(write(tmp_path, [{**ROW, "context": "a\n\nb \n"}]))  # the lines of one text
    assert row.context == ("a", "b")


def test_ground_truth_by_name_and_by_text_where_no_system_is_named(tmp_path: Path) -> None:
    for name in ("model", "model_name", "system"):
        rows = [{**ROW, name: system, "reference": "r"} for system in ("Ground-Truth", "gpt")]
        assert [row.ground_truth for row in read_annotated(write(tmp_path, rows))] == [True, False]
    rows = [{**ROW, "reference": reference} for reference in (" R ", "other", None)]
    assert [row.ground_truth for row in read_annotated(write(tmp_path, rows))] == [True, False, False]


def test_ratings_are_written_as_in_tables(tmp_path: Path) -> None:
    given: list[Any] = [(3, [True, 1]), ("[4, 5]", ["no"]), (["2/3"], "👍"), ("4 - good", 0)]
    rows = [
        {**ROW, "context": [f"c{n}"], "annotations": {"overall": one, "liked": other}}
        for n, (one, other) in enumerate(given)
    ]
    read = read_annotated(write(tmp_path, rows))
    assert [row.ratings["overall"] for row in read] == [(3,), (4, 5), (2,), (4,)]
    assert [row.ratings["liked"] for row in read] == [(1, 1), (0,), (1,), (0,)]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"context": 5}, "context"),
        ({"reference": {"a": 5}}, "reference is not text"),
        ({"annotations": [1]}, "no human scores"),
        (
            {"annotations": {"overall": [1e300]}},
            "rating 1e+300 of 'overall' is neither a number up to 1e+09 ",
        ),
        ({"annotations": {"overall": [10**400]}}, "of 'overall' is neither a number up to 1e+09"),
    ],
)
def test_a_message_names_file_row_and_field(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    path = write(tmp_path, [ROW, {**ROW, **change}])
    with pytest.raises(AnnotationError) as raised:
        read_annotated(path)
    said = str(raised.value)
    assert said.startswith(f"{path}, row 2: ") and named in said and "\n" not in said


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "is empty"),
        ("[]", "nothing to compare with"),
        ('"text"', "JSON list"),
        ("[\n1,\n", "line 3"),
        ('{"context": "a", "response": "r"}\n{"context": \n', "line 2"),
        ("[1]", "row 1"),
    ],
)
def test_a_file_of_something_else(tmp_path: Path, content: str, named: str) -> None:
    with pytest.raises(AnnotationError, match=named):
        read_annotated(write(tmp_path, content))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.json", tmp_path):
        with pytest.raises(AnnotationError, match=str(path)):
            read_annotated(path)
    latin = tmp_path / "latin.json"
    latin.write_bytes('["é"]'.encode("latin-1"))
    with pytest.raises(AnnotationError, match="UTF-8"):
        read_annotated(latin)


def test_labels_are_those_of_overall_in_any_case_and_differ(tmp_path: Path) -> None:
    rows = [{**ROW, "annotations": {"Fluent": [1], "Overall": [score]}} for score in (1, 2)]
    assert labels_of(read_annotated(write(tmp_path, rows))).criterion == "Overall"
    rows = [{**ROW, "annotations": {"overall": ratings}} for ratings in ([1, 3], [2, 2])]
    with pytest.raises(AnnotationError, match=r"overall: no two of the labelled responses \(2\) differ"):
        labels_of(read_annotated(write(tmp_path, rows)))


@pytest.mark.parametrize("end", ["_eval.json", ".json", ".CSV.gz", ".parquet", ""])
def test_name_of_a_set(end: str) -> None:
    assert dataset_name(Path(f"some/persona-zhao{end}")) == "persona-zhao"
