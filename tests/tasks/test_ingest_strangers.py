"""Dumps of programs and data sets that nobody here wrote: what a column holds is decided by its values, roles are no
people, and `--map` reaches what is nested."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.reader_rows import rows_of

PEOPLE = ("ada", "ben", "cleo")
Write = Callable[[Any], str]
Fields = dict[str, Any]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a list of rows as JSON lines, text as it is, and anything else as one JSON value."""

    def writer(content: Any) -> str:
        path = tmp_path / "dump"
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return str(path)

    return writer


def table(names: str, *rows: tuple[object, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([names.split(","), *rows])
    return text.getvalue()


def read(dump: str, fields: Fields | None = None) -> tuple[list[dict[str, Any]], str]:
    """The messages of a dump, with None where they have no value, and what is told of its columns."""
    reader = open_dump(dump, mapping=DumpSettings(map=fields).map)
    found = (row for row in rows_of(reader) if row["record"] == "message")
    rows = [dict.fromkeys(("addressee", "metadata")) | row for row in found]
    return rows, "\n".join([reader.columns, *reader.all_notes()])


def spoken(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['conversation_id']} {row['speaker']}: {row['text']}" for row in rows]


def refusal(dump: str, home: Warehouse, **settings: Any) -> str:
    with pytest.raises(DumpError) as error:
        land(dump, str(home.root), DumpSettings(**settings))
    assert str(error.value).isprintable()
    return str(error.value)


def _turns(*said: tuple[str, str], names: str = "role content") -> list[dict[str, str]]:
    return [dict(zip(names.split(), one, strict=True)) for one in said]


_WHO_SAID = _turns(("user", "hi"), ("bot", "yo"))
_SENT = _turns(("user", "hi"), ("bot", "yo"), names="sender text")
_OF_PYTHON = str(_turns(("a", "it's"), ("b", "yo"), names="by said"))
_OF_TEAMS = [
    {"id": str(n), "chatId": f"19:{n // 4}",
     "from": {"application": None, "user": {"id": f"u{n % 3}", "displayName": "A"}},
     "body": {"contentType": "text", "content": f"message {n}"}}
    for n in range(8)
]  # fmt: skip
_NESTED = [
    {"room": {"id": f"r{n // 3}"}, "from": {"id": PEOPLE[n % 3]}, "content": {"body": f"text {n}", "kind": "m"}}
    for n in range(6)
]  # fmt: skip
_TRACES = [
    {"sessionId": f"s{n // 2}", "userId": f"u{n // 2}",
     "input": {"messages": [{"role": "user", "content": f"ask {turn}"} for turn in range(n % 2 + 1)]},
     "output": {"role": "assistant", "content": f"answer {n % 2}"}}
    for n in range(4)
]  # fmt: skip
_ASKED = [(f"d{n // 2}", f"ask {n}", "" if n == 1 else f"answer {n}") for n in range(4)]
_ANSWERED = ["d0 user: ask 0", "d0 chatbot: answer 0", "d0 user: ask 1", "d1 user: ask 2"]
_TWO_LISTS = [
    {"id": n, "original": [[who, f"{who} says"] for who in PEOPLE],
     "cleaned": [{"speaker": who, "text": f"{who} said"} for who in PEOPLE]}
    for n in range(2)
]  # fmt: skip
_ANSWERS: list[Fields] = [
    {"response": "so"},
    {"completion": [{"role": "assistant", "content": "because"}]},
    {},
]
_FRAME = {"conversation": "aabb", "speaker": "xyxy", "text": ["hi", "yo", "so", "no"]}
_PAIRS = [{"id": n, "dialogue": [[f"Where is {n}?", "There."], [f"And {n}?", "Left."]]} for n in range(6)]
_VISITS = "conversation,role,of,text"
_CLIENTS = [(f"s{n}", f"client{n % 3}", who, who) for n in range(6) for who in ("Customer", "Agent")]

READ: dict[str, tuple[Any, Fields, list[str]]] = {
    "messages of Microsoft Teams": (
        {"@odata.count": 8, "value": _OF_TEAMS}, {"text": "body.content"},
        [f"19:{n // 4} u{n % 3}: message {n}" for n in range(8)],
    ),
    "a table of what both sides said": (
        table("session_id,user_message,bot_response", ("s", "hi", "hello"), ("s", "how?", "well")),
        {"text": "user_message+bot_response"}, ["s user: hi", "s bot: hello", "s user: how?", "s bot: well"],
    ),
    "a role within the name of a column is the seat": (
        table("session_id,user_id,user_message,bot_response", ("s0", "u0", "ask", "answer"), ("s1", "u1", "x", "y")),
        {"text": "user_message+bot_response", "person": "user_id"}, ["s0 u0: ask", "s0 s0/bot: answer", "s1 u1: x"],
    ),
    "the person beside a role holds the seat of a user": (
        table("session_id,user_id,sender,message", *_CLIENTS), {"speaker": "sender", "person": "user_id"},
        ["s0 client0: Customer", "s0 s0/Agent: Agent", "s1 client1: Customer"],
    ),
    "a person needs a role that people have": (
        table(_VISITS, *((f"c{n}", role, "ann", role) for n in range(2) for role in ("Visitor", "agent"))),
        {"speaker": "role", "person": "of"},
        ["c0 ann: Visitor", "c0 c0/agent: agent", "c1 ann: Visitor", "c1 c1/agent: agent"],
    ),
    "the person of a conversation holds the seat of its messages": (
        [{"conversationId": f"c{n}", "userId": f"u{n}", "messages": _SENT} for n in range(4)], {"person": "userId"},
        ["c0 u0: hi", "c0 c0/bot: yo", "c1 u1: hi"],
    ),
    "messages within a cell have the other columns": (
        table("conversation_id,of,said", ("c1", "ann", json.dumps(_WHO_SAID)), ("c2", "ben", json.dumps(_WHO_SAID))),
        {"speaker": "said.*.role", "text": "said.*.content", "person": "of"},
        ["c1 ann: hi", "c1 c1/bot: yo", "c2 ben: hi", "c2 c2/bot: yo"],
    ),
    "keys of nested rows": (
        _NESTED, {"conversation": "room.id", "speaker": "from.id", "text": "content.body"},
        ["r0 ada: text 0", "r0 ben: text 1"],
    ),
    "traces of a model are turns of their session": (
        _TRACES,
        {"conversation": "sessionId", "person": "userId", "speaker": "input.messages.-1.role+output.role",
         "text": "input.messages.-1.content+output.content"},
        ["s0 u0: ask 0", "s0 s0/assistant: answer 0", "s0 u0: ask 1", "s0 s0/assistant: answer 1", "s1 u1: ask 0"],
    ),
    "two texts of a nested row are two turns": (
        [{"dialog_id": id, "turns": [{"user": u, "chatbot": b} for d, u, b in _ASKED if d == id]}
         for id in ("d0", "d1")],
        {"text": "turns.*.user+turns.*.chatbot"}, _ANSWERED,
    ),
    "of two lists of messages one is read": (_TWO_LISTS, {}, ["0 ada: ada said"]),
    "of two lists of messages the map can choose": (
        _TWO_LISTS, {"speaker": "original.*.0", "text": "original.*.1"}, ["0 ada: ada says"]
    ),
    "a speaker column with one value in each conversation is passed over": (
        table("conversation,user,nick,text", *((f"c{n // 4}", f"owner{n // 4}", "abcde"[n % 5], n) for n in range(24))),
        {}, [f"c{n // 4} {'abcde'[n % 5]}: {n}" for n in range(24)],
    ),
    "a table whose cells begin with markup is no log": (
        table("body,thread_id,author", *((f"<p>text {n}</p>", n // 4, PEOPLE[n % 2]) for n in range(12))),
        {}, ["0 ada: <p>text 0</p>"],
    ),
    "a text before a list is said once": (
        [{"id": n, "asker": "ada", "question": "why?", "answers": _turns(("ben", "x"), ("cleo", "y"), names="by text")}
         for n in range(3)],
        {"conversation": "id", "speaker": "asker+answers.*.by", "text": "question+answers.*.text"},
        ["0 ada: why?", "0 ben: x", "0 cleo: y"],
    ),
    "texts of a mapped list are said in turn": (
        [{"id": n, "data": ["Hi", "Ho", "Bye"]} for n in range(3)], {"text": "data.*"},
        ["0 A: Hi", "0 B: Ho", "0 A: Bye"],
    ),
    "objects without a speaker are two seats in turn": (
        {f"D{n}": {"log": [{"text": f"{n} {k}", "metadata": {}} for k in range(4)]} for n in range(3)},
        {"text": "log.*.text"}, ["D0 A: 0 0", "D0 B: 0 1", "D0 A: 0 2"],
    ),
    "a list of messages a line": ([_WHO_SAID] * 3, {}, ["1 user: hi", "1 bot: yo", "2 user: hi"]),
    "keys within the json of a cell, as a chat history of LangChain is exported": (
        table("session_id,message", *((f"s{n // 2}", json.dumps({"type": who, "data": {"content": f"text {n}"}}))
                                      for n, who in enumerate(["human", "ai"] * 3))),
        {"conversation": "session_id", "speaker": "message.type", "text": "message.data.content"},
        ["s0 human: text 0", "s0 ai: text 1"],
    ),
    "pairs of what two sides said are not of a speaker and a text": (
        _PAIRS, {"text": "dialogue.*.0+dialogue.*.1"}, ["0 0: Where is 0?", "0 1: There.", "0 0: And 0?"]
    ),
    "the answer beside the messages is read": (
        [{"id": f"c{n}", "user": f"u{n}", "messages": _turns(("user", "why")), **own}
         for n, own in enumerate(_ANSWERS)],
        {}, ["c0 u0: why", "c0 c0/assistant: so", "c1 u1: why", "c1 c1/assistant: because", "c2 u2: why"],
    ),
    "people of one name are told apart by their addresses": (
        [{"conversation": n // 2, "text": n, "sender": {"name": "Ann", "email": f"ann{n % 2}@here"}} for n in range(8)],
        {}, ["0 ann0@here: 0", "0 ann1@here: 1"],
    ),
    "lists as Python prints them are read from cells": (
        table("conversation_id,turns", *((f"c{n}", _OF_PYTHON) for n in range(3))),
        {"speaker": "turns.*.by", "text": "turns.*.said"}, ["c0 a: it's", "c0 b: yo", "c1 a: it's"],
    ),
    "a data frame as pandas writes it": (
        {name: {str(at): value for at, value in enumerate(column)} for name, column in _FRAME.items()},
        {}, ["a x: hi", "a y: yo", "b x: so", "b y: no"],
    ),
}  # fmt: skip
"""What is read → the dump, what --map names, and its first messages."""


@pytest.mark.parametrize(("content", "fields", "expected"), READ.values(), ids=READ)
def test_what_is_read(write: Write, content: Any, fields: Fields, expected: list[str]) -> None:
    assert spoken(read(write(content), fields)[0])[: len(expected)] == expected


REFUSED: dict[str, tuple[Any, Fields, list[str]]] = {
    "no text": ({"value": _OF_TEAMS}, {}, ["no key is known as text"]),
    "both sides": (
        table("session_id,user_message,bot_response", ("s", "hi", "hello"), ("s", "how?", "well")), {},
        ["for example --map text=user_message+bot_response, if a row holds what both sides said"],
    ),
    "roles of nobody": (
        table(_VISITS, *((f"c{n}", role, "ann", role) for n in range(2) for role in ("Kunde", "agent"))),
        {"speaker": "role", "person": "of"}, ["no speaker is called so; there are 'Kunde', 'agent'"],
    ),
    "quotes with backslashes": (
        'conversation,speaker,text\nc,ann,"say \\"hi\\", ok?"\nc,ben,yes\n', {},
        ['line 2: quotes within texts seem to be written as \\"; write them doubled'],
    ),
    "nested rows": (
        _NESTED, {}, ["the keys are room, from, content; a row is {'room': {'id': 'r0'}", "KEY.KEY"]
    ),
    "a path that is not there": (
        _NESTED, {"conversation": "room.id", "speaker": "from.id", "text": "content.text"},
        ["--map names 'content.text', which is not there"],
    ),
    "a path within the messages": (
        {"room_name": "R", "messages": [{"sender": f"@{who}", "content": {"body": who}} for who in "abab"]},
        {"text": "content.body"}, ["(did you mean messages.*.content.body?)"],
    ),
    "members of two lists": (
        [{"a": [{"who": "x"}], "b": [{"said": "y"}]}], {"speaker": "a.*.who", "text": "b.*.said"},
        ["members of two lists, a and b"],
    ),
    "members of a list within a list": (
        [{"scenes": [{"id": "c0", "said": [{"by": "Ann", "text": "hi"}, {"by": "Ben", "text": "yo"}]}]}] * 3,
        {"conversation": "scenes.*.id", "speaker": "scenes.*.said.*.by", "text": "scenes.*.said.*.text"},
        ["a path has one *"],
    ),
    "pairs of two sides": (_PAIRS, {}, ["--map text=dialogue.*.0+dialogue.*.1 if"]),
    "chains without replies": (
        table("speaker,text", *(("xy"[n % 2], n) for n in range(9))), {"conversation": "@replies"},
        ["no column is known as id or reply_to"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "fields", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_the_way_out(write: Write, content: Any, fields: Fields, told: list[str]) -> None:
    dump = write(content)
    with pytest.raises(DumpError) as error:
        read(dump, fields)
    assert str(error.value).isprintable() and all(text in str(error.value) for text in told)


_NUMBERED = [{"conversation": "c", "turn_index": n, "speaker": f"p{n}", "text": f"{n}"} for n in (2, 0, 1)]
_ANEW = [{"turns": [{"turn_index": n, "speaker": f"p{n}", "text": f"{n}"} for n in range(3)]}] * 3
_UNNAMED = table(",conversation,speaker,text", *((n, n // 4, PEOPLE[n % 3], n) for n in range(12)))
_MAILS = [
    {"id": n, "sender": n % 3, "recipient": n // 6 % 3, "subject": f"topic {n // 6}", "content": n}
    for n in range(36)
]


@pytest.mark.parametrize(
    ("content", "note", "is_told"),
    [
        (_NUMBERED, "in the order of the dump, which is not that of 'turn_index'", True),
        (_ANEW, "order of the dump", False),
        (_UNNAMED, "not used: a column without a name", True),
        (_TWO_LISTS, "of the lists 'original' and 'cleaned' 'cleaned' is read; --map speaker=original.*.0 "
         "text=original.*.1 reads", True),
        ([{"id": n, "messages": _turns(("user", "why")), "response": "so"} for n in range(3)],
         "where messages end with the user, 'response' beside them is the answer", True),
        ({"messages": _MAILS, "flags": []},
         "read id from 'id', speaker from 'sender', text from 'content'; not used: recipient, subject", True),
    ],
    ids=["numbered", "numbered anew in each conversation", "without a name", "two lists", "answer beside", "mails"],
)  # fmt: skip
def test_what_the_content_decided_is_told(write: Write, content: Any, note: str, is_told: bool) -> None:
    assert (note in read(write(content))[1]) == is_told


def test_a_recipient_is_the_addressee_if_recipients_speak(write: Write) -> None:
    rows, _ = read(write({"messages": _MAILS, "flags": []}))
    assert all(row["addressee"] is None and "recipient" in json.loads(row["metadata"]) for row in rows)
    speaking = [(f"c{n}", PEOPLE[n % 2], PEOPLE[(n + 1) % 2], f"text {n}") for n in range(12)]
    rows, _ = read(write(table("conversation,sender,recipient,text", *speaking)))
    assert [row["addressee"] for row in rows] == [to for _, _, to, _ in speaking]


def test_ids_that_repeat_in_a_conversation_and_parents_that_are_no_messages_are_none(write: Write) -> None:
    repeated = [(f"c{n // 6}", 7, PEOPLE[n % 3], n) for n in range(12)]
    rows, _ = read(write(table("conversation,id,speaker,text", *repeated)))
    assert len(rows) == 12 and not any("utterance_id" in row for row in rows)
    inside = [(f"c{n // 6}", n, PEOPLE[n % 3], n, "folder-9") for n in range(12)]
    rows, _ = read(write(table("conversation,id,speaker,text,parentId", *inside)))
    assert len(rows) == 12 and not any("reply_to" in row for row in rows)


def test_columns_beside_those_that_are_read_are_metadata(write: Write) -> None:
    rows, _ = read(write(_NESTED), {"conversation": "room.id", "speaker": "from.id", "text": "content.body"})
    assert {row["metadata"] for row in rows} == {'{"content":{"kind":"m"}}'}
    people = [(f"90{n % 3}", ("Sam", "Sam", "Ida")[n % 3], f"2026-03-01T10:{n:02}:00Z", n) for n in range(9)]
    rows, _ = read(write(table("AuthorID,Author,Date,Content", *people)), {"conversation": "@file"})
    named = {(row["speaker"], json.loads(row["metadata"])["Author"]) for row in rows}
    assert named == {("900", "Sam"), ("901", "Sam"), ("902", "Ida")}  # the id beside a name is the person
    rows, _ = read(write(_UNNAMED))
    assert len(rows) == 12 and not any(row["metadata"] for row in rows)


def test_words_of_a_name_may_be_told_by_capitals(write: Write) -> None:
    cells = [{"conversationId": n // 3, "authorId": n % 2, "body": f"{n}"} for n in range(9)]
    said = [row | {"createdAt": f"2024-05-0{day}"} for day, row in enumerate(cells, 1)]
    assert [row["time"].day for row in read(write(said))[0]] == list(range(1, 10))


def test_a_chat_of_telegram_may_begin_with_a_message(write: Write) -> None:
    said = [
        {"id": n, "type": "message", "date": f"2024-05-01T10:00:0{n}", "from": PEOPLE[n % 2], "text": f"text {n}",
         "from_id": f"user{n % 2}"}
        for n in range(4)
    ]  # fmt: skip
    chat = write({"name": "us", "type": "personal_chat", "id": 9, "messages": said})
    assert open_dump(chat).format == "telegram" and len(read(chat)[0]) == 4


@pytest.mark.parametrize("flag", [True, "true", 1])
def test_what_says_that_it_is_a_bot_is_no_person(flag: object, write: Write) -> None:
    rows = [(("bo", "ada")[n % 2], {"conversation": n // 2, "text": f"text {n}"}) for n in range(8)]
    for said in (
        [row | {"speaker": who, "isBot": flag if who == "bo" else False} for who, row in rows],
        [row | {"speaker": {"id": who, "is_bot": flag if who == "bo" else False}} for who, row in rows],
        [row | {"author": {"id": who} | ({"bot": flag} if who == "bo" else {})} for who, row in rows],
    ):
        people = {(row["speaker"], row.get("is_person", True)) for row in read(write(said))[0]}
        assert people == {("ada", True), ("bo", False)}


@pytest.mark.parametrize("none", ["NULL", r"\N", "00000000-0000-0000-0000-000000000000"])
def test_any_word_for_no_reply_begins_a_chain(none: str, write: Write) -> None:
    rows = [(f"{c}{n}", f"u{n % 2}", n, f"{c}{n - 1}" if n else none) for c in "abcd" for n in range(4)]
    read_rows, _ = read(write(table("id,user,text,parent_id", *rows)), {"conversation": "@replies"})
    assert sorted(Counter(row["conversation_id"] for row in read_rows).values()) == [4] * 4


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_files_that_hold_a_mapped_key_flat_or_nested(tmp_path: Path, order: tuple[int, int]) -> None:
    said = [[(c, PEOPLE[n % 3], f"text {n}") for n in range(4)] for c in "cd"]
    nested, flat = said
    tables = (
        table("conversation,user,text", *((c, json.dumps({"name": who}), text) for c, who, text in nested)),
        table("conversation,user.name,text", *flat),
    )
    lines = (
        [{"conversation": c, "user": {"name": who}, "text": text} for c, who, text in nested],
        [{"conversation": c, "user.name": who, "text": text} for c, who, text in flat],
    )
    kinds = {"csv": tables, "jsonl": ["".join(json.dumps(row) + "\n" for row in rows) for rows in lines]}
    for suffix, contents in kinds.items():
        for at, number in enumerate(order):
            (tmp_path / f"{at}.{suffix}").write_text(contents[number])
        rows, _ = read(str(tmp_path / f"*.{suffix}"), {"speaker": "user.name"})
        assert sorted(spoken(rows)) == sorted(f"{c} {who}: {text}" for c, who, text in nested + flat)


# Landed


def test_roles_name_seats_and_no_people(write: Write, home: Warehouse) -> None:
    turns = _turns(("USER", "a taxi"), ("SYSTEM", "when?"), ("USER", "now"), names="speaker utterance")
    dialogues = [{"dialogue_id": f"D{n}.json", "services": ["taxi"], "turns": turns} for n in range(2)]
    dump = write({"data": dialogues})
    assert "speaker ids 'SYSTEM' and 'USER' are roles; they name seats, not people" in refusal(dump, home)
    dump = write(table("session_id,user_id,sender,message", *_CLIENTS))
    assert "speaker ids 'Agent' and 'Customer' are roles" in refusal(dump, home)
    one = "in 6 of 6 conversations of several messages one speaker says everything"
    assert one in refusal(dump, home, map={"speaker": "user_id"})
    rows = [(n // 2, ("Customer", PEOPLE[n // 2 % 3])[n % 2], f"text {n}") for n in range(24)]
    said = refusal(write(table("conversation,speaker,text", *rows)), home)
    assert "speaker id 'Customer' speaks in 12 of 12 conversations; it names a seat, not a person" in said


def test_what_a_dump_holds_again_out_of_order_or_oddly_is_told(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    histories = [
        {"id": f"{c}-{n}", "turns": [{"speaker": f"{c}{i % 2}", "text": f"{c} {i}"} for i in range(n)]}
        for c in range(9) for n in (2, 3)
    ]  # fmt: skip
    names = ("Ann", "ben", "ANN ", "cleo", "dora", "ben")
    twice = [
        {"conversation": "c", "speaker": names[n], "text": f"{n}", "time": f"2024-01-01T10:00:{n:02}"}
        for n in (0, 1, 2, 2, 5, 4, 3)
    ]
    land(write([*histories, *twice]), str(home.root))
    said = capsys.readouterr().err
    assert "9 of 19 conversations are the beginning of another one" in said
    assert "1 of 7 messages have the conversation or id, speaker, time and text of another one" in said
    alike = "'ANN ' and 'Ann' are read as different people, though they differ by case and blanks alone"
    assert f"{alike} (such names: 1)" in said
    assert "is not in the order in which they were said" in said
    overlap = [
        {"conversation": c, "id": f"m{n}", "speaker": names[n % 2], "text": f"{n}", "time": 1.7e9 + n}
        for c, first in (("week 1", 0), ("week 2", 3))
        for n in range(first, first + 5)
    ]
    land(write(overlap), str(home.root), DumpSettings(name="overlap"))
    assert "2 of 10 messages have the conversation or id" in capsys.readouterr().err


def test_conversations_that_are_there_more_than_once_are_told(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"c{n // 4}", PEOPLE[n % 3], f"text {n}") for n in range(40)]
    people, names = {"speakers": "person"}, "conversation,speaker,text"
    land(write(table(names, *rows)), str(home.root), DumpSettings(name="one", **people))
    assert "conversations have" not in capsys.readouterr().err
    copies = [(f"{id}x", who, text) for id, who, text in rows]
    rows += [*copies, *[("own", who, f"{who} again") for who in PEOPLE] * 2]
    land(write(table(names, *rows)), str(home.root), DumpSettings(name="copied", **people))
    said = capsys.readouterr().err
    assert "11 of 21 conversations have the texts of another one, or their own twice" in said
    assert "10 of 21 conversations have landed in the corpus 'one', too" in said


def test_chains_of_replies_are_conversations(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    """In any order of rows; replies to a message that the dump lacks belong together; one to itself begins a chain."""
    replies = {
        "c": "b",
        "a": "",
        "d": "b",
        "b": "a",
        "f": "gone",
        "e": "gone",
        "x": "y",
        "y": "x",
        "s": "s",
        "t": "t",
    }
    rows = [(id, PEOPLE[at % 3], to, id) for at, (id, to) in enumerate(replies.items())]
    fields = {"conversation": "@replies"}
    land(write(table("id,speaker,reply_to,text", *rows)), str(home.root), DumpSettings(map=fields))
    ordered = "SELECT conversation_id, string_agg(text, '' ORDER BY position) FROM utterances GROUP BY ALL"
    found = dict(home.query(ordered))
    tree = found.pop("a")
    assert tree.startswith("ab") and sorted(tree) == [*"abcd"]
    others = {id: "".join(sorted(texts)) for id, texts in found.items()}
    assert others == {"gone": "ef", "s": "s", "t": "t", "x": "x", "y": "y"}
    told = "2 messages reply to themselves, and are read as ones that reply to nothing"
    assert told in capsys.readouterr().err
    lists = {"map": {**fields, "text": "text.*"}, "name": "none"}
    assert "has no message" in refusal(write(table("id,speaker,reply_to,text", *rows[:4])), home, **lists)


def test_quiet_silences_the_notes(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_QUIET", "")
    dump = write(table("conversation,who,text", *((f"c{n // 4}", PEOPLE[n % 3], n) for n in range(12))))
    command = ["ingest", dump, "--map", "speaker=who", "--home", str(home.root)]
    told = "read conversation from 'conversation', speaker from 'who', text from 'text'"
    for options, is_told in (([], True), (["--replace", "--quiet"], False)):
        assert main([*command, *options]) == 0
        assert (told in capsys.readouterr().err) == is_told


def _part(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


_TURNS = [{"id": f"Speaker {n % 2 + 1}", "text": f"text {n}"} for n in range(4)]
OF_DOCS: dict[str, Any] = {
    "Zulip": {
        "zerver_message": [
            {"id": n, "sender": n % 5, "recipient": 50 + n // 12, "subject": f"topic {n // 4}", "content": f"text {n}",
             "date_sent": 1718000000.0 + n}
            for n in range(24)
        ]
    },
    "Langfuse": _TRACES,
    "OpenTelemetry": [
        {"name": "chat", "attributes": {
            "gen_ai.conversation.id": f"c{n // 2}", "user.id": f"u{n // 2}", "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps([_part("user", f"ask {turn}") for turn in range(n % 2 + 1)]),
            "gen_ai.output.messages": [_part("assistant", f"answer {n}")]}}
        for n in range(6)
    ],
    "Multi-Session Chat": [{"metadata": {"initial_data_id": f"m{n}"}, "dialog": _TURNS} for n in range(6)],
    "Stack Exchange": table(
        "Id,PostId,UserId,Text,CreationDate",
        *((n, n // 4, 100 + n % 5, f"text {n}", "2025-05-01 10:00:00") for n in range(24)),
    ),
    "Ubuntu": table(
        "folder,dialogueID,date,from,to,text",
        *((3, f"{n // 4}.tsv", "2008-04-23T14:55:00.000Z", "abcde"[n % 5], "", f"text {n}") for n in range(24)),
    ),
    "Customer Support on Twitter": table(
        "tweet_id,author_id,inbound,created_at,text,response_tweet_id,in_response_to_tweet_id",
        *((n, "Help" if n % 2 else f"u{n // 4}", n % 2, "Tue Oct 31 22:10:47 +0000 2017", f"text {n}", "",
           f"{n - 1}.0" if n % 4 else "")
          for n in reversed(range(24))),
    ),
    "Hacker News": [
        {"id": n, "by": "abcdefg"[n % 7], "time": 17e8 + n}
        | ({"parent": n - 1, "text": f"text {n}"} if n % 4 else {"title": f"title {n}", "url": "x"})
        for n in range(24)
    ],
    "MultiWOZ": [
        {"dialogue_id": "a.json", "turns": [{"speaker": who, "utterance": who} for who in ("USER", "SYSTEM")]}
    ],
    "data.json": {
        f"MUL{n}.json": {"goal": {}, "log": [{"text": f"{n} {at}", "metadata": {}} for at in range(4)]}
        for n in range(3)
    },
    "Gradio": [{"id": n, "history": [[f"ask {n}", "yes"], [f"and {n}", "no"]]} for n in range(6)],
    "Blended Skill Talk": [{"personas": [["I row."]], "dialog": [[0, "hi"], [1, "ho"]]}],
}  # fmt: skip
"""What docs/formats.md gives a command for → a dump in its layout, with texts of our own."""


@pytest.mark.parametrize("what", OF_DOCS)
def test_the_commands_of_the_docs_land_what_they_are_for(write: Write, tmp_path: Path, what: str) -> None:
    lines = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").split("\n")
    line = next(line for line in lines if what in line and "| `ssrem ingest DUMP" in line)
    command = line.rpartition("| `")[2].partition("`")[0]
    words = command.replace("DUMP", write(OF_DOCS[what])).split()[1:]
    home = Warehouse.at(tmp_path / "home")
    assert main([*words, "--home", str(home.root)]) == 0
    ((landed, quarantined),) = home.query("SELECT utterances, quarantined FROM corpora")
    assert landed and not quarantined
    assert home.query("SELECT max(participants) > 1 FROM conversations") == [(True,)]
