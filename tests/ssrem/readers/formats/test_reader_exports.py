"""Exports of chat programs: people by ids with their names, replies; notices and messages without text are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import guess_format, open_dump
from ssrem.readers.files.streams import DumpFile
from support.exports import DISCORD, SLACK, TELEGRAM, TELEGRAM_ALL, write_dump
from support.reader_rows import rows_of


def _read(tmp_path: Path, files: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an export whose files hold these values."""
    return rows_of(
        open_dump(write_dump({name: json.dumps(v).encode() for name, v in files.items()}, tmp_path / "e"))
    )


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


def test_links_are_shown_as_slack_shows_them(tmp_path: Path) -> None:
    text = (
        "<!here|@here> <!channel> see <!subteam^S1|@team> at <!date^1514764800^{time}|10:00> in <#C1|general>"
    )
    (row,) = _read(tmp_path, {"c/2023-01-01.json": [{"ts": "1", "user": "U1", "text": text}]})
    assert row["text"] == "@here @channel see @team at 10:00 in #general"


def test_users_that_are_bots_are_no_people(tmp_path: Path) -> None:
    users = [{"id": "U1", "is_bot": True, "name": "build"}, {"id": "U2", "is_bot": False}]
    messages = [{"ts": user["id"], "user": user["id"], "text": "green"} for user in users]
    rows = _read(tmp_path, {"users.json": users, "c/2023-01-01.json": messages})
    assert [(row["speaker"], row.get("is_person")) for row in rows] == [("U1", False), ("U2", None)]


def test_a_day_that_is_no_list_and_an_entry_that_is_no_message_are_problems(tmp_path: Path) -> None:
    damaged = {
        "a/2023-01-01.json": b"{}",
        "a/2023-01-02.json": b"[",
        "a/2023-01-03.json": b'[5, {"text": [1]}, {"text": "a", "thread_ts": []}]',
    }
    rows = rows_of(open_dump(write_dump(SLACK | damaged, tmp_path / "export")))
    problems = [
        (row["file"][2:], row["line"], row["problem"], row["raw"]) for row in rows if "problem" in row
    ]
    assert problems == [
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
    rows = _read(tmp_path, {"c/2023-01-01.json": messages[:4], "c/2023-01-02.json": messages[4:]})
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


def test_channels_cut_off_and_with_types_as_numbers_and_what_is_none(tmp_path: Path) -> None:
    path = write_dump({"": DISCORD[""][:-400]}, tmp_path / "channel.json")
    with pytest.raises(DumpError, match="broken JSON in line 95, column 7"):
        rows_of(open_dump(path))
    path.write_bytes(DISCORD[""].replace(b'"Reply"', b'"19"'))
    _, _, replied, *_ = rows_of(open_dump(path))
    assert (replied["reply_to"], replied["speaker"]) == ("2", "12")
    path.write_bytes(b'{"guild": {"id": "1"}, "channel": {"id": "2"}, "messages": null}')
    (lost,) = rows_of(open_dump(path))
    assert (lost["problem"], json.loads(lost["raw"])["channel"]) == ("malformed_row", {"id": "2"})
    path.write_bytes(b'{"guild": "g", "channel": "c", "author": "a", "content": "x"}\n' * 2)
    assert guess_format(DumpFile(path)) == "jsonl"


TRIP = ("77", '{"id":77,"name":"Trip","type":"private_group"}')


def test_one_chat(tmp_path: Path) -> None:
    reader = open_dump(write_dump(TELEGRAM, tmp_path / "result.json"))
    chat, shown, reply, unread = rows_of(reader)
    assert (chat["conversation_id"], chat["metadata"]) == TRIP
    assert (shown["utterance_id"], shown["speaker"]) == ("77/2", "user1")
    assert (shown["text"], shown["metadata"]) == ("Look at https://example.org, all", '{"name":"Ann"}')
    assert f"{shown['time']:%H:%M}" == "09:01"  # in UTC, not as the phone showed it
    assert (reply["speaker"], reply["reply_to"]) == ("user2", "77/2")
    assert (unread["line"], unread["problem"]) == (5, "malformed_row")
    assert reader.left_out == {"notices": 1, "messages without text": 1}


def test_all_chats_with_ids_that_repeat(tmp_path: Path) -> None:
    rows = rows_of(open_dump(write_dump(TELEGRAM_ALL, tmp_path / "result.json")))
    chats = [(row["conversation_id"], row["metadata"]) for row in rows if row["record"] == "conversation"]
    assert chats == [TRIP, ("2", '{"id":2,"type":"personal_chat"}')]
    assert [row["utterance_id"] for row in rows if "utterance_id" in row] == ["77/2", "77/3", "2/2"]
    unread = [row["line"] for row in rows if "problem" in row]
    assert unread == [5]  # a message whose text is an object; the file itself is no chat


def test_a_reply_to_another_chat_is_no_reply_here(tmp_path: Path) -> None:
    message = {"id": 5, "type": "message", "from_id": "user1", "text": "x", "reply_to_message_id": 4}
    messages = [{**message, "id": 4}, message, {**message, "id": 6, "reply_to_peer_id": "channel8"}]
    chat = {"name": "n", "type": "private_group", "id": 1, "messages": messages}
    assert [row.get("reply_to") for row in _read(tmp_path, {"": chat})] == [None, "1/4", "1/4", None]


def test_replies_of_mattermost_are_in_the_order_of_time_and_tell_bots_from_people(tmp_path: Path) -> None:
    def said(user: str, at: int, **more: object) -> dict[str, object]:
        return {"user": user, "message": str(at), "create_at": at, **more}

    replies = [said("cy", 3), said("bot", 4, props={"from_webhook": "true"}), said("bob", 2), said("ann", 5)]
    posts = [
        {"team": "t", "channel": "c", **said("ann", 1), "replies": replies},
        {"team": "t", "channel": "c", **said("dan", 9, type="system_join_channel")},
    ]
    (tmp_path / "x.jsonl").write_text(
        "".join(json.dumps({"type": "post", "post": post}) + "\n" for post in posts)
    )
    reader = open_dump(tmp_path / "x.jsonl")
    assert [(row["text"], row.get("is_person")) for row in rows_of(reader)] == [
        *(("1", None), ("2", None), ("3", None), ("4", False), ("5", None))
    ]
    assert reader.left_out == {"notices": 1}
