"""Speakers that are no people, by name and by what the reader knows, and texts that stand for a removed one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from ssrem.readers import open_dump
from ssrem.readers.people import is_placeholder
from support.reader_rows import rows_of


@pytest.mark.parametrize("name", ["dump.csv", "dump.jsonl"])
def test_names_in_any_case_mark_their_messages(tmp_path: Path, name: str) -> None:
    speakers = ["ann", "bot", "System", "UNKNOWN", "systems"]
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_text("conversation,speaker,text\n" + "".join(f"c,{who},hi\n" for who in speakers))
    else:
        rows = ({"conversation": "c", "speaker": who, "text": "hi"} for who in speakers)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = open_dump(path)
    for named, nobodies in (
        ((), ["System", "UNKNOWN"]),
        (("Bot",), ["bot", "System", "UNKNOWN"]),
        (("none",), []),
        (("none", "bot"), ["bot"]),
    ):
        reader.named_not_people = named
        people = dict.fromkeys(speakers) | dict.fromkeys(nobodies, False)
        assert {row["speaker"]: row.get("is_person") for row in rows_of(reader)} == people


def test_texts_that_say_only_that_one_was_removed() -> None:
    removed = ["[deleted]", " [Removed]\n", "[ Removed by Reddit ]", "This message was deleted."]
    removed += ["DIESE NACHRICHT WURDE GELÖSCHT", "<Media omitted>", "image omitted"]
    said = ["", "deleted", "[deleted] my post", "This message was deleted by ann", "omitted", "…" * 400, None]
    texts = pa.array([*removed, *said], pa.string())
    assert is_placeholder(texts).to_pylist() == [True] * len(removed) + [False] * len(said)
    assert is_placeholder(texts.slice(len(texts) - 2)).to_pylist() == [False, False]
    assert is_placeholder(texts.slice(0, 0)).to_pylist() == []
