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
    ]


@pytest.fixture
def landed(home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    land(write_dump(rows()), str(home.root), pseudonymise=True, max_quarantine=1.0)
    return home


def land(source: str, home: str, **settings: Any) -> tuple[str, bool]:
    return land_dump(source, home, DumpSettings(**settings))


def test_what_is_needed_is_still_there(landed: Warehouse) -> None:
    counts = "SELECT messages_read, utterances, quarantined, speakers FROM corpora"
    assert landed.query(counts) == [(34, 31, 3, 5)]
    people = {(KEY.pseudonym(name),) for name in PEOPLE}
    assert {*landed.query("SELECT speaker FROM utterances")} == {*people, (KEY.pseudonym("planted_u"),)}
    assert {*landed.query("SELECT addressee FROM utterances WHERE addressee IS NOT NULL")} == people
    replies = "SELECT count(*), count(p.utterance_id) FROM utterances AS c LEFT JOIN utterances AS p"
    of_replies = "ON c.reply_to = p.utterance_id WHERE c.reply_to IS NOT NULL"
    assert landed.query(f"{replies} {of_replies}") == [(25, 24)]
    rated = "SELECT ratings FROM conversations WHERE ratings IS NOT NULL ORDER BY conversation_no"
    assert [json.loads(ratings) for (ratings,) in landed.query(rated)] == [{"fun": n} for n in range(6)]
    first = "SELECT text FROM utterances ORDER BY conversation_no, position LIMIT 5"
    masked = ["hello", "mail me: [email]", "or call [phone]", "ask [user] or [user]", "thanks [user]!"]
    assert [text for (text,) in landed.query(first)] == [f"{text}, in 1990" for text in masked]
    rejected = landed.query("SELECT reason, octet_length(raw) FROM quarantine ORDER BY row_no LIMIT 2")
    assert rejected == [("broken_json", 0), ("undecodable", 0)]
    ((parameters,),) = landed.query("SELECT parameters FROM runs")
    assert json.loads(parameters)["pseudonym_key"] == KEY.fingerprint


def test_the_same_key_gives_the_same_pseudonyms_in_another_corpus(
    landed: Warehouse, write_dump: Dump
) -> None:
    other = [{"conversation_id": "x", "speaker": name, "text": name} for name in (PEOPLE[0], "b")]
    land(write_dump(other, "other"), str(landed.root), pseudonymise=True)
    both = "SELECT speaker FROM utterances GROUP BY speaker HAVING count(DISTINCT corpus) = 2"
    assert landed.query(both) == [(KEY.pseudonym(PEOPLE[0]),)]


def test_the_same_content_another_way_is_told(
    landed: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, before = write_dump(rows()), landed.partitions()
    assert land(source, str(landed.root), pseudonymise=True) == ("dump", False)
    with pytest.raises(DumpError, match="landed as 'dump' with pseudonyms; give --pseudonymise"):
        land(source, str(landed.root))
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "another" * 8)
    with pytest.raises(DumpError, match="another key"):
        land(source, str(landed.root), pseudonymise=True)
    assert landed.partitions() == before


def test_pseudonyms_in_place_of_names_leave_no_name(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, shown = write_dump(rows()), PLANTED + OTHERS
    # A search that finds nothing proves nothing.
    assert {string for string, _ in occurrences(Path(source).parent, shown)} == {*shown}
    land(source, str(home.root), speakers="person", max_quarantine=1.0)
    assert occurrences(home.root, [PEOPLE[0]])
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    with pytest.raises(DumpError, match=r"without pseudonyms; to have them.*--pseudonymise --replace"):
        land(source, str(home.root), pseudonymise=True)
    again = land(source, str(home.root), pseudonymise=True, replace=True, max_quarantine=1.0)
    assert again == ("dump", True)
    assert {".parquet", ".duckdb"} <= {path.suffix for path, _ in contents(home.root)}
    assert occurrences(home.root, [*shown, SECRET]) == []


def test_a_run_killed_before_it_deleted_the_names_is_completed_by_itself(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_dump(rows())
    land(source, str(home.root), speakers="person", max_quarantine=1.0)
    report = home.reports / "report.html"
    report.parent.mkdir()
    report.write_text(PEOPLE[0])
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    for moment in ("ssrem.tasks.stage.stage.Stage.publish", "ssrem.tasks.ingest.purge"):
        with monkeypatch.context() as killing:
            killing.setattr(moment, Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                land(source, str(home.root), pseudonymise=True, replace=True, max_quarantine=1.0)
        assert report.exists()
    land(source, str(home.root), pseudonymise=True, replace=True, max_quarantine=1.0)
    assert occurrences(home.root, PLANTED + OTHERS) == []
    model = home.root / "lm" / "model"
    model.parent.mkdir()
    model.touch()
    for name in ("dump", "new"):
        again = land(source, str(home.root), name=name, pseudonymise=True, replace=True, max_quarantine=1.0)
        assert again == (name, name == "new") and model.exists(), "nothing with names was replaced"


def test_seats_keep_ordinary_words(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    said = [
        {"conversation_id": f"c{i}", "speaker": who, "text": "the agent asked"}
        for i in range(6)
        for who in ("user", "agent")
    ]
    land(write_dump(said), str(home.root), pseudonymise=True, speakers="conversation")
    assert home.query("SELECT DISTINCT text FROM utterances") == [("the agent asked",)]
    seat = f"{KEY.pseudonym('c0', 'c')}/{KEY.pseudonym('agent')}"
    assert home.query(f"SELECT count(*) FROM utterances WHERE speaker = '{seat}'") == [(1,)]


@pytest.mark.parametrize("scope", ["person", "conversation"])
def test_deleted_accounts_stay_people_apart(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    speakers = ["ann", "[deleted]", "[deleted]", "bob", "bob"]
    said = [{"conversation_id": "c", "speaker": who, "text": f"I said {who[:3]}."} for who in speakers]
    land(write_dump(said), str(home.root), pseudonymise=True, speakers=scope)
    assert home.query("SELECT DISTINCT turn FROM utterances ORDER BY ALL") == [(0,), (1,), (2,), (3,)]
    assert home.query("SELECT count(*) FROM utterances WHERE contains(speaker, 'ann')") == [(0,)]
