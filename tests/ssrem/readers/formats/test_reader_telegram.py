"""Telegram: one chat or all, texts in parts, replies within a chat; service messages left out and counted."""

from __future__ import annotations

import json
from pathlib import Path

from ssrem.readers import open_dump
from support.exports import TELEGRAM, TELEGRAM_ALL, write_dump
from support.reader_rows import rows_of


def test_one_chat(tmp_path: Path) -> None:
    reader = open_dump(write_dump(TELEGRAM, tmp_path / "result.json"))
    chat, shown, reply, unread = rows_of(reader)
    assert (chat["conversation_id"], chat["metadata"]) == (
        "77",
        '{"id":77,"name":"Trip","type":"private_group"}',
    )
    assert (shown["utterance_id"], shown["speaker"]) == ("77/2", "user1")
    assert (shown["text"], shown["metadata"]) == ("Look at https://example.org, all", '{"name":"Ann"}')
    assert f"{shown['time']:%H:%M}" == "09:01"  # in UTC, not as the phone showed it
    assert (reply["speaker"], reply["reply_to"]) == ("user2", "77/2")
    assert (unread["line"], unread["problem"]) == (5, "malformed_row")
    assert reader.left_out == {"service messages": 1, "messages without text": 1}


def test_all_chats_with_ids_that_repeat(tmp_path: Path) -> None:
    rows = rows_of(open_dump(write_dump(TELEGRAM_ALL, tmp_path / "result.json")))
    chats = [(row["conversation_id"], row["metadata"]) for row in rows if row["record"] == "conversation"]
    assert chats == [
        ("77", '{"id":77,"name":"Trip","type":"private_group"}'),
        ("2", '{"id":2,"type":"personal_chat"}'),
    ]
    assert [row["utterance_id"] for row in rows if "utterance_id" in row] == ["77/2", "77/3", "2/2"]


def test_a_reply_to_another_chat_is_no_reply_here(tmp_path: Path) -> None:
    message = {"id": 5, "type": "message", "from_id": "user1", "text": "x", "reply_to_message_id": 4}
    messages = [{**message, "id": 4}, message, {**message, "id": 6, "reply_to_peer_id": "channel8"}]
    chat = {"name": "n", "type": "private_group", "id": 1, "messages": messages}
    rows = rows_of(open_dump(write_dump({"": json.dumps(chat).encode()}, tmp_path / "result.json")))
    assert [row.get("reply_to") for row in rows] == [None, "1/4", "1/4", None]
