"""Topical-Chat: conversations as published, what lies beside a message as metadata."""

from __future__ import annotations

from pathlib import Path

from ssrem.readers import open_dump
from support.exports import TOPICAL_CHAT, write_dump
from support.reader_rows import rows_of


def test_conversations_and_messages(tmp_path: Path) -> None:
    rows = rows_of(open_dump(write_dump(TOPICAL_CHAT, tmp_path / "train.json")))
    assert [row["record"] for row in rows] == ["conversation", "message", "message"] * 2
    assert '"conversation_rating":{"agent_1":"Good","agent_2":"Excellent"}' in rows[0]["metadata"]
    said = rows[1]
    assert (said["conversation_id"], said["speaker"], said["text"]) == (
        "t_1",
        "agent_1",
        "Do you like boats?",
    )
    assert '"knowledge_source":["FS1"]' in said["metadata"]
    assert [row["line"] for row in rows] == [1, 1, 2, 2, 3, 4]


def test_a_conversation_without_messages_is_a_problem(tmp_path: Path) -> None:
    content = b'{"t": {"content": [{"agent": "agent_1", "message": "x"}, 5]}, "u": {"content": null}, "v": 7}'
    rows = rows_of(open_dump(write_dump({"": content}, tmp_path / "train.json")))
    problems = [(row["line"], row["raw"]) for row in rows if "problem" in row]
    assert problems == [(2, b"5"), (2, b'{"u":{}}'), (3, b'{"v":7}')]
