"""Chat logs of roles: contents as text and parts, what is left out, ids, and whose turns they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from support.exports import CHATGPT, write_dump
from support.reader_rows import rows_of

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TALK = {
    "messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "Is it raining?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
        {"role": "assistant", "content": [{"type": "text", "text": "No."}, {"type": "text", "text": "Sun."}]},
        {"role": "user", "content": [IMAGE]},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, IMAGE], "name": "anna"},
        {
            "role": "assistant",
            "refusal": "I cannot.",
            "content": [{"type": "refusal", "refusal": "No idea."}],
        },
    ]
}
SPOKEN = [
    ("user", "Is it raining?"),
    ("assistant", "No.\nSun."),
    ("anna", "And here?"),
    ("assistant", "No idea."),
]

Write = Callable[..., Path]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def array(*rows: Any) -> str:
    return json.dumps(rows, indent=2)


def spoken(rows: list[dict[str, Any]]) -> list[tuple[str | None, str | None]]:
    return [(row.get("speaker"), row.get("text")) for row in rows if row["record"] == "message"]


@pytest.fixture(params=[lines, array])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    def writer(*rows: Any) -> Path:
        path = tmp_path / "chats"
        path.write_text(request.param(*rows), encoding="utf-8")
        return path

    return writer


def test_systems_tools_and_calls_are_left_out_and_counted(write: Write) -> None:
    reader = open_dump(write(TALK))
    assert reader.format == "openai"
    rows = rows_of(reader)
    assert spoken(rows) == SPOKEN
    left_out = {
        "messages of system": 1,
        "messages of tool": 1,
        "calls of tools": 2,
        "parts of type image_url": 2,
    }
    assert reader.left_out == left_out
    assert json.loads(rows[3]["metadata"]) == {"role": "user"}
    assert {row["line"] for row in rows} == {1}


def test_a_conversation_has_the_id_of_its_row_or_its_number(write: Write) -> None:
    hello = [{"role": "user", "content": "Hello"}]
    rows = rows_of(open_dump(write({"messages": hello, "model": "m"}, {"messages": hello})))
    assert [(row["conversation_id"], row["record"]) for row in rows] == [
        ("1", "conversation"), ("1", "message"), ("2", "conversation"), ("2", "message"),
    ]  # fmt: skip
    assert rows[0]["metadata"] == '{"model":"m"}'
    named = {"id": "x", "messages": hello}
    rows = rows_of(open_dump(write(named, {"messages": hello}, named)))
    assert [(row.get("conversation_id"), row.get("problem")) for row in rows] == [
        ("x", None), ("x", None), (None, None), (None, None), ("x", "duplicate_conversation"),
    ]  # fmt: skip


def test_the_turns_of_users_are_those_of_the_owner(write: Write) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path = write({"user_id": 7, "client": "c", "messages": talk}, {"client": "d", "messages": talk})
    rows = rows_of(open_dump(path))
    assert spoken(rows) == [("7", "Hi"), ("1/assistant", "Hello"), ("2/user", "Hi"), ("2/assistant", "Hello")]
    assert json.loads(rows[1]["metadata"]) == {"role": "user"}
    rows = rows_of(open_dump(path, mapping={"speaker": "client"}))
    assert spoken(rows) == [("c", "Hi"), ("1/assistant", "Hello"), ("d", "Hi"), ("2/assistant", "Hello")]
    assert json.loads(rows[0]["metadata"]) == {"user_id": 7}


def test_a_mapping_of_other_fields_or_absent_keys_is_refused(write: Write) -> None:
    path = write(TALK)
    for mapping in ({"time": "content"}, {"conversation": "@file"}):
        with pytest.raises(DumpError, match="openai takes --map conversation=KEY and speaker=KEY alone"):
            open_dump(path, mapping=mapping)
    with pytest.raises(DumpError, match="names the key 'person', which is not there; the keys are messages"):
        open_dump(path, mapping={"speaker": "person"})


def test_ids_and_times_of_messages(write: Write) -> None:
    message = {"role": "user", "content": "Hi", "id": "m1", "create_time": 0, "person": 5}
    (row,) = rows_of(open_dump(write({"messages": [message]})))[1:]
    assert (row["utterance_id"], row["time"].year, row["metadata"]) == ("m1", 1970, '{"person":5}')


def test_malformed_messages_keep_their_conversation(write: Write) -> None:
    bad: list[Any] = ["oops", None, {"role": ["user"], "content": "x"}]
    bad += [{"role": "user", "content": content} for content in (5, [5])]
    rows = rows_of(open_dump(write({"id": "x", "messages": [*TALK["messages"], *bad]})))
    assert spoken(rows)[: -len(bad)] == SPOKEN
    problems = [
        (row["problem"], row["conversation_id"], row["line"], json.loads(row["raw"])) for row in rows[5:]
    ]
    assert problems == [("malformed_row", "x", 1, message) for message in bad]


def test_rows_that_are_no_conversation(write: Write) -> None:
    bad = [{"messages": "x"}, {"messages": None}, {}, {"id": [1], "messages": []}]
    rows = rows_of(open_dump(write({"id": "x", **TALK}, *bad)))
    problems = [(row["line"], row["problem"]) for row in rows if "problem" in row]
    assert problems == [(line, "malformed_row") for line in (2, 3, 4, 5)]


def test_lines_that_are_no_object(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(lines(TALK).encode() + b"[]\n{\n\n\xff\n" + lines(TALK).encode())
    rows = rows_of(open_dump(path))
    problems = [(row["line"], row["problem"], row["raw"]) for row in rows if "problem" in row]
    assert problems == [(2, "broken_json", b"[]"), (3, "broken_json", b"{"), (5, "undecodable", b"\xff")]
    assert rows[-1]["line"] == 6


def test_a_first_row_longer_than_the_head_is_recognised(write: Write) -> None:
    long = {"messages": [{"role": "user", "content": "x" * 100_000}], "user_id": "u"}
    assert spoken(rows_of(open_dump(write(long)))) == [("u", "x" * 100_000)]


def test_sharegpt(write: Write) -> None:
    left_out = [(role, "{}") for role in ("system", "function_call", "observation")]
    talk: list[tuple[str, Any]] = [*left_out, ("human", "Hi"), ("gpt", "Hello"), ("human", ""), ("gpt", 3)]
    turns = [{"from": role, "value": value} for role, value in talk]
    reader = open_dump(write(*({"id": id, "conversations": turns} for id in ("QWJhYvA_0", "b"))))
    rows = rows_of(reader)
    assert reader.format == "sharegpt"
    assert [row["conversation_id"] for row in rows] == ["QWJhYvA_0"] * 5 + ["b"] * 5
    assert spoken(rows[:5]) == [("human", "Hi"), ("gpt", "Hello"), ("human", None), (None, None)]
    assert rows[4]["problem"] == "malformed_row"
    assert reader.left_out == {f"messages of {role}": 2 for role, _ in left_out}


CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def test_rows_of_parquet_are_chats_too(tmp_path: Path) -> None:
    rows = [{"conversation_id": f"c{n}", "model": "m", "conversation": CHAT} for n in range(3)]
    path = tmp_path / "train.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    reader = open_dump(path)
    assert reader.format == "openai"
    messages = rows_of(reader)
    assert [row["conversation_id"] for row in messages] == [f"c{n}" for n in range(3) for _ in range(3)]
    assert spoken(messages) == [("user", "hi"), ("assistant", "hello")] * 3
    assert reader.bytes_read == reader.total_bytes
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DumpError, match="not a whole Parquet file"):
        open_dump(path)


@pytest.mark.parametrize("owner", [{"user_id": "u"}, {"metadata": {"user_id": "u"}}, {"hashed_ip": "u"}])
def test_the_owner_of_a_conversation_says_the_turns_of_users(tmp_path: Path, owner: dict[str, Any]) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text(json.dumps({**owner, "messages": CHAT}) + "\n")
    reader = open_dump(path)
    assert [row["speaker"] for row in rows_of(reader) if row["record"] == "message"] == ["u", "1/assistant"]
    key = next(iter(owner.get("metadata", owner)))
    note = f"the turns of users are those of {key!r} of their conversation; --map speaker=KEY names another"
    assert note in reader.notes
    assert "with --map speaker=KEY" in reader.ways_to_people


def test_an_export_of_chatgpt_is_read_beside_its_other_json(tmp_path: Path) -> None:
    other = b'[{"id": "s1", "title": "shared"}]'
    folder = write_dump(
        {"conversations.json": CHATGPT[""], "shared_conversations.json": other}, tmp_path / "all"
    )
    reader = open_dump(folder)
    assert reader.format == "chatgpt" and rows_of(reader)
    assert "not read, since they are not chatgpt: shared_conversations.json" in reader.notes


def test_of_chatgpt_only_what_the_chat_shows_is_read(tmp_path: Path) -> None:
    def message(role: str, text: Any, kind: str = "text", **more: Any) -> dict[str, Any]:
        content = {"content_type": kind, "parts" if kind != "code" else "text": text}
        return {"author": {"role": role}, "content": content, **more}

    said = [
        message("user", ["about me"], "user_editable_context"),
        message("user", ["hidden"], metadata={"is_visually_hidden_from_conversation": True}),
        message("user", [{"content_type": "audio_transcription", "text": "what is new"}], "multimodal_text"),
        message("assistant", 'search("news")', "code", recipient="web"),
        message("tool", ["found"]),
        message("assistant", None, "thoughts"),
        message("assistant", ["nothing"], recipient="all"),
    ]
    nodes = {str(at): {"message": one, "parent": str(at - 1)} for at, one in enumerate(said)}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": "c", "mapping": nodes, "current_node": str(len(said) - 1)}]))
    reader = open_dump(path)
    assert spoken(rows_of(reader)[1:]) == [("user", "what is new"), ("assistant", "nothing")]
    hidden = [f"hidden messages of type {kind}" for kind in ("user_editable_context", "text", "thoughts")]
    assert reader.left_out == dict.fromkeys([*hidden, "calls of tools", "messages of tool"], 1)
