"""DiscordChatExporter: ids, names and replies; notices and messages without text left out and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import guess_format, open_dump
from support.exports import DISCORD, write_dump
from support.reader_rows import rows_of


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
    with pytest.raises(DumpError, match="broken JSON after 5 members"):
        rows_of(open_dump(path))


def test_lines_of_json_with_such_keys_are_no_export(tmp_path: Path) -> None:
    line = b'{"guild": "g", "channel": "c", "author": "a", "content": "x"}\n'
    assert guess_format(write_dump({"": line * 2}, tmp_path / "lines.jsonl")) == "jsonl"


def test_a_reply_whose_type_is_a_number_is_a_reply(tmp_path: Path) -> None:
    path = write_dump({"": DISCORD[""].replace(b'"Reply"', b'"19"')}, tmp_path / "channel.json")
    _, _, replied, *_ = rows_of(open_dump(path))
    assert (replied["reply_to"], replied["speaker"]) == ("2", "12")
