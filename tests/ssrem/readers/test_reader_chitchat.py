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
from ssrem.readers.chitchat import ChitchatReader
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
    with pytest.raises(DumpError, match=r"any\.json: broken JSON after 2 members"):
        rows_of(ChitchatReader(path))


def test_batches_stay_small_and_the_file_is_read_as_they_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps({f"c{i}": {**DUMP["c1"], "pad": "x" * 5000} for i in range(1000)}))  # type: ignore[dict-item]
    reader = ChitchatReader(path, batch_rows=10)
    next(iter(reader))
    assert 0 < reader.bytes_read < reader.total_bytes / 2
    assert len(rows_of(reader)) == 4000
    assert reader.bytes_read == reader.total_bytes


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
