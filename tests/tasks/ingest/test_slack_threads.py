"""Threads of Slack: their replies are stated, what a message of the channel answers is guessed, past threads."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ssrem.tables.speaker_sets import TableSettings
from ssrem.tasks.ingest.land import land
from ssrem.tasks.privacy.forget import forget
from ssrem.tasks.privacy.people import who_is
from ssrem.tasks.speaker_tables.build import build
from ssrem.tasks.warehouse.home import Warehouse
from support.exports import write_dump
from support.stages import query

SAID = [("U1", "1"), ("U2", None), ("U3", "1"), ("U4", None), ("U5", "1"), ("U6", "1"), ("U2", None)]
"""Who wrote messages 1, 2, …, and the message that opened the thread, if one did."""


def channel(said: list[tuple[str, str | None]], path: Path) -> str:
    """Write a Slack export with one channel, in which these messages are sent at 1, 2, …"""
    messages = [
        {"ts": str(time), "user": user, "text": f"{user} at {time}"}
        | ({"thread_ts": thread} if thread else {})
        for time, (user, thread) in enumerate(said, 1)
    ]
    return str(write_dump({"c/2023-01-01.json": json.dumps(messages).encode()}, path))


def test_what_a_message_of_the_channel_answers_is_a_guess(tmp_path: Path, home: Warehouse) -> None:
    land(channel(SAID, tmp_path / "slack"), str(home.root))
    build("slack", str(home.root), settings=TableSettings(encoder="glove-6b-50d"))
    assert query(
        home,
        """SELECT t.speaker, parent.speaker, t.addressee, t.addressee_from, u.reply_to
        FROM turns AS t LEFT JOIN turns AS parent ON t.answers = parent.turn_id
        INNER JOIN utterances AS u ON t.turn = u.turn ORDER BY t.turn""",
    ) == [
        ("U1", None, "U2", "previous_speaker", None),
        ("U2", "U1", "U1", "previous_speaker", None),
        ("U3", "U1", "U1", "reply", "c/1"),
        ("U4", "U2", "U2", "previous_speaker", None),
        ("U5", "U3", "U3", "reply", "c/3"),
        ("U6", "U5", "U5", "reply", "c/5"),
        ("U2", "U4", "U4", "previous_speaker", None),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_channel_passes_threads_over_when_someone_is_forgotten(
    tmp_path: Path, home: Warehouse, seed: int
) -> None:
    draw = random.Random(seed)
    said = [
        (f"U{draw.randint(1, 4)}", draw.choice([None, None, "1", "2", "3"]) if time > 3 else None)
        for time in range(1, 61)
    ]
    dump = channel(said, tmp_path / "slack")
    land(dump, str(home.root))
    forget(who_is(home, "U2"), str(home.root))
    places = """SELECT utterance_id, position, turn, answers, reply_to, reply_absent, addressee, addressee_from
        FROM utterances ORDER BY position"""
    forgotten = query(home, places)
    land(dump, str(home.root), replace=True)
    assert query(home, places) == forgotten
