"""Sound dumps of every format without an export of its own, and what they are mutated with."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet

_SAID = {"speaker": "añn", "text": 'x, "y"\n😀', "time": 5, "m": {"a": [1]}}
UTTERANCES = [{"conversation_id": "c", "id": f"u{i}", **_SAID} for i in range(3)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in UTTERANCES)
TALK = json.dumps({"id": "d", "topic": "t", "utterances": UTTERANCES}).encode() + b"\n"
CHITCHAT = json.dumps(
    {k: {"start": "", "messages": [[{"sender": "a", "text": "é", "timestamp": 1}] * 2, []]} for k in "cd"}
).encode()
CELLS = b'conversation_id,speaker,text,time\nc,ann,"x\n""y"",",5\r\nc,bob,\xc3\xa9,soon\n\nc,,z,\n'
CORNELL = {
    "movie_lines.txt": b"L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ Hi \xe9\n"
    b"L2 +++$+++ u1 +++$+++ m0 +++$+++ B +++$+++\n",
    "movie_conversations.txt": b"u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1', 'L2']\n"
    b"u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L2']\n",
}


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    rows = [{**row, "blob": b"\xff", "tags": ["a"], "d": None} for row in UTTERANCES]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_ROLES = [
    {"role": "user", "content": "é\ud800"},
    {"role": "tool"},
    {"role": "assistant", "content": [{"type": "text"}]},
]
CHATS = [
    {"id": "a", "user": 1, "messages": _ROLES},
    {"messages": [*_ROLES, 5, {"tool_calls": [1]}], "x": [0.5]},
]
SHARED = [
    {"conversations": [{"from": "human", "value": "é"}, {"from": "gpt", "value": None}, {"from": "system"}]}
] * 2


COMMENT = {"id": "b", "link_id": "t3_a", "parent_id": "t3_a", "author": "x"}
COMMENT |= {"body": "é\ud800", "created_utc": "5"}
REDDIT = [
    {"id": "a", "title": "t", "selftext": "", "author": "x", "over_18": False},
    COMMENT,
    {**COMMENT, "parent_id": 9},
]
IRC = "--- Log opened Mon Jul 14 00:00:01 2008\n12:00 <@ann> bob: é\n12:01 * bob waves\n=== bob is now known as b\n"
TABBED = "2008-07-14 12:00:00\tann\tHi\n2008-07-15 12:00:00\t-->\tbob (b@c) has joined #x\n"


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


TURN = {"message_id": "m", "user_id": "u", "text": "é"}
TREE = _lines([{"message_tree_id": 1, "prompt": {**TURN, "replies": [{**TURN, "replies": ["x", {**TURN}]}]}}])
TREE += _lines([{"id": "d", "dialog": ["x", "é", "\ud800"], "act": [1]}, {"id": "e", "turns": [TURN, 7]}])

DUMPS: dict[str, list[dict[str, bytes]]] = {
    "openai": [{"": _lines(CHATS)}, {"": json.dumps(CHATS).encode()}],
    "reddit": [{"": _lines(REDDIT)}, {"RC": _lines(REDDIT[1:]), "RS": _lines(REDDIT[:1])}],
    "irc": [{"": IRC.encode()}, {"2008-07-14.log": IRC.encode(), "b": TABBED.encode()}],
    "sharegpt": [{"": _lines(SHARED)}, {"": json.dumps(SHARED, indent=1).encode()}],
    "convokit": [{"utterances.jsonl": LINES, "conversations.json": b'{"c": {"meta": {"a": 1}}, "d": {}}'}],
    "cornell": [CORNELL],
    "parquet": [{"": _parquet()}],
    "chitchat": [{"": CHITCHAT}],
    "jsonl": [{"": LINES}, {"": TALK + LINES}, {"": TREE}, {"": b"[%s]" % TREE.strip().replace(b"\n", b",")}],
    "dailydialog": [{"": "Hi Ann . __eou__ é __eou__\n\nBye __eou__\n".encode()}],
    "csv": [{"": CELLS}],
    "tsv": [{"": CELLS.replace(b",", b"\t")}],
}
"""Format to the files of sound dumps; a dump that is one file has it under "". Exports of chats: tests/support."""

NASTY = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n", b'"',
    b"\\ud800", b"\\u0000", b"[" * 200, b'{"a":' * 200, b"9" * 400, b"1e999", b"-", b"NaN", b"{}", b"[]", b"null",
    b"'", b",", b"\t", b" +++$+++ ", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1b[31m", b"}", b"]", b"1e308",
    b"-0", b"true", b'""', b"\xe2\x80\xa8", b"\xc2\x85", b";", b"1" * 30, b"Infinity", b"0x10", b"../", b"%s", b"{0}",
]  # fmt: skip
