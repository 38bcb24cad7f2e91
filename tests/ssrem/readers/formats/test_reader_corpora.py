"""Corpora of research in the layouts of their publishers; of ChitChat the packaged corpus to the message."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ssrem.readers import open_dump
from ssrem.readers.base import Reader
from support.exports import EMPATHETIC_DIALOGUES, PERSONACHAT, TOPICAL_CHAT, write_dump
from support.reader_rows import rows_of


def _json(tmp_path: Path, value: Any) -> Reader:
    return open_dump(write_dump({"": json.dumps(value).encode()}, tmp_path / "any.json"))


def _message(sender: Any, text: Any, second: int) -> dict[str, Any]:
    return {"text": text, "timestamp": f"2018-05-02T19:38:{second:02}Z", "sender": sender}


DUMP = {
    "c1": {
        "messages": [[_message("ann", "Hello", 1), _message("ann", "you", 2)], [_message("bob", "hi", 3)]],
        "prompt": "tea?",
        "ratings": {"witty": 5, "upbeat": 7.5},
        "start": "2018-05-02T19:38:00Z",
    },
    "c2": {"messages": [["oops", _message(["ann"], "x", 4)]], "start": "s"},
    "c3": 7,
    "c4": {"messages": []},
}


def test_conversations_with_their_ratings_and_then_their_messages(tmp_path: Path) -> None:
    rows = rows_of(_json(tmp_path, DUMP))
    place = {"file": "any.json", "conversation_id": "c1"}
    metadata = '{"prompt":"tea?","ratings":{"upbeat":7.5,"witty":5},"start":"2018-05-02T19:38:00Z"}'
    assert rows[0] == {**place, "record": "conversation", "line": 1, "metadata": metadata}
    assert rows[1:4] == [
        {
            **place,
            "record": "message",
            "line": n,
            "speaker": who,
            "text": text,
            "time": datetime(2018, 5, 2, 19, 38, n),
        }
        for n, (who, text) in enumerate((("ann", "Hello"), ("ann", "you"), ("bob", "hi")), 1)
    ]
    assert [(r["conversation_id"], r["record"], r.get("problem"), r["line"]) for r in rows[4:]] == [
        ("c2", "conversation", None, 2),
        ("c2", "message", "malformed_row", 4),
        ("c2", "message", "malformed_row", 5),
        ("c3", "message", "malformed_row", 3),
        ("c4", "conversation", None, 4),
    ]
    assert rows[5]["raw"] == b'"oops"'
    assert rows[7]["raw"] == b'{"c3":7}'


@pytest.mark.parametrize("half", ["\ud800", "\udc00", "\ud83dA", "\ud800\ud800"])
def test_half_a_surrogate_pair_costs_the_message_or_the_conversation_that_holds_it(
    tmp_path: Path, half: str
) -> None:
    good = _message("ann", "\U0001f600", 1)
    talks = {
        f"{half}": {"messages": [[good]]},
        "prompt": {"messages": [[good]], "prompt": half},
        "text": {"messages": [[_message("ann", half, 1), good, {"sender": "ann", "text": "x", half: 1}]]},
        "shape": half,
    }
    rows = rows_of(_json(tmp_path, talks))
    records = [(r.get("conversation_id"), r["record"], r.get("problem"), r["line"]) for r in rows]
    assert records == [
        (None, "message", "undecodable", 1),
        (None, "message", "undecodable", 2),
        ("text", "conversation", None, 3),
        ("text", "message", "undecodable", 1),
        ("text", "message", None, 2),
        ("text", "message", "undecodable", 3),
        ("shape", "message", "malformed_row", 4),
    ]
    assert rows[4]["text"] == "\U0001f600"
    assert json.loads(rows[1]["raw"]) == {"prompt": talks["prompt"]}


@pytest.mark.slow
def test_the_packaged_corpus_to_the_message() -> None:
    pytest.importorskip("chitchat_dataset")
    counts: Counter[tuple[str, bool]] = Counter()
    rated = 0
    for row in rows_of(open_dump("chitchat")):
        assert "problem" not in row
        counts[row["record"], "time" in row] += 1
        rated += row["record"] == "conversation" and '"ratings":' in row["metadata"]
    assert counts == {("conversation", False): 7_168, ("message", True): 258_145}
    assert rated == 5_988


LINES = [
    b"L4 +++$+++ u2 +++$+++ m0 +++$+++ CAMERON +++$+++ Caf\xe9?",
    b"L3 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ They do not! +++$+++ Really",
    b"L2 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ ",
    b"L1 +++$+++ u2 +++$+++ m0 +++$+++ CAMERON",
    b"L9 +++$+++ u9 +++$+++ m1 +++$+++ NOBODY +++$+++ alone",
    b"no fields at all",
    b"L3 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ twice",
]
CONVERSATIONS = [
    b"u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L3', 'L4', 'L404']",
    b"u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L1', 'L2']",
    b"u0 +++$+++ u2 +++$+++ m0 +++$+++ L1, L2",
]


def _folder(tmp_path: Path, lines: list[bytes], conversations: list[bytes], end: bytes = b"\n") -> Path:
    (tmp_path / "movie_lines.txt").write_bytes(end.join([*lines, b""]))
    (tmp_path / "movie_conversations.txt").write_bytes(end.join([*conversations, b""]))
    return tmp_path


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("batch_rows", [2, 65_536])
def test_rows_of_both_files(tmp_path: Path, end: bytes, batch_rows: int) -> None:
    reader = open_dump(_folder(tmp_path, LINES, CONVERSATIONS, end), batch_rows=batch_rows)
    assert reader.format == "cornell"
    rows = rows_of(reader)
    conversation = {"record": "conversation", "file": "movie_conversations.txt"}
    conversation["metadata"] = '{"characters":["u0","u2"],"movie":"m0"}'
    message = {"record": "message", "file": "movie_lines.txt"}
    bad = {"record": "message", "problem": "malformed_row"}
    bianca = {"speaker": "u0", "addressee": "u2", "metadata": '{"character":"BIANCA","movie":"m0"}'}
    cameron = {"speaker": "u2", "addressee": "u0", "metadata": '{"character":"CAMERON","movie":"m0"}'}
    of_3, of_1 = {"conversation_id": "L3"}, {"conversation_id": "L1"}
    said = {"utterance_id": "L3", "text": "They do not! +++$+++ Really"}
    unknown = {**of_3, "utterance_id": "L404", "raw": CONVERSATIONS[0]}
    alone = {"utterance_id": "L9", "speaker": "u9", "text": "alone"}
    twice = {"utterance_id": "L3", "speaker": "u0", "text": "twice", "metadata": bianca["metadata"]}
    assert rows == [
        {**conversation, "line": 1, **of_3},
        {**message, **bianca, "line": 2, **of_3, **said},
        {**message, **cameron, "line": 1, **of_3, "utterance_id": "L4", "text": "Café?"},
        {**bad, "file": "movie_conversations.txt", "line": 1, **unknown},
        {**conversation, "line": 2, **of_1},
        {**message, **cameron, "line": 4, **of_1, "utterance_id": "L1"},
        {**message, **bianca, "line": 3, **of_1, "utterance_id": "L2", "text": ""},
        {**bad, "file": "movie_conversations.txt", "line": 3, "raw": CONVERSATIONS[2]},
        {**message, "line": 5, **alone, "metadata": '{"character":"NOBODY","movie":"m1"}'},
        {**bad, "file": "movie_lines.txt", "line": 6, "raw": LINES[5]},
        {**message, "line": 7, **twice},
    ]
    assert reader.bytes_read == reader.total_bytes


def test_lines_become_conversations_of_two_seats(tmp_path: Path) -> None:
    path = tmp_path / "dialogues_text.txt"
    path.write_bytes(
        "Hi , Ann . __eou__ Hello ’ all . __eou__ Bye . __eou__\n\nno end\n".encode() + b"\xff __eou__\n"
    )
    (tmp_path / "dialogues_act.txt").write_text("3 4 1\n")
    for source, format in ((tmp_path, None), (path, "dailydialog")):
        *said, unread, damaged = rows_of(open_dump(source, format=format))
        assert [(row["conversation_id"], row["speaker"], row["text"]) for row in said] == [
            ("1", "A", "Hi , Ann ."),
            ("1", "B", "Hello ’ all ."),
            ("1", "A", "Bye ."),
        ]
        assert (unread["line"], unread["problem"]) == (3, "malformed_row")
        assert (damaged["line"], damaged["problem"], damaged["raw"]) == (4, "undecodable", b"\xff __eou__")


def test_rows_of_eight_or_nine_cells(tmp_path: Path) -> None:
    *said, unread = rows_of(open_dump(write_dump(EMPATHETIC_DIALOGUES, tmp_path / "train.csv")))
    assert [(row["utterance_id"], row["speaker"], row["text"]) for row in said] == [
        ("hit:7_conv:14/1", "12", 'He swam, at last. "Hurrah"'),
        ("hit:7_conv:14/2", "31", "How far?"),
        ("hit:7_conv:14/3", "12", "A mile"),
    ]
    assert {row["conversation_id"] for row in said} == {"hit:7_conv:14"}
    about = '{"context":"proud","prompt":"My son said , well done.","selfeval":"5|5|5_2|2|5"}'
    assert said[0]["metadata"] == about
    assert "Yes" not in said[2]["metadata"]
    problem = (unread["line"], unread["problem"], unread["raw"])
    assert problem == (5, "malformed_row", b"hit:7_conv:14,4,proud")


def test_conversations_begin_where_the_numbers_do(tmp_path: Path) -> None:
    reader = open_dump(write_dump(PERSONACHAT, tmp_path / "train_self_original.txt"))
    *said, unread = rows_of(reader)
    assert [(row["line"], row["conversation_id"], row["speaker"], row["text"]) for row in said] == [
        (3, "train_self_original:1", "partner", "hello , what do you do ?"),
        (3, "train_self_original:1", "self", "i row . and you ?"),
        (4, "train_self_original:1", "partner", "i bake ."),
        (4, "train_self_original:1", "self", "bread ?"),
        (6, "train_self_original:2", "self", "good evening"),
    ]
    assert (unread["line"], unread["problem"], unread["raw"]) == (7, "malformed_row", b"no number")
    assert reader.left_out == {"lines of personas": 3, "silences": 1}


def test_a_file_without_personas_is_recognised(tmp_path: Path) -> None:
    content = b"1 hi\thello\t\thello|bye\n2 how are you ?\tfine\t\tfine|bye\n"
    assert len(rows_of(open_dump(write_dump({"": content}, tmp_path / "train_none.txt")))) == 4


def test_conversations_and_messages(tmp_path: Path) -> None:
    rows = rows_of(open_dump(write_dump(TOPICAL_CHAT, tmp_path / "train.json")))
    assert [row["record"] for row in rows] == ["conversation", "message", "message"] * 2
    assert '"conversation_rating":{"agent_1":"Good","agent_2":"Excellent"}' in rows[0]["metadata"]
    said = [rows[1][field] for field in ("conversation_id", "speaker", "text")]
    assert said == ["t_1", "agent_1", "Do you like boats?"]
    assert '"knowledge_source":["FS1"]' in rows[1]["metadata"]
    assert [row["line"] for row in rows] == [1, 1, 2, 2, 3, 4]


def test_a_conversation_without_messages_is_a_problem(tmp_path: Path) -> None:
    content = b'{"t": {"content": [{"agent": "agent_1", "message": "x"}, 5]}, "u": {"content": null}, "v": 7}'
    rows = rows_of(open_dump(write_dump({"": content}, tmp_path / "train.json")))
    problems = [(row["line"], row["raw"]) for row in rows if "problem" in row]
    assert problems == [(2, b"5"), (2, b'{"u":{}}'), (3, b'{"v":7}')]


@pytest.mark.parametrize(
    "dump",
    [
        {"c1": {"messages": [{"speaker": "A", "text": "x"}, {"speaker": "B", "text": "y"}]}},
        {"chats": [{"conversation_id": "c1", "speaker": name, "text": name} for name in "AB"]},
    ],
)
def test_other_dumps_with_the_same_keys_are_read_as_rows(tmp_path: Path, dump: Any) -> None:
    reader = _json(tmp_path, dump)
    assert reader.format == "jsonl"
    assert sum("text" in row for row in rows_of(reader)) == 2
