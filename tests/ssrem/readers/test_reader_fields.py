"""Mapping options, well-known names, metadata."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssrem.errors import DumpError
from ssrem.readers.fields import OF_RESPONSES, FieldNames, checked_mapping, turn_text
from ssrem.readers.rows import canonical_object, json_objects


def test_texts_become_columns() -> None:
    mapping = {"conversation": "Season+Episode", "text": "Line text", "id": ("a+b",)}
    assert checked_mapping(mapping) == {
        "conversation": ("Season", "Episode"),
        "text": ("Line text",),
        "id": ("a+b",),
    }
    of_responses = {"score.overall": "a+b", "separator": " +++$+++ "}
    assert checked_mapping(of_responses, OF_RESPONSES) == {
        "score.overall": ("a", "b"),
        "separator": (" +++$+++ ",),
    }


@pytest.mark.parametrize(
    ("field", "columns", "says"),
    [
        (
            *("speeker", "A"),
            "no field 'speeker'; did you mean speaker?; the fields are conversation, id, speaker, "
            "addressee, reply_to, text, time",
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
    assert plan.sources == {
        "conversation": ("Dialogue ID",),
        "id": ("id",),
        "speaker": ("Speaker",),
        "text": ("text",),
    }
    assert plan.metadata == ("mood", "utterance")
    assert plan.ambiguous
    assert FieldNames().plan(("conv_id", "msg_id", "user")).sources["id"] == ("msg_id",)


def test_a_mapped_column_serves_no_other_field_and_no_metadata() -> None:
    plan = FieldNames({"conversation": ("show", "id")}).plan(("show", "id", "speaker", "text"))
    assert plan.sources == {"conversation": ("show", "id"), "speaker": ("speaker",), "text": ("text",)}
    assert plan.metadata == ()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "Hi"}, {"type": "image_url"}, "there"], "Hi\nthere"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([{"type": "image_url"}], ""),
        ([], ""),
    ],
)
def test_the_text_of_a_turn_may_be_in_parts(content: object, text: str) -> None:
    assert turn_text({"role": "user", "content": content}) == text


def test_a_turn_with_parts_that_are_no_text_is_unchanged() -> None:
    turn = {"role": "user", "content": [{"type": "text", "text": 5}]}
    assert turn_text(turn) == turn


def test_null_members_are_absent_at_every_depth() -> None:
    assert (
        canonical_object({"b": None, "a": {"y": None, "x": [None, {"z": None}]}}) == '{"a":{"x":[null,{}]}}'
    )
    assert canonical_object({"b": None}) is None
    assert canonical_object({"a": float("nan")}) is None


def test_rows_without_a_value_among_rows_with_one() -> None:
    column = pa.array([None, "x", None])
    assert json_objects(["a"], [column], 3).to_pylist() == [None, '{"a":"x"}', None]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "s": st.none() | st.text(),
                'é"': st.none() | st.integers(-(2**63), 2**63 - 1),
                "b": st.none() | st.booleans(),
                "l": st.none() | st.lists(st.text()),
                "o": st.none()
                | st.fixed_dictionaries({"x": st.none() | st.text(), "y": st.none() | st.booleans()}),
            }
        ),
        min_size=1,
    )
)
def test_whole_columns_give_the_same_json_as_single_rows(rows: list[dict[str, object]]) -> None:
    types = {
        "s": pa.string(),
        'é"': pa.int64(),
        "b": pa.bool_(),
        "l": pa.list_(pa.string()),
        "o": pa.struct([("x", pa.string()), ("y", pa.bool_())]),
    }
    columns = [pa.array([row[name] for row in rows], kind) for name, kind in types.items()]
    names = list(types)
    written = json_objects(names, columns, len(rows)).to_pylist()
    assert written == [canonical_object(row) for row in rows]
    assert all(text is None or isinstance(json.loads(text), dict) for text in written)


@pytest.mark.parametrize("columns", [("text", "TEXT"), ("TEXT", "text"), ("Text", "text", "TEXT")])
def test_of_names_that_differ_in_case_the_exact_one_wins(columns: tuple[str, ...]) -> None:
    plan = FieldNames().plan(("conversation", "speaker", *columns))
    assert plan.sources["text"][0] == "text"
