"""Exports of chat programs: people by ids with their names, replies; notices and messages without text are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import guess_format, open_dump
from ssrem.readers.files.streams import DumpFile
from support.exports import DISCORD, SLACK, TELEGRAM, TELEGRAM_ALL, write_dump
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


def test_messages_of_a_channel(tmp_path: Path) -> None:
    reader = open_dump(write_dump(DISCORD, tmp_path / "channel.json"))
    channel, asked, replied, bot, unread = rows_of(reader)
    assert (channel["record"], channel["conversation_id"]) == ("conversation", "901")
    assert '"name":"tomatoes"' in channel["metadata"] and '"name":"Garden"' in channel["metadata"]
    assert (asked["line"], asked["utterance_id"], asked["speaker"]) == (2, "2", "11")
    assert (asked["text"], asked["metadata"]) == ("Are yours red yet? 🍅", '{"name":"Annie"}')
    assert (replied["reply_to"], replied["speaker"], replied["metadata"]) == ("2", "12", '{"name":"bob"}')
    assert f"{replied['time']:%H:%M}" == "08:03"
    assert bot["metadata"] == '{"bot":true,"name":"helper"}'
    assert (unread["line"], unread["problem"]) == (6, "malformed_row")
    assert reader.left_out == {"notices": 1, "messages without text": 1}


def test_a_file_that_is_cut_off_is_one_line(tmp_path: Path) -> None:
    path = write_dump({"": DISCORD[""][:-400]}, tmp_path / "channel.json")
    with pytest.raises(DumpError, match="broken JSON in line 95, column 7"):
        rows_of(open_dump(path))


def test_lines_of_json_with_such_keys_are_no_export(tmp_path: Path) -> None:
    line = b'{"guild": "g", "channel": "c", "author": "a", "content": "x"}\n'
    assert guess_format(DumpFile(write_dump({"": line * 2}, tmp_path / "lines.jsonl"))) == "jsonl"


def test_a_reply_whose_type_is_a_number_is_a_reply(tmp_path: Path) -> None:
    path = write_dump({"": DISCORD[""].replace(b'"Reply"', b'"19"')}, tmp_path / "channel.json")
    _, _, replied, *_ = rows_of(open_dump(path))
    assert (replied["reply_to"], replied["speaker"]) == ("2", "12")


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
    assert reader.left_out == {"notices": 1, "messages without text": 1}


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
