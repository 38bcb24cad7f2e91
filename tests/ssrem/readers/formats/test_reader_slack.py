"""Slack exports: people by id with their names, threads as replies, bots as no people, notices left out and counted."""

from __future__ import annotations

import json
from pathlib import Path

from ssrem.readers import open_dump
from support.exports import SLACK, write_dump
from support.reader_rows import rows_of


def test_channels_days_threads_and_names(tmp_path: Path) -> None:
    reader = open_dump(write_dump(SLACK, tmp_path / "export"))
    first, bot, reply, other = rows_of(reader)
    assert first["conversation_id"] == reply["conversation_id"] == "general"
    assert (first["file"], first["line"]) == ("general/2023-01-02.json", 2)
    assert first["text"] == "Lunch & a walk, @U2? See the map in #general"
    assert (first["speaker"], first["metadata"]) == ("U1", '{"name":"annie"}')
    assert (reply["speaker"], reply["metadata"]) == ("U2", '{"name":"Bob Ray"}')
    assert (bot["speaker"], bot["text"], bot["is_person"]) == ("B1", "ding", False)
    assert "reply_to" not in first and "is_person" not in first
    assert reply["reply_to"] == first["utterance_id"] == "general/1672617601.000200"
    assert (other["conversation_id"], other["utterance_id"]) == ("random", "random/1672617601.000200")
    assert f"{first['time']:%Y-%m-%d %H:%M:%S}" == "2023-01-02 00:00:01"
    assert reader.left_out == {"notices": 1, "messages without text": 1}


def test_users_that_are_bots_are_no_people(tmp_path: Path) -> None:
    users = [{"id": "U1", "is_bot": True, "name": "build"}, {"id": "U2", "is_bot": False}]
    messages = [{"ts": user["id"], "user": user["id"], "text": "green"} for user in users]
    dump = {"users.json": json.dumps(users), "c/2023-01-01.json": json.dumps(messages)}
    rows = rows_of(
        open_dump(write_dump({name: text.encode() for name, text in dump.items()}, tmp_path / "e"))
    )
    assert [(row["speaker"], row.get("is_person")) for row in rows] == [("U1", False), ("U2", None)]


def test_a_day_that_is_no_list_and_an_entry_that_is_no_message_are_problems(tmp_path: Path) -> None:
    damaged = {
        "a/2023-01-01.json": b"{}",
        "a/2023-01-02.json": b"[",
        "a/2023-01-03.json": b'[5, {"text": [1]}, {"text": "a", "thread_ts": []}]',
    }
    rows = rows_of(open_dump(write_dump(SLACK | damaged, tmp_path / "export")))
    assert [
        (row["file"][2:], row["line"], row["problem"], row["raw"]) for row in rows if "problem" in row
    ] == [
        ("2023-01-01.json", 1, "malformed_row", b"{}"),
        ("2023-01-02.json", 1, "broken_json", b"["),
        ("2023-01-03.json", 1, "malformed_row", b"5"),
        ("2023-01-03.json", 2, "malformed_row", b'{"text":[1]}'),
        ("2023-01-03.json", 3, "malformed_row", b'{"text":"a","thread_ts":[]}'),
    ]


def test_threads_are_chains_and_messages_of_the_channel_state_no_reply(tmp_path: Path) -> None:
    said = [  # time, thread, subtype, what it replies to, whether the channel leaves it out
        ("1", None, None, None, None),
        ("2", "2", None, None, None),
        ("3", "2", None, "c/2", True),
        ("4", "2", None, "c/3", True),
        ("5", None, None, None, None),
        ("6", None, None, None, None),
        ("7", "2", "thread_broadcast", "c/4", False),
        ("8", None, None, None, None),
        ("9", "1", None, "c/1", True),
        ("10", "9.5", None, "c/9.5", True),
        ("11", "11", None, None, None),
    ]
    messages = [
        {"ts": time, "user": "U1", "text": time}
        | ({"thread_ts": thread} if thread else {})
        | ({"subtype": subtype} if subtype else {})
        for time, thread, subtype, *_ in said
    ]
    dump = {"c/2023-01-01.json": json.dumps(messages[:4]), "c/2023-01-02.json": json.dumps(messages[4:])}
    rows = rows_of(open_dump(write_dump({name: day.encode() for name, day in dump.items()}, tmp_path / "e")))
    assert [(row.get("reply_to"), row.get("in_thread")) for row in rows] == [
        (reply_to, aside) for *_, reply_to, aside in said
    ]
