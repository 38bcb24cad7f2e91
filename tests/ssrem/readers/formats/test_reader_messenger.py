"""Messenger: the oldest message first, bytes of UTF-8 that were written as characters, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

from ssrem.readers import open_dump
from support.exports import MESSENGER, write_dump
from support.reader_rows import rows_of


def test_a_chat(tmp_path: Path) -> None:
    reader = open_dump(write_dump(MESSENGER, tmp_path / "message_1.json"))
    chat, *messages = rows_of(reader)
    assert (chat["conversation_id"], chat["metadata"]) == ("inbox/bob_12", '{"title":"Bob"}')
    said = [(row["utterance_id"], row["speaker"], row["text"]) for row in messages]
    assert said == [
        ("inbox/bob_12/1675242060000", "Zo\u00eb", "A caf\u00e9?"),
        ("inbox/bob_12/1675242120000", "Bob", "Sure \U0001f600"),
        ("inbox/bob_12/1675242120000-2", "Bob", "Why not?"),
    ]
    assert f"{messages[0]['time']:%F %H:%M}" == "2023-02-01 09:01"
    assert [row["line"] for row in messages] == [5, 4, 3]
    assert reader.left_out == {"service messages": 1, "messages without text": 1}


def test_what_cannot_be_read_is_told_and_proper_characters_stay(tmp_path: Path) -> None:
    messages = [
        "no object",
        {"sender_name": "Bob", "timestamp_ms": 2, "content": ["no text"]},
        {"sender_name": "Bob", "timestamp_ms": 1, "content": "\u00e9t\u00e9 \u2013 \u0142"},
    ]
    chat = {"participants": [], "messages": messages}
    path = write_dump({"": json.dumps(chat).encode()}, tmp_path / "message_1.json")
    _, proper, listed, text = rows_of(open_dump(path))
    assert (proper["text"], proper["conversation_id"]) == ("\u00e9t\u00e9 \u2013 \u0142", proper["file"])
    assert [row["problem"] for row in (listed, text)] == ["malformed_row"] * 2


def test_notices_without_a_type_are_left_out_but_nothing_that_a_person_may_have_written(
    tmp_path: Path,
) -> None:
    notices = [
        "Reacted \u2764 to your message ",
        "Reacted \U0001f44d\U0001f3fd to your message ",
        "Liked a message",
    ]
    written = [
        "Liked a message of yours",
        "I reacted \u2764 to your message",
        "Reacted badly to your message",
    ]
    messages = [
        {"sender_name": "Bo", "timestamp_ms": time, "content": text.encode().decode("latin-1")}
        for time, text in enumerate(notices + written)
    ]
    calls = [{"sender_name": "Bo", "content": "Bo missed your call.", "call_duration": 0}]
    calls += [{"sender_name": "Bo", "call_duration": 61}]
    chat = {"participants": [], "messages": [*reversed(messages), *calls]}
    reader = open_dump(write_dump({"": json.dumps(chat).encode()}, tmp_path / "message_1.json"))
    assert [row["text"] for row in rows_of(reader) if row["record"] == "message"] == written
    assert reader.left_out == {"service messages": 5}


def test_the_chats_of_an_export_are_one_dump(tmp_path: Path) -> None:
    inbox = {f"inbox/bob_{n}/message_1.json": MESSENGER[""].replace(b"bob_12", b"bob_%d" % n) for n in (1, 2)}
    folder = write_dump(inbox, tmp_path / "export")
    rows = rows_of(open_dump(f"{folder}/inbox/*/message_*.json"))
    chats = [row["conversation_id"] for row in rows if row["record"] == "conversation"]
    assert chats == ["inbox/bob_1", "inbox/bob_2"]


def test_the_files_of_a_long_chat_are_read_from_the_oldest(tmp_path: Path) -> None:
    def chat(*times: int) -> bytes:
        messages = [
            {"sender_name": "AB"[time % 2], "timestamp_ms": time, "content": f"m{time}"} for time in times
        ]
        return json.dumps({"participants": [], "messages": messages, "thread_path": "inbox/a"}).encode()

    files = {"message_1.json": chat(9, 8), "message_2.json": chat(7, 6), "message_10.json": chat(5, 4)}
    folder = write_dump({f"a/{name}": content for name, content in files.items()}, tmp_path / "export")
    for source in (f"{folder}/a/*.json", f"{folder}/a"):
        texts = [row["text"] for row in rows_of(open_dump(source)) if row["record"] == "message"]
        assert texts == ["m4", "m5", "m6", "m7", "m8", "m9"]
