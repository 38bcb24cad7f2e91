"""ChitChat: the shape by hand, and the packaged corpus to the message."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.formats.chitchat import ChitchatReader
from support.reader_rows import rows_of


def _message(sender: Any, text: Any, second: int) -> dict[str, Any]:
    return {"text": text, "timestamp": f"2018-05-02T19:38:{second:02}Z", "sender": sender}


DUMP = {
    "c1": {
        "messages": [[_message("ann", "Hello", 1), _message("ann", "you", 2)], [_message("bob", "hi", 3)]],
        "prompt": "tea?",
        "ratings": {"witty": 5, "upbeat": 7.5},
        "start": "2018-05-02T19:38:00Z",
    },
    "c2": {"messages": [["oops", _message(["ann"], "x", 4)]], "start": "s"},
    "c3": 7,
    "c4": {"messages": []},
}


def test_conversations_with_their_ratings_and_then_their_messages(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps(DUMP))
    rows = rows_of(open_dump(path))
    message = {"record": "message", "file": "any.json", "conversation_id": "c1"}
    times = [datetime(2018, 5, 2, 19, 38, second) for second in (1, 2, 3)]
    metadata = '{"prompt":"tea?","ratings":{"upbeat":7.5,"witty":5},"start":"2018-05-02T19:38:00Z"}'
    assert rows[:4] == [
        {
            "record": "conversation",
            "file": "any.json",
            "line": 1,
            "conversation_id": "c1",
            "metadata": metadata,
        },
        {**message, "line": 1, "speaker": "ann", "text": "Hello", "time": times[0]},
        {**message, "line": 2, "speaker": "ann", "text": "you", "time": times[1]},
        {**message, "line": 3, "speaker": "bob", "text": "hi", "time": times[2]},
    ]
    assert [(r["conversation_id"], r["record"], r.get("problem"), r["line"]) for r in rows[4:]] == [
        ("c2", "conversation", None, 2),
        ("c2", "message", "malformed_row", 4),
        ("c2", "message", "malformed_row", 5),
        ("c3", "message", "malformed_row", 3),
        ("c4", "conversation", None, 4),
    ]
    assert rows[5]["raw"] == b'"oops"'
    assert rows[7]["raw"] == b'{"c3":7}'


def test_broken_json_says_how_far_it_came(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps(DUMP)[:-20])
    with pytest.raises(DumpError, match=r"any\.json: broken JSON after 3 members"):
        rows_of(ChitchatReader(path))


@pytest.mark.parametrize("half", ["\ud800", "\udc00", "\ud83dA", "\ud800\ud800"])
def test_half_a_surrogate_pair_costs_the_message_or_the_conversation_that_holds_it(
    tmp_path: Path, half: str
) -> None:
    good = _message("ann", "\U0001f600", 1)
    talks = {
        f"{half}": {"messages": [[good]]},
        "prompt": {"messages": [[good]], "prompt": half},
        "text": {"messages": [[_message("ann", half, 1), good, {"sender": "ann", "text": "x", half: 1}]]},
        "shape": half,
    }
    path = tmp_path / "any.json"
    path.write_text(json.dumps(talks))
    rows = rows_of(open_dump(path))
    records = [(r.get("conversation_id"), r["record"], r.get("problem"), r["line"]) for r in rows]
    assert records == [
        (None, "message", "undecodable", 1),
        (None, "message", "undecodable", 2),
        ("text", "conversation", None, 3),
        ("text", "message", "undecodable", 1),
        ("text", "message", None, 2),
        ("text", "message", "undecodable", 3),
        ("shape", "message", "malformed_row", 4),
    ]
    assert rows[4]["text"] == "\U0001f600"
    assert json.loads(rows[1]["raw"]) == {"prompt": talks["prompt"]}


@pytest.mark.parametrize("ahead", range(40))
def test_pairs_of_surrogates_are_whole_wherever_the_file_is_cut_into_pieces(
    tmp_path: Path, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.readers.json.values._CHUNK", 37)
    text = "x" * ahead + "\U0001f600" * 9
    path = tmp_path / "any.json"
    path.write_text(json.dumps({"c": {"messages": [[_message("ann", text, 1)]]}}))
    assert rows_of(open_dump(path))[1]["text"] == text


def test_batches_stay_small_and_the_file_is_read_as_they_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps({f"c{i}": {**DUMP["c1"], "pad": "x" * 5000} for i in range(1000)}))  # type: ignore[dict-item]
    reader = ChitchatReader(path, batch_rows=10)
    next(iter(reader))
    assert 0 < reader.bytes_read < reader.total_bytes / 2
    assert len(rows_of(reader)) == 4000
    assert reader.bytes_read == reader.total_bytes


@pytest.mark.slow
def test_the_packaged_corpus_to_the_message() -> None:
    pytest.importorskip("chitchat_dataset")
    counts: Counter[tuple[str, bool]] = Counter()
    rated = 0
    for batch in open_dump("chitchat"):
        columns = [batch.column(name).to_pylist() for name in ("record", "problem", "time", "metadata")]
        for record, problem, time, metadata in zip(*columns, strict=True):
            assert problem is None
            counts[record, time is not None] += 1
            rated += record == "conversation" and '"ratings":' in metadata
    assert counts == {("conversation", False): 7_168, ("message", True): 258_145}
    assert rated == 5_988
