"""ConvoKit folders: the written layout by hand, and folders that convokit itself dumped."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.formats.jsonl import ConvokitReader
from support.reader_rows import reader_of, rows_of


def _utterance(id: str, speaker: str, text: str, **more: Any) -> dict[str, Any]:
    base = {"id": id, "conversation_id": "u1", "text": text, "speaker": speaker, "meta": {}}
    return {**base, "reply-to": None, "timestamp": None, "vectors": [], **more}


UTTERANCES = [
    _utterance("u1", "ann", "Hello", timestamp=1525289895),
    _utterance("u2", "bob", "hi", meta={"score": 3, "gilded": None, "top": True}, **{"reply-to": "u1"}),
    _utterance("u3", "ann", "bye", timestamp="1525289897.5", vectors=["bert"], meta={"parsed": [{"rt": 0}]}),
]
TIME = datetime(2018, 5, 2, 19, 38, 15)
LATER: dict[str, Any] = {"time": TIME + timedelta(seconds=2.5), "metadata": '{"parsed":[{"rt":0}]}'}
ROWS: list[dict[str, Any]] = [
    {"utterance_id": "u1", "speaker": "ann", "text": "Hello", "time": TIME},
    {
        "utterance_id": "u2",
        "speaker": "bob",
        "text": "hi",
        "reply_to": "u1",
        "metadata": '{"score":3,"top":true}',
    },
    {"utterance_id": "u3", "speaker": "ann", "text": "bye", **LATER},
]


def _folder(tmp_path: Path, utterances: list[dict[str, Any]], conversations: Any) -> Path:
    (tmp_path / "utterances.jsonl").write_text("".join(json.dumps(u) + "\n" for u in utterances))
    (tmp_path / "conversations.json").write_text(json.dumps(conversations))
    (tmp_path / "speakers.json").write_text(json.dumps({"ann": {"meta": {}, "vectors": []}}))
    (tmp_path / "index.json").write_text("{}")
    return tmp_path


def test_the_written_layout(tmp_path: Path) -> None:
    folder = _folder(tmp_path, UTTERANCES, {"u1": {"meta": {"topic": "tea", "none": None}, "vectors": []}})
    reader = open_dump(folder)
    assert reader.format == "convokit"
    rows = rows_of(reader)
    place: dict[str, Any] = {"record": "conversation", "file": "conversations.json", "conversation_id": "u1"}
    assert rows[0] == {**place, "line": 1, "metadata": '{"topic":"tea"}'}
    place |= {"record": "message", "file": "utterances.jsonl"}
    assert rows[1:] == [{**place, "line": line, **row} for line, row in enumerate(ROWS, 1)]
    files = ["conversations.json", "index.json", "speakers.json", "utterances.jsonl"]
    assert [file.name for file in reader.files()] == files
    assert reader.bytes_read == reader.total_bytes


def test_plain_utterances_take_the_fast_path(tmp_path: Path) -> None:
    utterances = [
        _utterance(f"u{i}", "ann", "x", meta={"score": i} if i % 3 else {}, timestamp=i + 0.5 if i % 2 else i)
        for i in range(50)
    ]
    reader = reader_of(ConvokitReader, _folder(tmp_path, utterances, {}))
    expected = rows_of(reader)
    reader._row_by_row = None  # type: ignore[method-assign, assignment]
    assert rows_of(reader) == expected
    assert [row.get("metadata") for row in expected[:3]] == [None, '{"score":1}', '{"score":2}']


def test_older_layouts(tmp_path: Path) -> None:
    old = {"id": "u1", "root": "c", "user": "ann", "text": "x", "reply_to": None, "timestamp": 0}
    conversation, message = rows_of(open_dump(_folder(tmp_path, [old], {"c": {"topic": "tea"}})))
    assert conversation["metadata"] == '{"topic":"tea"}'
    assert (message["conversation_id"], message["speaker"]) == ("c", "ann")
    assert message["time"] == datetime(1970, 1, 1)


def test_folders_that_will_not_do(tmp_path: Path) -> None:
    folder = _folder(tmp_path, UTTERANCES, {})
    (folder / "conversations.json").write_text('{"u1": {"meta"')
    with pytest.raises(DumpError, match=r"conversations\.json: broken JSON in line 1, column 15"):
        rows_of(open_dump(folder))
    (folder / "utterances.jsonl").write_text("")
    with pytest.raises(DumpError, match=r"utterances\.jsonl: the file is empty"):
        open_dump(folder)


def test_a_folder_that_convokit_dumped(tmp_path: Path) -> None:
    convokit = pytest.importorskip("convokit")
    people = {name: convokit.Speaker(id=name, meta={"age": 9}) for name in ("ann", "bob")}
    corpus = convokit.Corpus(
        utterances=[
            convokit.Utterance(
                id=f"u{i}",
                speaker=people["ann" if i % 2 else "bob"],
                conversation_id="u0" if i < 3 else "u3",
                reply_to=None if i in (0, 3) else f"u{i - 1}",
                timestamp=1525289895 + i if i else None,
                text=f"line {i} – é\n",
                meta={"n": i} if i else {},
            )
            for i in range(5)
        ]
    )
    corpus.get_conversation("u0").add_meta("topic", "tea")
    corpus.dump("made", base_path=str(tmp_path))
    reader = open_dump(tmp_path / "made")
    assert reader.format == "convokit"
    rows = rows_of(reader)
    place = {"record": "conversation", "file": "conversations.json"}
    assert rows[:2] == [
        {**place, "line": 1, "conversation_id": "u0", "metadata": '{"topic":"tea"}'},
        {**place, "line": 2, "conversation_id": "u3"},
    ]
    assert [row["utterance_id"] for row in rows[2:]] == [u.id for u in corpus.iter_utterances()]
    for row, utterance in zip(rows[2:], corpus.iter_utterances(), strict=True):
        said = (utterance.conversation_id, utterance.speaker.id, utterance.text, utterance.reply_to)
        assert (row["conversation_id"], row["speaker"], row["text"], row.get("reply_to")) == said
        assert json.loads(row.get("metadata", "{}")) == dict(utterance.meta)
        seconds = (row["time"] - datetime(1970, 1, 1)).total_seconds() if "time" in row else None
        assert seconds == utterance.timestamp
