"""Landing: rows in, rows out. What lands, what is quarantined and why, and that nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ssrem.errors import DumpError, SsremError
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.stage.stage import _configure as stage_configure
from ssrem.tasks.warehouse.home import Warehouse

Dump = Callable[..., str]

pytestmark = pytest.mark.usefixtures("little_disk")


@pytest.fixture
def little_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """These dumps are tiny: a statement that spills has gone wrong, and should fail rather than fill the disk."""

    def configure(connection: duckdb.DuckDBPyConnection, *rest: Any) -> None:
        stage_configure(connection, *rest)
        connection.execute("SET max_temp_directory_size = '50MB'")
        connection.execute("SET memory_limit = '300MB'")

    monkeypatch.setattr("ssrem.tasks.stage.stage._configure", configure)


def said(id: str | None, *, by: str | None = "ann", text: str | None = "hi", **more: Any) -> dict[str, Any]:
    """A message of conversation c, unless told otherwise."""
    return {"conversation": "c", "id": id, "speaker": by, "text": text} | more


GOOD = said("good", conversation="elsewhere")


def reasons(home: Warehouse) -> list[tuple[int, str]]:
    return home.query("SELECT line, reason FROM quarantine ORDER BY row_no")  # type: ignore[return-value]


def landed(home: Warehouse) -> set[str]:
    return {
        i for (i,) in home.query("SELECT utterance_id FROM utterances WHERE conversation_id <> 'elsewhere'")
    }


def replies(**to: str | None) -> list[dict[str, Any]]:
    """Messages that answer each other: id → the id that it answers."""
    return [said(id, reply_to=parent) for id, parent in to.items()]


def ring(*ids: str) -> dict[str, str | None]:
    return dict(zip(ids, (*ids[1:], ids[0]), strict=True))


QUARANTINED: list[tuple[list[Any], list[tuple[int, str]], str]] = [
    ([b'{"conversation": "c", "id": "a", "speaker": "ann", "text": "h\xff"}'], [(1, "undecodable")], ""),
    ([b'{"conversation": "c", '], [(1, "broken_json")], ""),
    ([b"[1, 2]"], [(1, "broken_json")], ""),
    *[([said("a", text=blank)], [(1, "no_text")], "") for blank in (None, "", " \t\r\n \u00a0\u2003\u3000")],
    *[([said("a", by=blank)], [(1, "no_speaker")], "") for blank in (None, " \t")],
    *[([said("a", conversation=blank)], [(1, "no_conversation")], "") for blank in (None, " ")],
    ([said("a"), said("a", text="other")], [(2, "duplicate_id")], "a"),
    ([said("a", text=""), said("a"), said("a")], [(1, "no_text"), (3, "duplicate_id")], "a"),
    ([said("a", conversation=None), said("a")], [(1, "no_conversation")], "a"),
    (
        [said("a", by=""), said("a", text="second"), said("a", text="third")],
        [(1, "no_speaker"), (3, "duplicate_id")],
        "a",
    ),
    ([said("a", reply_to="a")], [], "a"),
    ([said("a", reply_to="never")], [], "a"),
    ([said("a", reply_to="b"), said("b")], [], "ab"),
    ([said("a", text=""), said("b", reply_to="a")], [(1, "no_text")], "b"),
    ([said("a", reply_to="a"), said("b", reply_to="a")], [], "ab"),
    ([said("a", reply_to="no"), said("b", reply_to="a")], [], "ab"),
    (replies(**ring(*"ab")), [(1, "reply_cycle"), (2, "reply_cycle")], ""),
    (replies(**ring(*"bdfaceg")), [(i, "reply_cycle") for i in range(1, 8)], ""),
    (replies(**ring(*"ab"), **ring(*"cde"), f=None, g="f"), [(i, "reply_cycle") for i in range(1, 6)], "fg"),
    (replies(x="y", y="a", **ring(*"ab"), z="x"), [(3, "reply_cycle"), (4, "reply_cycle")], "xyz"),
    (replies(a="b", b="c", c="d", d=None), [], "abcd"),
    # The first good message of an id is what is answered, not a later or broken one of the same id.
    ([said("a"), said("a", reply_to="b"), said("b", reply_to="a")], [(2, "duplicate_id")], "ab"),
    ([said("a", text="", reply_to="b"), said("a"), said("b", reply_to="a")], [(1, "no_text")], "ab"),
    (
        [said("a", text=""), said("a", reply_to="b"), said("b", reply_to="a")],
        [(1, "no_text"), (2, "reply_cycle"), (3, "reply_cycle")],
        "",
    ),
    ([said("a", reply_to="b"), said("b", conversation="d", reply_to="a")], [], "ab"),
]
"""Messages, which of them are quarantined for what, and the ids of those that land."""


def of_case(row: dict[str, Any] | bytes, number: int) -> dict[str, Any] | bytes:
    """The message, with ids that no other case has."""
    if isinstance(row, bytes):
        return row
    return row | {name: f"{number}-{row[name]}" for name in ("id", "reply_to") if row.get(name)}


def test_what_cannot_land_is_quarantined(home: Warehouse, write_dump: Dump) -> None:
    rows: list[Any] = []
    expected: list[tuple[int, str]] = []
    for number, (case, wrong, _) in enumerate(QUARANTINED):
        expected += [(len(rows) + line, reason) for line, reason in wrong]
        rows += [of_case(row, number) for row in case]
    kept = {f"{number}-{id}" for number, (*_, ids) in enumerate(QUARANTINED) for id in ids}
    land(write_dump([*rows, GOOD]), str(home.root), DumpSettings(max_quarantine=1.0, speakers="person"))
    assert reasons(home) == expected
    assert landed(home) == kept
    counts = home.query("SELECT messages_read, utterances, quarantined FROM corpora")
    assert counts == [(len(rows) + 1, len(kept) + 1, len(expected))]
    assert home.query("SELECT text FROM utterances WHERE text <> 'hi'") == [("second",)]


def test_quarantine_holds_rows_whole_and_conversation_rows_describe_or_are_in_it(
    home: Warehouse, write_dump: Dump
) -> None:
    broken = b'{"conversation": "c", "text": "\xfe\xff", "odd": [1]}'
    row = said("x", text=" ", by="bob", reply_to="good", addressee="ann", time="2020-01-02T03:04:05", odd=[1])
    about = {"ratings": {"fun": 5}, "topic": "x"}
    rows = [
        *(broken, row),
        {"conversation": "t", **about, "utterances": [{"speaker": who, "text": "hi"} for who in "ab"]},
        {"conversation": "d", "utterances": []},
        {"conversation": "e", "utterances": [said("f", conversation="e", text="")]},
    ]
    land(write_dump(rows), str(home.root), DumpSettings(max_quarantine=1.0))
    (described,) = home.query("SELECT conversation_id, ratings, messages, participants FROM conversations")
    assert (described[0], json.loads(described[1]), *described[2:]) == ("t", {"fun": 5}, 2, 2)
    assert home.query("SELECT file, record, line, reason FROM quarantine ORDER BY row_no") == [
        ("dump.jsonl", "message", 1, "undecodable"),
        ("dump.jsonl", "message", 2, "no_text"),
        ("dump.jsonl", "conversation", 4, "no_messages"),
        ("dump.jsonl", "conversation", 5, "no_messages"),
        ("dump.jsonl", "message", 5, "no_text"),
    ]
    assert home.query("SELECT messages_read, utterances, quarantined FROM corpora") == [(5, 2, 3)]
    (first,), (second,), *_ = home.query("SELECT raw FROM quarantine ORDER BY row_no")
    whole = json.loads(second)
    assert first == broken and json.loads(whole.pop("metadata")) == {"odd": [1]}
    assert whole.pop("time").startswith("2020-01-02 03:04:05")
    people = {"speaker": "bob", "addressee": "ann", "reply_to": "good"}
    assert whole == {"conversation_id": "c", "utterance_id": "x", **people, "text": " "}


def test_times_partners_turns_and_positions(home: Warehouse, write_dump: Dump) -> None:
    times = ["10:00", "10:05", "10:01", None, "10:04", "10:05", "10:06"]
    rows = [said(f"t{i}", conversation="t", time=t and f"2020-01-01T{t}:00") for i, t in enumerate(times)]
    rows += [
        said("x", conversation="d", time="2019-01-01T00:00:00"),
        said("1", by="ann"),
        said(None, by="ann"),
        said("3", by="bob", reply_to="1"),
        said("4", by="cy", text=""),
        said("5", by="bob", addressee="cy"),
        said("6", by="ann", reply_to="1"),
    ]
    # A reply to what is gone does not precede the message that opens, the first that replies to nothing.
    removed = said("c1", text="[removed]", reply_to="s")
    late = [removed, *replies(c2="c1", c3="s", c4="c2", s=None, c5="never", t=None)]
    rows += [row | {"conversation": "r"} for row in late]
    land(write_dump(rows), str(home.root), DumpSettings(max_quarantine=1.0))
    found = home.query("SELECT utterance_id FROM utterances WHERE time_backwards ORDER BY 1")
    assert found == [("t2",), ("t4",)]
    assert home.query("SELECT time_backwards, quarantined FROM corpora") == [(2, 2)]
    found = home.query(
        "SELECT utterance_id, position, turn, addressee FROM utterances WHERE conversation_id = 'c' ORDER BY 2"
    )
    assert found == [
        ("1", 0, 0, None),
        ("c#1", 1, 0, None),
        ("3", 2, 1, "ann"),
        ("5", 3, 1, "cy"),
        ("6", 4, 2, None),
    ]
    found = home.query(
        "SELECT utterance_id, answers FROM utterances WHERE conversation_id = 'r' ORDER BY position"
    )
    assert found == [("s", None), ("c2", None), ("c3", 0), ("c4", 1), ("c5", None), ("t", None)]


ANOTHER = {
    "speakers": ("conversation", "one landed with another --speakers; add --replace to land it again"),
    "not_people": (["ann"], "one landed without --not-people; add --replace"),
    "map": ({"speaker": "text", "text": "speaker"}, "one landed with another --map; add --replace"),
    "encoding": ("cp1252", "one landed with another --encoding; add --replace"),
    "time_format": ("%d.%m.%Y", "one landed without --time-format; add --replace"),
    "name": ("other", "landed as 'one'; --replace lands it as 'other' too"),
}
"""Option → another value, and what is said of it."""


def test_content_lands_once_and_other_options_are_told(home: Warehouse, write_dump: Dump) -> None:
    rows, where = [said("a"), said("b", by="bob")], str(home.root)
    source = write_dump(rows, "one")
    options: dict[str, Any] = {"map": {"text": "text", "speaker": "speaker"}, "encoding": "utf-8"}
    assert land(source, where, DumpSettings(**options)) == ("one", True)
    for again in (options, {}, {"speakers": "person", "format": "jsonl"}):
        assert land(source, where, DumpSettings(**again)) == ("one", False)
    before = home.partitions()
    assert land(write_dump(rows, "two"), where, DumpSettings(**options)) == ("one", False)
    assert home.partitions() == before
    others: dict[str, Any] = {option: value for option, (value, _) in ANOTHER.items()}
    for option, (_, says) in ANOTHER.items():
        with pytest.raises(DumpError, match=re.escape(says)) as error:
            land(source, where, DumpSettings(**{option: others[option]}))
        assert "\n" not in str(error.value)
    for new in (True, False):
        assert land(source, where, DumpSettings(**others, replace=True)) == ("other", new)
    assert land(source, where, DumpSettings(**others)) == ("other", False)
    with pytest.raises(DumpError, match="other landed with another --not-people; add --replace"):
        land(source, where, DumpSettings(name="other", not_people=["bob"]))


def test_other_content_under_a_name_is_refused_or_replaces(home: Warehouse, write_dump: Dump) -> None:
    land(write_dump([said("a")]), str(home.root))
    before = home.partitions()
    source = write_dump([said("b")])
    with pytest.raises(DumpError, match=r"'dump'.*--name.*--replace") as error:
        land(source, str(home.root))
    assert "\n" not in str(error.value)
    assert home.partitions() == before
    assert land(source, str(home.root), DumpSettings(replace=True)) == ("dump", True)
    assert home.query("SELECT corpus, utterance_id FROM utterances") == [("dump", "b")]


SEATS = [
    said(None, conversation=f"c{i}", by=speaker, text=f"{i}", addressee=other)
    for i in range(6)
    for speaker, other in (("0", "1"), ("1", "0"))
]


def test_seats_are_people_or_of_their_conversation(home: Warehouse, write_dump: Dump) -> None:
    source = write_dump(SEATS)
    says = r"'0' and '1'.*6 of 6.*--speakers conversation.*--speakers person"
    with pytest.raises(DumpError, match=says) as error:
        land(source, str(home.root))
    assert "\n" not in str(error.value)
    assert home.partitions() == []
    land(source, str(home.root), DumpSettings(speakers="conversation"))
    assert home.query("SELECT speakers, speaker_scope FROM corpora") == [(12, "conversation")]
    found = home.query(
        "SELECT speaker, addressee FROM utterances WHERE conversation_id = 'c3' ORDER BY position"
    )
    assert found == [("c3/0", "c3/1"), ("c3/1", "c3/0")]


@pytest.mark.parametrize("people", [("0", "1", "2"), ("0", "1")], ids=["three in turn", "four conversations"])
def test_people_are_no_seats(home: Warehouse, write_dump: Dump, people: tuple[str, ...]) -> None:
    talks = 12 if len(people) == 3 else 4
    rows = [
        said(None, conversation=f"c{i}", by=people[(i + j) % len(people)], text=f"{i}")
        for i in range(talks)
        for j in (0, 1)
    ]
    land(write_dump(rows), str(home.root))
    assert home.query("SELECT speaker_scope FROM corpora") == [("person",)]


@pytest.mark.parametrize(
    "rows", [[b"{", said("a", text=""), said(None, by=None)], [{"conversation": "c", "utterances": []}]]
)
def test_nothing_that_lands_is_an_error(home: Warehouse, write_dump: Dump, rows: list[Any]) -> None:
    with pytest.raises(DumpError, match=r"dump\.jsonl") as error:
        land(write_dump(rows), str(home.root))
    assert "\n" not in str(error.value)
    assert home.partitions() == []
    assert not list(home.staging.glob("*"))


def test_ids_that_repeat_in_every_conversation_are_scoped_to_it(
    home: Warehouse, write_dump: Dump, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        said(str(i), conversation=f"c{talk}", by="ab"[i % 2] + str(talk), reply_to=str(i - 1) if i else None)
        for talk in range(12)
        for i in range(5)
    ]
    land(write_dump(rows), str(home.root))
    assert home.query("SELECT utterances, quarantined FROM corpora") == [(60, 0)]
    found = home.query(
        "SELECT conversation_id, position, utterance_id, reply_to, addressee FROM utterances ORDER BY ALL"
    )
    assert set(found) == {
        (
            f"c{talk}",
            i,
            f"c{talk}/{i}",
            f"c{talk}/{i - 1}" if i else None,
            "ba"[i % 2] + str(talk) if i else None,
        )
        for talk in range(12)
        for i in range(5)
    }
    said_so = capsys.readouterr().err
    assert "message ids repeat across conversations ('0' in 12)" in said_so
    assert said_so.count("CONVERSATION/ID") == 1


def test_a_scoped_id_is_still_quarantined_where_its_conversation_has_it_twice(
    home: Warehouse, write_dump: Dump
) -> None:
    rows = [
        said("a"),
        said("a", conversation="d"),
        said("a", conversation="d", text="again"),
        said("b", conversation="d", reply_to="a"),
        said("z", reply_to="b"),  # the other conversation's
        said("a", conversation=None),
    ]
    land(write_dump(rows), str(home.root), DumpSettings(max_quarantine=1.0))
    assert reasons(home) == [(3, "duplicate_id"), (6, "no_conversation")]
    assert home.query("SELECT utterance_id, reply_to, reply_absent FROM utterances ORDER BY ALL") == [
        ("c/a", None, False),
        ("c/z", "c/b", True),
        ("d/a", None, False),
        ("d/b", "d/a", False),
    ]


def test_ids_that_do_not_repeat_across_conversations_stay(
    home: Warehouse, write_dump: Dump, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [said("a", conversation=None), said("a"), said("b", conversation="d")]
    land(write_dump(rows), str(home.root), DumpSettings(max_quarantine=1.0))
    assert landed(home) == {"a", "b"}
    assert "CONVERSATION/ID" not in capsys.readouterr().err


def some_bad(share: float) -> list[dict[str, Any]]:
    """200 messages, of which this share has no text."""
    return [said(str(number), text="" if number < 200 * share else "hi") for number in range(200)]


def test_a_dump_of_which_too_much_is_quarantined_is_refused(home: Warehouse, write_dump: Dump) -> None:
    source = write_dump([b"\xff", *some_bad(0.055)])
    with pytest.raises(
        DumpError,
        match=r"^12 of the 201 messages of .*dump\.jsonl \(read as jsonl\) cannot land, more than 5%: 11 no_text, "
        r"1 undecodable; such as dump\.jsonl line 1 \(undecodable: .*\), "
        r"dump\.jsonl line 2 \(no_text: '0', 'ann', ''\), "
        r"dump\.jsonl line 3 \(.*\); .*--map.*--format.*--max-quarantine 100%$",
    ):
        land(source, str(home.root))
    assert home.partitions() == [] and not list(home.staging.glob("*"))
    land(write_dump(some_bad(0.05), "little"), str(home.root))
    assert home.query("SELECT corpus, quarantined FROM corpora") == [("little", 10)]


def test_the_entries_of_an_array_are_told_as_rows(home: Warehouse, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps([said("a"), said("b", text="")]))
    with pytest.raises(DumpError, match=r"such as dump\.json row 2 \(no_text"):
        land(str(dump), str(home.root))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [{"id": "x", "conversations": [{"from": by, "value": "hi"} for by in ("human", "gpt")]}] * 3,
            "2 duplicate_conversation; such as .*; give each conversation an id of its own, or land the rest ",
        ),
        (
            [{"dialog": ["hi", "yo", "ok"], "speakers": ["ann", "bob"]}, said("a")],
            "1 speaker_count; such as .*; give each turn its speaker in the list of speakers, or land the rest ",
        ),
        (
            [{"dialog": ["hi", "yo", "ok"], "speakers": ["ann", "bob"]}, said("a"), said("b", text="")],
            "1 no_text, 1 speaker_count; .* list of speakers, or name the columns with --map, or name the format ",
        ),
    ],
)
def test_a_refusal_says_what_mends_the_dump(
    home: Warehouse, write_dump: Dump, rows: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(DumpError, match=says):
        land(write_dump(rows), str(home.root))


@pytest.mark.parametrize("share", [-0.01, 1.01, float("nan")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(SsremError, match="max_quarantine"):
        DumpSettings(max_quarantine=share)
