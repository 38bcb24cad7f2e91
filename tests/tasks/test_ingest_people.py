"""Who counts as a person, who is context alone, what stands for a removed text, and whom Slack's threads answer."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.settings import TableSettings
from ssrem.tables.speaker_sets import create_tables
from ssrem.tasks.ingest import land
from ssrem.tasks.privacy import forget
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.tables import build
from ssrem.tasks.warehouse.home import Warehouse
from support.exports import DISCORD, write_dump
from support.reader_rows import rows_of
from support.speaker_sets import fetch
from support.stages import staging

COMMENT = {"controversiality": 0, "created_utc": 1467331260, "score": 2, "subreddit": "weather"}
ENCODER = "glove-6b-50d"


def reddit(threads: int) -> bytes:
    """Threads in the layout of Pushshift: AutoModerator greets, a deleted account is answered, a comment is removed."""
    rows: list[Mapping[str, Any]] = []
    for n in range(threads):
        post = f"t3_p{n}"
        rows.append(
            {"author": f"ann{n % 3}", "created_utc": 1467331200, "id": f"p{n}", "is_self": True, "score": 5}
            | {"selftext": f"It rains, {n}.", "subreddit": "weather", "title": "Rain?"}
        )
        said = [
            ("a", "AutoModerator", "Read the rules.", post),
            ("b", "[deleted]", f"Yes, {n} times.", post),
            ("c", f"bob{n % 4}", f"No, {n} times.", f"t1_b{n}"),
            ("d", f"ann{n % 3}", "[removed]", f"t1_c{n}"),
            ("e", f"bob{n % 4}", f"Why gone, {n}?", f"t1_d{n}"),
            ("f", f"cat{n % 2}", f"Rules, {n}?", f"t1_a{n}"),
        ]
        rows += (
            {**COMMENT, "author": who, "body": text, "id": f"{id}{n}", "link_id": post, "parent_id": to}
            for id, who, text, to in said
        )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def nobodies(home: Warehouse) -> dict[str, int]:
    return dict(home.query("SELECT speaker, count(*) FROM utterances WHERE NOT is_person GROUP BY ALL"))


def test_reddit_s_moderator_and_deleted_accounts_are_context_alone(
    tmp_path: Path, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump({"": reddit(30)}, tmp_path / "weather")
    land(str(dump), str(home.root))  # a seventh of the messages is removed, more than 5%
    said = capsys.readouterr().err
    alone = "'AutoModerator' (30 messages), '[deleted]' (30 messages)"
    assert f"not counted as people, so their turns are context alone: {alone}; --not" in said
    assert "probably no people" not in said
    assert nobodies(home) == {"AutoModerator": 30, "[deleted]": 30}
    assert home.query("SELECT reason, count(*) FROM quarantine GROUP BY ALL") == [("removed_text", 30)]
    assert home.query("SELECT DISTINCT reply_absent FROM utterances WHERE text LIKE 'Why gone%'") == [(True,)]
    assert build("weather", str(home.root), TableSettings(encoder=ENCODER))
    for table in ("sc", "sp", "ss", "rand", "candidates"):
        of_nobody = f"SELECT count(*) FROM {table} JOIN turns USING (corpus, turn_id) WHERE NOT is_person"
        assert home.query(of_nobody) == [(0,)], table
    paired = (
        f"SELECT speaker FROM {table} AS s JOIN turns AS t ON s.set_id = t.turn_id GROUP BY ALL HAVING max(size) > 1"
        for table in ("sc", "sp", "ss", "rand")
    )
    ((speakers,),) = home.query(f"SELECT count(*) FROM ({' INTERSECT '.join(paired)})")
    assert home.query("SELECT DISTINCT speakers FROM set_similarity") == [(speakers,)]
    contexts = "SELECT DISTINCT unnest(context) AS turn_id FROM responses"
    assert home.query(
        f"SELECT speaker, count(*) FROM ({contexts}) JOIN turns USING (turn_id) WHERE NOT is_person GROUP BY ALL "
        "ORDER BY 1"
    ) == [("AutoModerator", 30), ("[deleted]", 30)]
    # bob answers the deleted account: these turns are his, but towards no partner.
    answering = "SELECT turn_id FROM turns WHERE addressee = '[deleted]' AND speaker LIKE 'bob%'"
    assert home.query(f"SELECT count(*) FROM ss WHERE turn_id IN ({answering})") == [(30,)]
    assert home.query(f"SELECT count(*) FROM sp WHERE turn_id IN ({answering})") == [(0,)]


def test_rows_that_are_wrong_still_refuse_a_dump_of_removed_texts(tmp_path: Path, home: Warehouse) -> None:
    broken = b'{"author": "ann"}\n' * 12
    dump = write_dump({"": reddit(30) + broken}, tmp_path / "weather")
    with pytest.raises(
        DumpError, match=r"12 of the 222 messages .* cannot land, more than 5%: .*\(malformed_row"
    ):
        land(str(dump), str(home.root))


def test_irc_discord_and_telegram_know_their_own(tmp_path: Path) -> None:
    log = b"[10:00] <ann> hello\n[10:01] <chanserv> welcome\n[10:02] <bob> ann: hi\n[10:03] <ubottu> bob: a fact\n"
    text = {"type": "message", "date": "2023-01-01T10:00:00", "text": "Login code", "from_id": "user777000"}
    of_one = {"name": "Telegram", "type": "personal_chat", "id": 777000, "messages": [{"id": 1, **text}]}
    telegram = {"": json.dumps(of_one).encode()}
    expected = {"channel.log": ["chanserv", "ubottu"], "garden.json": ["13"], "result.json": ["user777000"]}
    for (name, nobody), dump in zip(expected.items(), ({"": log}, DISCORD, telegram), strict=True):
        rows = rows_of(open_dump(write_dump(dump, tmp_path / name)))
        assert [row["speaker"] for row in rows if not row.get("is_person", True)] == nobody


def chatter(conversations: int, bot: str | None = None, greeting: str | None = None) -> list[dict[str, Any]]:
    """Conversations of two of fourteen people each; perhaps a bot answers in each, and another says the same there."""
    rows = []
    for n in range(conversations):
        said = [(f"p{n % 7}", f"question {n}"), (f"q{n % 7}", f"answer {n}")]
        said += [(bot, f"fact {n}")] if bot else []
        said += [("greeter", greeting)] if greeting and n < 30 else []
        rows += ({"conversation": f"c{n}", "speaker": who, "text": text} for who, text in said)
    return rows


def test_who_is_probably_no_person_is_told_with_counts_and_the_option(
    home: Warehouse, write_dump: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_dump(chatter(70, "fact bot", "Welcome!"))
    land(source, str(home.root))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "probably no people" in line]
    assert line == (
        f"ssrem: {source}: probably no people: 'fact bot' (in 70 of 70 conversations), 'greeter' (1 text in 30 of 30 "
        "messages); if so, give --not-people 'fact bot' greeter --replace"
    )
    land(source, str(home.root), DumpSettings(not_people=["Fact Bot", "fact bott", "greeter"], replace=True))
    said = capsys.readouterr().err
    assert "not counted as people, but no speaker is called so: 'fact bott'; did you mean fact bot?" in said
    assert "probably no people" not in said and "'fact bot' (70 messages), 'greeter' (30 messages)" in said
    land(source, str(home.root), DumpSettings(not_people=["none"], replace=True))
    assert "no people" not in capsys.readouterr().err


def test_regulars_and_people_of_few_words_are_not_suspected(
    home: Warehouse, write_dump: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = chatter(40)
    for n in range(40):  # four regulars, as in any team, who say ok in a third of their messages
        said = [f"{k} {n}" if n % 3 else "ok" for k in range(4)]
        rows += [{"conversation": f"c{n}", "speaker": f"r{k}", "text": text} for k, text in enumerate(said)]
    land(write_dump(rows), str(home.root), DumpSettings(speakers="person"))
    assert "no people" not in capsys.readouterr().err


def test_names_count_before_pseudonyms(
    home: Warehouse, write_dump: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "0123456789abcdef" * 2)
    source = write_dump(chatter(70, "fact bot"))
    land(source, str(home.root), DumpSettings(pseudonymise=True))
    said = capsys.readouterr().err
    assert "fact bot" not in said and "--not-people NAME, as the dump writes it," in said
    land(source, str(home.root), DumpSettings(pseudonymise=True, not_people=["fact bot"], replace=True))
    assert list(nobodies(home).values()) == [70]


SAID = [("U1", "1"), ("U2", None), ("U3", "1"), ("U4", None), ("U5", "1"), ("U6", "1"), ("U2", None)]
"""Who wrote messages 1, 2, …, and the message that opened the thread, if one did."""


def export(path: Path, **channels: list[tuple[str, str | None]]) -> str:
    """Write a Slack export with these channels, in each of which the messages are sent at 1, 2, …"""
    files = {}
    for name, said in channels.items():
        messages = [
            {"ts": str(time), "user": user, "text": f"{user} at {time}"}
            | ({"thread_ts": thread} if thread else {})
            for time, (user, thread) in enumerate(said, 1)
        ]
        files[f"{name}/2023-01-01.json"] = json.dumps(messages).encode()
    return str(write_dump(files, path))


def test_what_a_message_of_the_channel_answers_is_a_guess(tmp_path: Path, home: Warehouse) -> None:
    both = [("U1", "1"), ("U2", None), ("U2", "1"), ("U3", None)]
    land(export(tmp_path / "slack", c=SAID, d=both), str(home.root))
    with staging(home, "tables", resources=Resources(threads=1)) as stage:
        create_tables(stage, "slack", "person", TableSettings())
        found = fetch(
            stage,
            """SELECT t.speaker, parent.speaker, t.addressee, t.addressee_from, u.reply_to
            FROM turns AS t LEFT JOIN turns AS parent ON t.answers = parent.turn_id
            INNER JOIN utterances AS u ON t.turn = u.turn AND t.conversation_id = u.conversation_id
            WHERE t.conversation_id = 'c' ORDER BY t.turn""",
        )
    assert found == [
        ("U1", None, "U2", "previous_speaker", None),
        ("U2", "U1", "U1", "previous_speaker", None),
        ("U3", "U1", "U1", "reply", "c/1"),
        ("U4", "U2", "U2", "previous_speaker", None),
        ("U5", "U3", "U3", "reply", "c/3"),
        ("U6", "U5", "U5", "reply", "c/5"),
        ("U2", "U4", "U4", "previous_speaker", None),
    ]
    # A message of the channel and one of a thread are two turns.
    places = "SELECT speaker, turn, answers FROM utterances WHERE conversation_id = 'd' ORDER BY position"
    assert home.query(places) == [("U1", 0, None), ("U2", 1, 0), ("U2", 2, 0), ("U3", 3, 1)]


def test_the_channel_passes_threads_over_when_someone_is_forgotten(tmp_path: Path, home: Warehouse) -> None:
    draw = random.Random(0)
    said = [
        (f"U{draw.randint(1, 4)}", draw.choice([None, None, "1", "2", "3"]) if time > 3 else None)
        for time in range(1, 91)
    ]
    dump = export(tmp_path / "slack", c=said)
    land(dump, str(home.root))
    forget("U2", str(home.root))
    places = """SELECT utterance_id, position, turn, answers, reply_to, reply_absent, addressee, addressee_from
        FROM utterances ORDER BY position"""
    forgotten = home.query(places)
    land(dump, str(home.root), DumpSettings(replace=True))
    assert home.query(places) == forgotten
