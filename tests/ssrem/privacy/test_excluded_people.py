"""Leaving someone out: what tells of them in ids, metadata and rows, and the stream without them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssrem.privacy.people import Traces, digest, without
from ssrem.privacy.text import Mentions
from ssrem.readers.rows import RAW_SCHEMA

ANN = Traces(["ann_1", "7"])


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"record": "message", "line": 1, **row} for row in rows], RAW_SCHEMA)


def test_a_mention_is_what_pseudonyms_mask() -> None:
    ids = ["will", "ann_1", "bob lee"]
    for text in ("will", "Will", "WILL", "wiLL", "a_will", "Ann_1", "BOB Lee", "willing", "annie"):
        assert Traces(ids).mentions(text) == (Mentions(ids).mask(text) != text), text


def test_a_digest_depends_on_id_and_salt() -> None:
    assert len({digest("ann", b"salt"), digest("bob", b"salt"), digest("ann", b"pepper")}) == 3
    assert "ann" not in digest("ann", b"salt")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"by": "ann_1", "topic": "x"}, {"topic": "x"}),
        ({"by": ["ann_1", "bob"]}, {"by": ["bob"]}),
        ({"ann_1": 3, "bob": 4}, {"bob": 4}),
        ({"link": "forum/ann_1/77"}, {"link": "forum/[user]/77"}),
        ({"by": "joann_1"}, {"by": "joann_1"}),
        ({"by": "7", "rank": 7}, {"rank": 7}),
        ({"by": "ann_1"}, None),
        ({"by": None, "with": [None]}, {"by": None, "with": [None]}),
    ],
)
def test_metadata_are_cleaned(metadata: Any, expected: Any) -> None:
    cleaned = ANN.clean_json(json.dumps(metadata))
    assert (json.loads(cleaned) if cleaned else None) == expected
    assert ANN.in_bytes(json.dumps(metadata).encode()) == (metadata != expected)


def test_other_ids_still_differ_once_cleaned() -> None:
    ids = ["ann_1-bob", "ann_1-cy", "joann_1", "c7", "7"]
    cleaned = [ANN.clean_id(id) for id in ids]
    assert len(set(cleaned)) == len(ids)
    assert cleaned[2:] == ids[2:]
    assert not any("ann_1" in id for id in cleaned[:2])


def test_the_stream_without_them() -> None:
    shared = {"conversation_id": "ann_1+bob"}
    rows = batch(
        {**shared, "utterance_id": "1", "speaker": "ann_1", "text": "hi", "metadata": '{"a":1}'},
        {**shared, "utterance_id": "2", "speaker": "bob", "addressee": "ann_1", "text": "yo"},
        {
            "conversation_id": "c",
            "utterance_id": "3",
            "speaker": "bob",
            "reply_to": "1",
            "text": "ann_1 again",
        },
        {"problem": "broken_json", "raw": b'{"speaker": "ann_1"'},
        {"problem": "broken_json", "raw": b'{"speaker": "bob"'},
    )
    (out,) = without([rows], ANN)
    theirs, other, third, named, unnamed = out.to_pylist()
    assert out.schema == RAW_SCHEMA
    assert (theirs["problem"], theirs["raw"], theirs["utterance_id"]) == ("forgotten", b"", "1")
    gone = ("speaker", "addressee", "reply_to", "text", "time", "metadata")
    assert [theirs[name] for name in gone] == [None] * len(gone)
    assert (other["addressee"], other["text"], other["problem"]) == (None, "yo", None)
    assert theirs["conversation_id"] == other["conversation_id"] != "ann_1+bob"
    assert third["text"] == "ann_1 again"  # what others wrote is theirs
    assert (named["raw"], unnamed["raw"]) == (b"", b'{"speaker": "bob"')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["ann_1", "7", "x ann_1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4) | st.just("ann_1"), JSON, max_size=4))
@settings(max_examples=20)
def test_what_was_cleaned_tells_nothing(metadata: dict[str, Any]) -> None:
    cleaned = ANN.clean_json(json.dumps(metadata))
    assert cleaned is None or not ANN.in_bytes(cleaned.encode())
    assert "ann_1" not in (cleaned or "").replace("joann_1", "")
