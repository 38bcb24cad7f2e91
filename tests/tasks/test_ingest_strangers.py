"""Dumps of programs and data sets that nobody here wrote: what a column holds is decided by its values, roles are no
people, and `--map` reaches what is nested."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.errors import DumpError
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT

PEOPLE = ("ada", "ben", "cleo")
Write = Callable[[Any], str]


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


def spoken(home: Warehouse) -> list[tuple[str, str, str]]:
    query = "SELECT conversation_id, speaker, text FROM utterances ORDER BY conversation_no, position"
    return home.query(query)


def refusal(dump: str, home: Warehouse, **settings: Any) -> str:
    with pytest.raises(DumpError) as error:
        land(dump, str(home.root), DumpSettings(**settings))
    assert str(error.value).isprintable()
    return str(error.value)


def test_a_dialogue_of_user_and_system_has_seats(write: Write, home: Warehouse) -> None:
    turns = [
        {"turn_id": str(n), "speaker": who, "utterance": f"turn {n}"}
        for n, who in enumerate(["USER", "SYSTEM"] * 2)
    ]
    dump = write(
        {"data": [{"dialogue_id": f"D{n}.json", "services": ["taxi"], "turns": turns} for n in range(2)]}
    )
    assert "speaker ids 'SYSTEM' and 'USER' are roles; they name seats, not people" in refusal(dump, home)
    land(dump, str(home.root), DumpSettings(speakers="conversation"))
    assert home.query("SELECT DISTINCT speaker, is_person FROM utterances ORDER BY 1") == [
        (f"D{n}.json/{who}", True) for n in range(2) for who in ("SYSTEM", "USER")
    ]


def test_messages_of_microsoft_teams(write: Write, home: Warehouse) -> None:
    rows = [
        {
            "id": str(n),
            "chatId": f"19:{n // 4}",
            "from": {"application": None, "device": None, "user": {"id": f"u{n % 3}", "displayName": "Ann"}},
            "body": {"contentType": "text", "content": f"message {n}"},
        }
        for n in range(8)
    ]
    dump = write({"@odata.count": 8, "value": rows})
    assert "no key is known as text" in refusal(dump, home)
    land(dump, str(home.root), DumpSettings(map={"text": "body.content"}))
    assert spoken(home) == [(f"19:{n // 4}", f"u{n % 3}", f"message {n}") for n in range(8)]


def test_a_table_of_what_both_sides_said(write: Write, home: Warehouse) -> None:
    dump = write(table("session_id,user_message,bot_response", ("s", "hi", "hello"), ("s", "how?", "well")))
    told = refusal(dump, home)
    assert "for example --map text=user_message+bot_response, if a row holds what both sides said" in told
    settings = DumpSettings(map={"text": "user_message+bot_response"}, speakers="conversation")
    land(dump, str(home.root), settings)
    assert [text for *_, text in spoken(home)] == ["hi", "hello", "how?", "well"]


def test_the_person_beside_a_role_holds_the_seat_of_a_user(write: Write, home: Warehouse) -> None:
    rows = [(f"s{n}", f"client{n % 3}", who, f"{who} {n}") for n in range(6) for who in ("Customer", "Agent")]
    dump = write(table("session_id,user_id,sender,message", *rows))
    assert "speaker ids 'Agent' and 'Customer' are roles" in refusal(dump, home)
    one = "in 6 of 6 conversations of several messages one speaker says everything"
    assert one in refusal(dump, home, map={"speaker": "user_id"})
    land(dump, str(home.root), DumpSettings(map={"speaker": "sender", "person": "user_id"}))
    assert spoken(home)[:3] == [
        ("s0", "client0", "Customer 0"),
        ("s0", "s0/Agent", "Agent 0"),
        ("s1", "client1", "Customer 1"),
    ]


def test_a_person_needs_a_role_that_people_have(write: Write, home: Warehouse) -> None:
    names, mapping = "conversation,role,of,text", {"speaker": "role", "person": "of"}
    rows = [(f"c{n}", role, "ann", f"{role} {n}") for n in range(2) for role in ("Visitor", "agent")]
    land(write(table(names, *rows)), str(home.root), DumpSettings(map=mapping))
    assert [speaker for _, speaker, _ in spoken(home)] == ["ann", "c0/agent", "ann", "c1/agent"]
    dump = write(table(names, *((c, "Kunde" if who == "Visitor" else who, of, t) for c, who, of, t in rows)))
    assert "no speaker is called so; there are 'Kunde', 'agent'" in refusal(
        dump, home, map=mapping, replace=True
    )


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (
            [{"id": f"{c}-{n}", "turns": [{"speaker": f"{c}{i % 2}", "text": f"{c} {i}"} for i in range(n)]}
             for c in range(9) for n in (2, 3)],
            "9 of 18 conversations are the beginning of another one",
        ),
        (
            [{"conversation": "c", "speaker": f"p{n % 2}", "text": f"{n}", "time": f"2024-01-01T10:00:{n:02}"}
             for n in (0, 1, 2, 2, 3)],
            "1 of 5 messages have the conversation, speaker, time and text of another one",
        ),
        (
            [{"conversation": "c", "turn_index": n, "speaker": f"p{n}", "text": f"{n}"} for n in (2, 0, 1)],
            "in the order of the dump, which is not that of 'turn_index'",
        ),
    ],
    ids=["histories", "twice", "numbered"],
)  # fmt: skip
def test_what_a_dump_holds_again_or_out_of_order_is_told(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str], rows: list[Any], note: str
) -> None:
    land(write(rows), str(home.root))
    assert note in capsys.readouterr().err


def test_numbers_that_begin_anew_in_each_conversation_are_in_order(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [{"turn_index": n, "speaker": f"p{n}", "text": f"{n}"} for n in range(3)]
    land(write([{"turns": turns} for _ in range(3)]), str(home.root))
    assert "order of the dump" not in capsys.readouterr().err


def test_quotes_with_backslashes_are_refused(write: Write, home: Warehouse) -> None:
    dump = write('conversation,speaker,text\nc,ann,"say \\"hi\\", ok?"\nc,ben,yes\n')
    assert 'line 2: quotes within texts seem to be written as \\"; write them doubled' in refusal(dump, home)


def test_messages_within_a_cell_have_the_other_columns(write: Write, home: Warehouse) -> None:
    said = json.dumps([{"role": "user", "content": "hi"}, {"role": "bot", "content": "yo"}])
    dump = write(table("conversation_id,of,said", ("c1", "ann", said), ("c2", "ben", said)))
    mapping = {"speaker": "said.*.role", "text": "said.*.content", "person": "of"}
    land(dump, str(home.root), DumpSettings(map=mapping))
    assert spoken(home) == [
        ("c1", "ann", "hi"), ("c1", "c1/bot", "yo"), ("c2", "ben", "hi"), ("c2", "c2/bot", "yo")
    ]  # fmt: skip


def test_a_recipient_that_is_no_speaker_is_no_addressee(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        {
            "id": n,
            "sender": n % 3,
            "recipient": n // 6 % 3,
            "subject": f"topic {n // 6}",
            "content": f"text {n}",
        }
        for n in range(36)
    ]
    land(write({"messages": messages, "flags": []}), str(home.root))
    said = capsys.readouterr().err
    assert (
        "read id from 'id', speaker from 'sender', text from 'content'; not used: recipient, subject" in said
    )
    assert home.query("SELECT count(addressee) FROM utterances") == [(0,)]
    assert home.query("SELECT count(*) FROM utterances WHERE json_exists(metadata, '$.recipient')") == [(36,)]


def test_addressees_who_speak_are_addressed(write: Write, home: Warehouse) -> None:
    rows = [(f"c{n}", PEOPLE[n % 2], PEOPLE[(n + 1) % 2], f"text {n}") for n in range(12)]
    land(write(table("conversation,sender,recipient,text", *rows)), str(home.root))
    assert home.query("SELECT count(addressee) FROM utterances") == [(12,)]


def test_an_id_that_repeats_in_its_conversation_is_none(write: Write, home: Warehouse) -> None:
    rows = [(f"c{n // 6}", 7, PEOPLE[n % 3], f"text {n}") for n in range(12)]
    land(write(table("conversation,id,speaker,text", *rows)), str(home.root))
    assert home.query("SELECT count(*), count(DISTINCT utterance_id) FROM utterances") == [(12, 12)]


def test_the_id_beside_a_name_is_the_person(write: Write, home: Warehouse) -> None:
    rows = [
        (f"90{n % 3}", "Sam" if n % 3 < 2 else "Ida", f"2026-03-01T10:{n:02}:00Z", f"text {n}")
        for n in range(9)
    ]
    land(
        write(table("AuthorID,Author,Date,Content", *rows)),
        str(home.root),
        DumpSettings(map={"conversation": "@file"}),
    )
    query = "SELECT DISTINCT speaker, metadata->>'$.Author' FROM utterances ORDER BY 1"
    assert home.query(query) == [("900", "Sam"), ("901", "Sam"), ("902", "Ida")]


def test_a_speaker_column_with_one_value_in_each_conversation_is_passed_over(
    write: Write, home: Warehouse
) -> None:
    rows = [(f"c{n // 4}", f"owner{n // 4}", "abcde"[n % 5], f"text {n}") for n in range(24)]
    land(write(table("conversation,user,nick,text", *rows)), str(home.root))
    assert {speaker for _, speaker, _ in spoken(home)} == {*"abcde"}


def test_a_column_without_a_name_is_nothing(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(n, f"c{n // 4}", PEOPLE[n % 3], f"text {n}") for n in range(12)]
    land(write(table(",conversation,speaker,text", *rows)), str(home.root))
    assert "not used: a column without a name" in capsys.readouterr().err
    assert home.query("SELECT count(metadata) FROM utterances") == [(0,)]


def test_a_message_that_replies_to_itself_begins_its_thread(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "id": f"{c}{n}",
            "root": c,
            "speaker": PEOPLE[n],
            "text": f"{c} {n}",
            "reply-to": f"{c}{max(n - 1, 0)}",
        }
        for c in "xy"
        for n in range(3)
    ]
    land(write(rows), str(home.root), DumpSettings(map={"conversation": "root"}))
    assert (
        "2 messages reply to themselves, and are read as ones that reply to nothing"
        in capsys.readouterr().err
    )
    query = "SELECT utterance_id, reply_to, reply_absent FROM utterances ORDER BY conversation_no, position LIMIT 2"
    assert home.query(query) == [("x0", None, False), ("x1", "x0", False)]


def test_of_two_lists_of_messages_one_is_read_and_the_map_can_choose(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = [[who, f"{who} says"] for who in PEOPLE]
    plain = [{"speaker": who, "text": f"{who} said"} for who in PEOPLE]
    dump = write([{"id": n, "original": raw, "cleaned": plain} for n in range(2)])
    land(dump, str(home.root))
    read = "of the lists 'original' and 'cleaned' 'cleaned' is read; --map speaker=original.*.0 text=original.*.1 reads"
    assert read in capsys.readouterr().err
    assert spoken(home)[0] == ("0", "ada", "ada said")
    fields = {"speaker": "original.*.0", "text": "original.*.1"}
    land(dump, str(home.root), DumpSettings(map=fields, replace=True))
    assert spoken(home)[0] == ("0", "ada", "ada says")


def test_keys_of_nested_rows(write: Write, home: Warehouse) -> None:
    rows = [
        {
            "room": {"id": f"r{n // 3}"},
            "from": {"id": PEOPLE[n % 3]},
            "content": {"body": f"text {n}", "kind": "m"},
        }
        for n in range(6)
    ]
    dump = write(rows)
    said = refusal(dump, home)
    assert "the keys are room, from, content; a row is {'room': {'id': 'r0'}" in said and "KEY.KEY" in said
    nowhere = {"conversation": "room.id", "speaker": "from.id", "text": "content.text"}
    assert "--map names 'content.text', which is not there" in refusal(dump, home, map=nowhere)
    land(dump, str(home.root), DumpSettings(map={**nowhere, "text": "content.body"}))
    assert spoken(home)[:2] == [("r0", "ada", "text 0"), ("r0", "ben", "text 1")]
    assert home.query("SELECT DISTINCT metadata FROM utterances") == [('{"content":{"kind":"m"}}',)]


def test_traces_of_a_model_are_turns_of_their_session(write: Write, home: Warehouse) -> None:
    rows = [
        {
            "sessionId": f"s{n // 2}",
            "userId": f"u{n // 2}",
            "input": {"messages": [{"role": "user", "content": f"ask {turn}"} for turn in range(n % 2 + 1)]},
            "output": {"role": "assistant", "content": f"answer {n % 2}"},
        }
        for n in range(4)
    ]
    fields = {
        "conversation": "sessionId",
        "person": "userId",
        "speaker": "input.messages.-1.role+output.role",
        "text": "input.messages.-1.content+output.content",
    }
    land(write(rows), str(home.root), DumpSettings(map=fields))
    assert spoken(home)[:4] == [
        ("s0", "u0", "ask 0"),
        ("s0", "s0/assistant", "answer 0"),
        ("s0", "u0", "ask 1"),
        ("s0", "s0/assistant", "answer 1"),
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_two_texts_of_a_row_are_two_turns(write: Write, home: Warehouse, nested: bool) -> None:
    asked = [(f"d{n // 2}", f"ask {n}", "" if n == 1 else f"answer {n}") for n in range(4)]
    if nested:
        talks = [[{"user": u, "chatbot": b} for d, u, b in asked if d == id] for id in ("d0", "d1")]
        dump = write([{"dialog_id": f"d{n}", "turns": turns} for n, turns in enumerate(talks)])
        fields = {"text": "turns.*.user+turns.*.chatbot"}
    else:
        dump, fields = write(table("dialog_id,user,chatbot", *asked)), {"text": "user+chatbot"}
    land(dump, str(home.root), DumpSettings(map=fields, speakers="conversation"))
    assert [(speaker, text) for _, speaker, text in spoken(home)] == [
        ("d0/user", "ask 0"),
        ("d0/chatbot", "answer 0"),
        ("d0/user", "ask 1"),
        ("d1/user", "ask 2"),
        ("d1/chatbot", "answer 2"),
        ("d1/user", "ask 3"),
        ("d1/chatbot", "answer 3"),
    ]


def test_members_of_two_lists_are_refused(write: Write, home: Warehouse) -> None:
    dump = write([{"a": [{"who": "x"}], "b": [{"said": "y"}]}])
    assert "members of two lists, a and b" in refusal(
        dump, home, map={"speaker": "a.*.who", "text": "b.*.said"}
    )


def test_quiet_silences_the_notes(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_QUIET", "")
    rows = [(f"c{n // 4}", PEOPLE[n % 3], f"text {n}") for n in range(12)]
    command = ["ingest", write(table("conversation,who,text", *rows)), "--map", "speaker=who", "--home"]
    assert main([*command, str(tmp_path / "loud")]) == 0
    assert (
        "read conversation from 'conversation', speaker from 'who', text from 'text'"
        in capsys.readouterr().err
    )
    assert main([*command, str(tmp_path / "silent"), "--quiet"]) == 0
    assert "read conversation" not in capsys.readouterr().err


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
    "Langfuse": [
        {"id": f"t{n}", "sessionId": f"s{n // 2}", "userId": f"u{n // 2}", "timestamp": "2025-05-01T10:00:00Z",
         "input": {"messages": [{"role": "user", "content": f"ask {n}"}]},
         "output": {"role": "assistant", "content": f"answer {n}"}}
        for n in range(6)
    ],
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
        {"id": n, "by": "abcdefg"[n % 7], "parent": n - 1 if n % 4 else None, "text": f"text {n}", "time": 17e8 + n}
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
    "Wizard of Wikipedia": [
        {"chosen_topic": "tea", "dialog": [{"speaker": who, "text": who} for who in ("0_Wizard", "1_Apprentice")]}
    ],
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


def test_a_table_whose_cells_begin_with_markup_is_no_log(write: Write, home: Warehouse) -> None:
    rows = [(f"<p>text {n}</p>", n // 4, PEOPLE[n % 2]) for n in range(12)]
    land(write(table("body,thread_id,author", *rows)), str(home.root))
    assert spoken(home)[0] == ("0", "ada", "<p>text 0</p>")
    mail = [(f"<{n}@x>", f"<{n // 4}@x>", PEOPLE[n % 2], f"text {n}") for n in range(12)]
    land(write(table("Message-ID,Thread-ID,From,Body", *mail)), str(home.root), DumpSettings(name="mail"))
    assert home.query("SELECT count(DISTINCT conversation_id) FROM utterances WHERE corpus = 'mail'") == [
        (3,)
    ]


def test_the_person_of_a_conversation_holds_the_seat_of_its_messages(write: Write, home: Warehouse) -> None:
    said = [{"sender": who, "text": f"by {who}"} for who in ("user", "bot")]
    dump = write([{"conversationId": f"c{n}", "userId": f"u{n}", "messages": said} for n in range(4)])
    land(dump, str(home.root), DumpSettings(map={"person": "userId"}))
    assert spoken(home)[:2] == [("c0", "u0", "by user"), ("c0", "c0/bot", "by bot")]


def test_a_role_within_the_name_of_a_column_is_the_seat(write: Write, home: Warehouse) -> None:
    rows = [(f"s{n // 3}", f"u{n // 3 % 2}", f"ask {n}", f"answer {n}") for n in range(12)]
    dump = write(table("session_id,user_id,user_message,bot_response", *rows))
    fields = {"text": "user_message+bot_response", "person": "user_id"}
    land(dump, str(home.root), DumpSettings(map=fields))
    assert spoken(home)[:2] == [("s0", "u0", "ask 0"), ("s0", "s0/bot", "answer 0")]


def test_a_text_before_a_list_is_said_once(write: Write, home: Warehouse) -> None:
    answers = [{"author": "ben", "text": "first"}, {"author": "cleo", "text": "second"}]
    dump = write([{"id": n, "asker": "ada", "question": "why?", "answers": answers} for n in range(3)])
    fields = {"conversation": "id", "speaker": "asker+answers.*.author", "text": "question+answers.*.text"}
    land(dump, str(home.root), DumpSettings(map=fields))
    assert spoken(home)[:3] == [("0", "ada", "why?"), ("0", "ben", "first"), ("0", "cleo", "second")]


def test_texts_of_a_mapped_list_are_said_in_turn(write: Write, home: Warehouse) -> None:
    dump = write([{"id": n, "data": ["Hi", "Ho", "Bye"]} for n in range(3)])
    land(dump, str(home.root), DumpSettings(map={"text": "data.*"}, speakers="conversation"))
    assert spoken(home)[:3] == [("0", "0/A", "Hi"), ("0", "0/B", "Ho"), ("0", "0/A", "Bye")]


def test_a_list_of_messages_a_line(write: Write, home: Warehouse) -> None:
    dump = write([[{"role": who, "content": f"{n} {who}"} for who in ("user", "bot")] for n in range(3)])
    land(dump, str(home.root), DumpSettings(speakers="conversation"))
    assert spoken(home)[:2] == [("1", "1/user", "0 user"), ("1", "1/bot", "0 bot")]


def test_an_author_that_says_it_is_a_bot_is_no_person(write: Write, home: Warehouse) -> None:
    authors = [{"id": "7", "username": "ada"}, {"id": "8", "username": "poll", "bot": True}, {"id": "9"}]
    rows = [{"channel_id": "c", "id": n, "author": authors[n % 3], "content": f"text {n}"} for n in range(9)]
    land(write(rows), str(home.root))
    assert home.query("SELECT DISTINCT speaker, is_person FROM utterances ORDER BY 1") == [
        ("7", True),
        ("8", False),
        ("9", True),
    ]


def test_words_of_a_name_may_be_told_by_capitals(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [f"2024-05-0{9 - n % 3}T10:00:00" for n in range(9)]
    rows = [
        {"conversationId": n // 3, "authorId": n % 2, "body": f"text {n}", "createdAt": times[n]}
        for n in range(9)
    ]
    land(write(rows), str(home.root))
    assert home.query("SELECT count(time) FROM utterances") == [(9,)]
    assert "is not in the order in which they were said" in capsys.readouterr().err


def test_a_parent_that_is_no_message_is_none_that_is_replied_to(write: Write, home: Warehouse) -> None:
    rows = [(f"c{n // 6}", n, PEOPLE[n % 3], f"text {n}", "folder-9") for n in range(12)]
    land(write(table("conversation,id,speaker,text,parentId", *rows)), str(home.root))
    assert home.query("SELECT count(reply_to) FROM utterances") == [(0,)]


def test_a_chat_of_telegram_may_begin_with_a_message(write: Write, home: Warehouse) -> None:
    said = [
        {
            "id": n,
            "type": "message",
            "date": f"2024-05-01T10:00:0{n}",
            "from": PEOPLE[n % 2],
            "text": f"text {n}",
        }
        for n in range(4)
    ]
    said = [{**message, "from_id": f"user{n % 2}"} for n, message in enumerate(said)]
    land(write({"name": "us", "type": "personal_chat", "id": 9, "messages": said}), str(home.root))
    assert home.query("SELECT DISTINCT format FROM corpora") == [("telegram",)]


def test_chains_of_replies_are_conversations(write: Write, home: Warehouse) -> None:
    """In any order of rows; replies to a message that the dump lacks belong together."""
    replies = {"c": "b", "a": "", "d": "b", "b": "a", "f": "gone", "e": "gone", "x": "y", "y": "x", "s": "s"}
    rows = [(id, PEOPLE[at % 3], to, f"text {id}") for at, (id, to) in enumerate(replies.items())]
    fields = {"conversation": "@replies"}
    land(write(table("id,speaker,reply_to,text", *rows)), str(home.root), DumpSettings(map=fields))
    found: dict[str, str] = {}
    for id, _, text in spoken(home):
        found[id] = found.get(id, "") + text[-1]
    assert {id: sorted(texts) for id, texts in found.items()} == {
        "a": [*"abcd"],
        "gone": ["e", "f"],
        "s": ["s"],
        "x": ["x"],
        "y": ["y"],
    }
    assert found["a"].startswith("ab")
    no_list = write(table("id,speaker,reply_to,text", *rows[:4]))
    assert "has no message" in refusal(no_list, home, map={**fields, "text": "text.*"}, name="none")
    assert "no column is known as id or reply_to" in refusal(
        write(table("speaker,text", *((row[1], row[3]) for row in rows))), home, map=fields, name="other"
    )


def test_keys_within_the_json_of_a_cell(write: Write, home: Warehouse) -> None:
    """As a chat history of LangChain is exported."""
    rows = [(f"s{n // 2}", json.dumps({"type": who, "data": {"content": f"text {n}"}})) for n, who in
            enumerate(["human", "ai"] * 3)]  # fmt: skip
    fields = {"conversation": "session_id", "speaker": "message.type", "text": "message.data.content"}
    land(
        write(table("session_id,message", *rows)),
        str(home.root),
        DumpSettings(map=fields, speakers="conversation"),
    )
    assert spoken(home)[:2] == [("s0", "s0/human", "text 0"), ("s0", "s0/ai", "text 1")]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_files_that_hold_a_mapped_key_flat_or_nested(tmp_path: Path, order: tuple[int, int]) -> None:
    nested = [("c", PEOPLE[n % 3], f"text {n}") for n in range(4)]
    flat = [("d", PEOPLE[n % 3], f"text {n}") for n in range(4)]
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
        (tmp_path / suffix).mkdir()
        for at, number in enumerate(order):
            (tmp_path / suffix / f"{at}.{suffix}").write_text(contents[number])
        home = Warehouse.at(tmp_path / f"home-{suffix}")
        pattern = str(tmp_path / suffix / f"*.{suffix}")
        land(pattern, str(home.root), DumpSettings(map={"speaker": "user.name"}, name="both"))
        assert sorted(spoken(home)) == sorted((c, who, text) for c, who, text in (*nested, *flat))


@pytest.mark.parametrize("none", ["NULL", r"\N", "00000000-0000-0000-0000-000000000000"])
def test_any_word_for_no_reply_begins_a_chain(none: str, write: Write, home: Warehouse) -> None:
    rows = [
        (f"{c}{n}", f"u{n % 2}", f"text {n}", f"{c}{n - 1}" if n else none) for c in "abcd" for n in range(4)
    ]
    land(
        write(table("id,user,text,parent_id", *rows)),
        str(home.root),
        DumpSettings(map={"conversation": "@replies"}),
    )
    assert home.query("SELECT count(*), min(messages) FROM conversations") == [(4, 4)]


def test_a_path_names_the_members_of_one_list(write: Write, home: Warehouse) -> None:
    row = {"scenes": [{"id": "c0", "said": [{"by": "Ann", "text": "hi"}, {"by": "Ben", "text": "yo"}]}]}
    fields = {"conversation": "scenes.*.id", "speaker": "scenes.*.said.*.by", "text": "scenes.*.said.*.text"}
    assert "a path has one *" in refusal(write([row] * 3), home, map=fields)


def test_pairs_of_what_two_sides_said_are_not_of_a_speaker_and_a_text(write: Write, home: Warehouse) -> None:
    rows = [
        {"id": n, "dialogue": [[f"Where is {n}?", "There."], [f"And then {n}?", "Left."]]} for n in range(6)
    ]
    dump = write(rows)
    assert "--map text=dialogue.*.0+dialogue.*.1 if" in refusal(dump, home)
    both = {"text": "dialogue.*.0+dialogue.*.1"}
    land(dump, str(home.root), DumpSettings(map=both, speakers="conversation"))
    assert [text for _, _, text in spoken(home)[:3]] == ["Where is 0?", "There.", "And then 0?"]


def test_the_answer_beside_the_messages_is_read(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [{"role": "user", "content": "why"}]
    answers = [{"response": "so"}, {"completion": [{"role": "assistant", "content": "because"}]}, {}]
    rows = [{"id": f"c{n}", "user": f"u{n}", "messages": asked, **own} for n, own in enumerate(answers)]
    land(write(rows), str(home.root))
    assert [text for _, _, text in spoken(home)] == ["why", "so", "why", "because", "why"]
    assert "where messages end with the user, 'response' beside them is the answer" in capsys.readouterr().err


def test_a_role_among_names_is_a_seat(write: Write, home: Warehouse) -> None:
    rows = [(n // 2, ("Customer", PEOPLE[n // 2 % 3])[n % 2], f"text {n}") for n in range(24)]
    said = refusal(write(table("conversation,speaker,text", *rows)), home)
    assert "speaker id 'Customer' speaks in 12 of 12 conversations; it names a seat, not a person" in said


@pytest.mark.parametrize("flag", [True, "true", 1])
def test_what_a_row_flags_as_a_bot_is_no_person(flag: object, write: Write, home: Warehouse) -> None:
    rows = [
        {"conversation": f"c{n // 2}", "speaker": ("bo", "ada")[n % 2], "text": f"text {n}", "isBot": flag}
        for n in range(8)
    ]
    for row in rows[1::2]:
        row["isBot"] = False
    land(write(rows), str(home.root), DumpSettings(name="column"))
    for row in rows:
        row["speaker"] = {"id": row["speaker"], "is_bot": row.pop("isBot")}
    land(write(rows), str(home.root), DumpSettings(name="object", replace=True))
    query = "SELECT DISTINCT corpus, speaker, is_person FROM utterances ORDER BY ALL"
    people = [("ada", True), ("bo", False)]
    assert home.query(query) == [(name, *one) for name in ("column", "object") for one in people]


def test_people_of_one_name_are_told_apart_by_their_addresses(write: Write, home: Warehouse) -> None:
    rows = [
        {"conversation": n // 2, "text": f"text {n}", "sender": {"name": "Ann", "email": f"ann{n % 2}@here"}}
        for n in range(8)
    ]
    land(write(rows), str(home.root), DumpSettings(speakers="person"))
    assert {speaker for _, speaker, _ in spoken(home)} == {"ann0@here", "ann1@here"}


def test_objects_without_a_speaker_are_two_seats_in_turn(write: Write, home: Warehouse) -> None:
    logs = {f"D{n}": {"log": [{"text": f"{n} {k}", "metadata": {}} for k in range(4)]} for n in range(3)}
    land(write(logs), str(home.root), DumpSettings(map={"text": "log.*.text"}, speakers="conversation"))
    assert [speaker for _, speaker, _ in spoken(home)[:3]] == ["D0/A", "D0/B", "D0/A"]


def test_a_path_within_the_messages_is_offered(write: Write, home: Warehouse) -> None:
    said = [{"sender": f"@{who}", "content": {"body": who}} for who in "abab"]
    dump = write({"room_name": "R", "messages": said})
    assert "(did you mean messages.*.content.body?)" in refusal(dump, home, map={"text": "content.body"})


def test_lists_as_python_prints_them_are_read_from_cells(write: Write, home: Warehouse) -> None:
    rows = [(f"c{n}", str([{"by": "a", "said": "it's"}, {"by": "b", "said": f"yo {n}"}])) for n in range(3)]
    fields = {"speaker": "turns.*.by", "text": "turns.*.said"}
    land(
        write(table("conversation_id,turns", *rows)),
        str(home.root),
        DumpSettings(map=fields, speakers="person"),
    )
    assert spoken(home)[:2] == [("c0", "a", "it's"), ("c0", "b", "yo 0")]


def test_a_data_frame_as_pandas_writes_it_is_read(write: Write, home: Warehouse) -> None:
    cells = {"conversation": "aabb", "speaker": "xyxy", "text": ["hi", "yo", "so", "no"]}
    frame = {name: {str(at): value for at, value in enumerate(column)} for name, column in cells.items()}
    land(write(frame), str(home.root), DumpSettings(speakers="person"))
    assert spoken(home) == [("a", "x", "hi"), ("a", "y", "yo"), ("b", "x", "so"), ("b", "y", "no")]


def test_conversations_that_are_there_more_than_once_are_told(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"c{n // 4}", PEOPLE[n % 3], f"text {n}") for n in range(40)]
    people = {"speakers": "person"}
    land(write(table("conversation,speaker,text", *rows)), str(home.root), DumpSettings(name="one", **people))
    assert "conversations have" not in capsys.readouterr().err
    twice = [*rows, *((f"{id}x", who, text) for id, who, text in rows)]
    land(
        write(table("conversation,speaker,text", *twice)),
        str(home.root),
        DumpSettings(name="copied", **people),
    )
    said = capsys.readouterr().err
    assert "10 of 20 conversations have the texts of another one, or their own twice" in said
    assert "10 of 20 conversations have landed in the corpus 'one', too" in said
    land(
        write(table("conversation,speaker,text", *rows, *rows)),
        str(home.root),
        DumpSettings(name="again", **people),
    )
    assert "10 of 10 conversations have the texts of another one" in capsys.readouterr().err


def test_names_that_differ_by_case_and_blanks_are_told(
    write: Write, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("Ann", "ben", "ANN ", "cleo", "dora", "ben")
    rows = [(n // 2, names[n % 6], f"text {n}") for n in range(24)]
    land(write(table("conversation,speaker,text", *rows)), str(home.root))
    assert (
        "'ANN ' and 'Ann' are read as different people, though they differ by case and blanks alone (such names: 1)"
        in capsys.readouterr().err
    )
