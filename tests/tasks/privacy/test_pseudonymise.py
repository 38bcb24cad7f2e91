"""Landing with pseudonyms: nothing that names anyone is in the home folder, and what is needed still is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ssrem.errors import DumpError
from ssrem.privacy.key import PseudonymKey
from ssrem.tasks.ingest import land as land_dump
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.warehouse.home import Warehouse
from support.whole_home import contents, occurrences

Dump = Callable[..., str]

SECRET = "f00dcafe" * 8
KEY = PseudonymKey(SECRET.encode())

PEOPLE = ["zoe_planted", "yan.planted", "Xia Planted", "planted-w"]
PLANTED = [*PEOPLE, "planted@mail.example", "555-867-5309", "@plantedv"]
OTHERS = ["planted_u", "planted street", "10.9.8.7"]
OTHERS += ["planted_broken", "planted_half", "planted_nobody", "prompted by"]


def rows() -> list[Any]:
    """Conversations of four people, with something that names somebody wherever a dump may hold it."""
    zoe, yan, xia, w = PEOPLE
    texts = [
        "hello",
        f"mail me: {PLANTED[4]}",
        f"or call {PLANTED[5]}",
        f"ask {PLANTED[6]} or u/{w}",
        f"thanks {zoe}!",
    ]
    talks: list[Any] = []
    for number in range(6):
        people = [(zoe, yan), (yan, xia), (xia, w)][number % 3]
        said = [
            {
                "id": f"{people[i % 2]}/{number}/{i}",
                "speaker": people[i % 2],
                "addressee": people[1 - i % 2],
                "reply_to": f"{people[1 - i % 2]}/{number}/{i - 1}" if i else None,
                "text": f"{text}, in {1990 + number}",
                "address": OTHERS[1],
                "meta": {"ip": OTHERS[2], "friends": [zoe, yan]},
                "ratings": {"fun": 1},
            }
            for i, text in enumerate(texts)
        ]
        about = {"ratings": {"fun": number, zoe: 3}, "topic": OTHERS[6], "host": {"name": xia}}
        talks.append({"conversation_id": f"{'+'.join(people)} {number}", "utterances": said, **about})
    return [
        *talks,
        b'{"speaker": "planted_broken", "text": "ask planted_broken',
        b'{"speaker": "planted_half\xff"}',
        {
            "conversation_id": "c",
            "speaker": "planted_u",
            "text": "hi planted_u",
            "reply_to": "planted_nobody",
        },
        {"conversation_id": "c", "speaker": "planted_u", "text": " "},
        {"conversation_id": "c", "speaker": " ", "text": "said by planted_u"},
    ]


def land(source: str, home: Warehouse, **settings: Any) -> tuple[str, bool]:
    return land_dump(source, str(home.root), DumpSettings(**settings))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)


@pytest.fixture
def source(write_dump: Dump) -> str:
    return write_dump(rows())


def test_what_is_needed_is_still_there_and_the_same_content_another_way_is_told(
    home: Warehouse, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(source, home, pseudonymise=True, max_quarantine=1.0)
    counts = "SELECT messages_read, utterances, quarantined, speakers FROM corpora"
    assert home.query(counts) == [(35, 31, 4, 5)]
    assert home.query("SELECT count(metadata) FROM utterances") == [(0,)]
    people = {(KEY.pseudonym(name),) for name in PEOPLE}
    assert {*home.query("SELECT speaker FROM utterances")} == {*people, (KEY.pseudonym("planted_u"),)}
    assert {*home.query("SELECT addressee FROM utterances WHERE addressee IS NOT NULL")} == people
    replies = "SELECT count(*), count(p.utterance_id) FROM utterances AS c LEFT JOIN utterances AS p"
    of_replies = "ON c.reply_to = p.utterance_id WHERE c.reply_to IS NOT NULL"
    assert home.query(f"{replies} {of_replies}") == [(25, 24)]
    rated = "SELECT ratings FROM conversations WHERE ratings IS NOT NULL ORDER BY conversation_no"
    assert [json.loads(ratings) for (ratings,) in home.query(rated)] == [{"fun": n} for n in range(6)]
    first = "SELECT text FROM utterances ORDER BY conversation_no, position LIMIT 5"
    masked = ["hello", "mail me: [email]", "or call [phone]", "ask [user] or [user]", "thanks [user]!"]
    assert [text for (text,) in home.query(first)] == [f"{text}, in 1990" for text in masked]
    rejected = home.query("SELECT reason, octet_length(raw) FROM quarantine ORDER BY row_no")
    assert rejected[:2] == [("broken_json", 0), ("undecodable", 0)]
    assert [reason for reason, _ in rejected[2:]] == ["no_text", "no_speaker"]
    ((parameters,),) = home.query("SELECT parameters FROM runs")
    assert json.loads(parameters)["pseudonym_key"] == KEY.fingerprint
    before = home.partitions()
    assert land(source, home, pseudonymise=True) == ("dump", False)
    with pytest.raises(DumpError, match="landed as 'dump' with pseudonyms; give --pseudonymise"):
        land(source, home)
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "another" * 8)
    with pytest.raises(DumpError, match="another key"):
        land(source, home, pseudonymise=True)
    assert home.partitions() == before


def test_names_that_pseudonyms_replace_are_nowhere_even_if_runs_were_killed_before_they_deleted_them(
    home: Warehouse, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, replacing = PLANTED + OTHERS, {"pseudonymise": True, "replace": True, "max_quarantine": 1.0}
    # A search that finds nothing proves nothing.
    assert {string for string, _ in occurrences(Path(source).parent, shown)} == {*shown}
    land(source, home, speakers="person", max_quarantine=1.0)
    assert occurrences(home.root, [PEOPLE[0]])
    with pytest.raises(DumpError, match=r"without pseudonyms; to have them.*--pseudonymise --replace"):
        land(source, home, pseudonymise=True)
    report = home.reports / "report.html"
    report.parent.mkdir()
    report.write_text(PEOPLE[0])
    for moment in ("ssrem.tasks.stage.stage.Stage.publish", "ssrem.tasks.ingest.purge"):
        with monkeypatch.context() as killing:
            killing.setattr(moment, Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                land(source, home, **replacing)
        assert report.exists()
    land(source, home, **replacing)
    assert {".parquet", ".duckdb"} <= {path.suffix for path, _ in contents(home.root)}
    assert occurrences(home.root, [*shown, SECRET]) == []
    model = home.root / "lm" / "model"
    model.parent.mkdir()
    model.touch()
    for name in ("dump", "new"):
        assert land(source, home, name=name, **replacing) == (name, name == "new")
        assert model.exists(), "nothing with names was replaced"


def test_seats_keep_ordinary_words(home: Warehouse, write_dump: Dump) -> None:
    said = [
        {"conversation_id": f"c{i}", "speaker": who, "text": "the agent asked"}
        for i in range(6)
        for who in ("user", "agent")
    ]
    land(write_dump(said), home, pseudonymise=True, speakers="conversation")
    assert home.query("SELECT DISTINCT text FROM utterances") == [("the agent asked",)]
    seat = f"{KEY.pseudonym('c0', 'c')}/{KEY.pseudonym('agent')}"
    assert home.query(f"SELECT count(*) FROM utterances WHERE speaker = '{seat}'") == [(1,)]


def test_deleted_accounts_stay_people_apart_and_the_same_key_gives_the_same_pseudonyms(
    home: Warehouse, write_dump: Dump
) -> None:
    speakers = ["ann", "[deleted]", "[deleted]", "bob", "bob"]
    said = [{"conversation_id": "c", "speaker": who, "text": f"I said {who[:3]}."} for who in speakers]
    for scope in ("conversation", "person"):
        land(write_dump(said), home, pseudonymise=True, replace=True, speakers=scope)
        assert home.query("SELECT DISTINCT turn FROM utterances ORDER BY ALL") == [(0,), (1,), (2,), (3,)]
        assert home.query("SELECT count(*) FROM utterances WHERE contains(speaker, 'ann')") == [(0,)]
    other = [{"conversation_id": "x", "speaker": name, "text": name} for name in ("ann", "b")]
    land(write_dump(other, "other"), home, pseudonymise=True)
    both = "SELECT speaker FROM utterances GROUP BY speaker HAVING count(DISTINCT corpus) = 2"
    assert home.query(both) == [(KEY.pseudonym("ann"),)]
