"""Mapping options, well-known names, metadata."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ssrem.errors import DumpError
from ssrem.readers.fields import OF_RESPONSES, FieldNames, checked_mapping, turn_text
from ssrem.readers.rows import canonical_object, json_objects


def test_texts_become_columns() -> None:
    mapping = {"conversation": "Season+Episode", "text": "Line text", "id": ("a+b",)}
    columns = {"conversation": ("Season", "Episode"), "text": ("Line text",), "id": ("a+b",)}
    assert checked_mapping(mapping) == columns
    mapping = {"score.overall": "a+b", "separator": " +++$+++ "}
    columns = {"score.overall": ("a", "b"), "separator": (" +++$+++ ",)}
    assert checked_mapping(mapping, OF_RESPONSES) == columns


@pytest.mark.parametrize(
    ("field", "columns", "says"),
    [
        (
            "speeker",
            "A",
            "no field 'speeker'; did you mean speaker?; the fields are conversation, id, speaker, ",
        ),
        ("speaker", "", "write FIELD=COLUMN"),
        ("conversation", "A++B", "write FIELD=COLUMN"),
        ("score.overall", "A", "no field 'score.overall'"),
    ],
)
def test_a_mapping_that_is_none_is_one_line(field: str, columns: str, says: str) -> None:
    with pytest.raises(DumpError) as error:
        checked_mapping({field: columns})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_well_known_names_need_no_mapping_and_the_best_wins() -> None:
    plan = FieldNames().plan(("Dialogue ID", "id", "Speaker", "utterance", "text", "mood"))
    known = {"conversation": "Dialogue ID", "id": "id", "speaker": "Speaker", "text": "text"}
    assert plan.sources == {field: (column,) for field, column in known.items()}
    assert plan.metadata == ("mood", "utterance")
    assert plan.ambiguous
    assert FieldNames().plan(("conv_id", "msg_id", "user")).sources["id"] == ("msg_id",)


def test_a_mapped_column_serves_no_other_field_and_no_metadata() -> None:
    plan = FieldNames({"conversation": ("show", "id")}).plan(("show", "id", "speaker", "text"))
    assert plan.sources == {"conversation": ("show", "id"), "speaker": ("speaker",), "text": ("text",)}
    assert plan.metadata == ()


def test_the_text_of_a_turn_may_be_in_parts() -> None:
    for parts, text in (
        ([{"type": "text", "text": "Hi"}, {"type": "image_url"}, "there"], "Hi\nthere"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([{"type": "image_url"}], ""),
        ([], ""),
    ):
        assert turn_text({"role": "user", "content": parts}) == text
    turn = {"role": "user", "content": [{"type": "text", "text": 5}]}
    assert turn_text(turn) == turn


def test_null_members_are_absent_at_every_depth() -> None:
    value = {"b": None, "a": {"y": None, "x": [None, {"z": None}]}}
    assert canonical_object(value) == '{"a":{"x":[null,{}]}}'
    assert canonical_object({"b": None}) is None
    assert canonical_object({"a": float("nan")}) is None
    column = pa.array([None, "x", None])
    assert json_objects(["a"], [column], 3).to_pylist() == [None, '{"a":"x"}', None]


@pytest.mark.parametrize("columns", [("text", "TEXT"), ("TEXT", "text"), ("Text", "text", "TEXT")])
def test_of_names_that_differ_in_case_the_exact_one_wins(columns: tuple[str, ...]) -> None:
    plan = FieldNames().plan(("conversation", "speaker", *columns))
    assert plan.sources["text"][0] == "text"
