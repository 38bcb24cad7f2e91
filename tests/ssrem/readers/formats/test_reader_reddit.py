"""Comments and submissions of Reddit in the layout of Pushshift's files."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from support.reader_rows import rows_of

SUBMISSION = {
    "author": "ann", "created_utc": 1467331200, "id": "4qnqxa", "is_self": True, "num_comments": 2, "score": 5,
    "selftext": "It rains.", "subreddit": "weather", "title": "Rain?", "url": "https://www.reddit.com/r/weather/",
}  # fmt: skip
COMMENT = {
    "author": "bob", "body": "Yes.", "controversiality": 0, "created_utc": "1467331260", "gilded": 0, "id": "d4ufgzj",
    "link_id": "t3_4qnqxa", "parent_id": "t3_4qnqxa", "score": 2, "subreddit": "weather", "subreddit_id": "t5_2qh0y",
}  # fmt: skip
ANSWER = {**COMMENT, "author": "[deleted]", "body": "No.", "id": "d4ufgzk", "parent_id": "t1_d4ufgzj"}


def content(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_submissions_open_the_conversation_of_their_comments(tmp_path: Path) -> None:
    path = tmp_path / "weather"
    path.write_bytes(content(SUBMISSION, COMMENT, ANSWER))
    reader = open_dump(path)
    rows = rows_of(reader)
    assert reader.format == "reddit"
    assert [(row["utterance_id"], row.get("reply_to"), row["speaker"], row["text"]) for row in rows] == [
        ("t3_4qnqxa", None, "ann", "Rain?\n\nIt rains."),
        ("t1_d4ufgzj", "t3_4qnqxa", "bob", "Yes."),
        ("t1_d4ufgzk", "t1_d4ufgzj", "[deleted]", "No."),
    ]
    assert {row["conversation_id"] for row in rows} == {"t3_4qnqxa"}
    assert rows[1]["time"] == datetime(2016, 7, 1, 0, 1)
    assert json.loads(rows[1]["metadata"]) == {
        "controversiality": 0, "gilded": 0, "score": 2, "subreddit": "weather", "subreddit_id": "t5_2qh0y",
    }  # fmt: skip


@pytest.mark.parametrize("selftext", ["", "[deleted]", "[removed]", None])
def test_a_submission_without_a_text_is_its_title(tmp_path: Path, selftext: str | None) -> None:
    path = tmp_path / "weather"
    path.write_bytes(content({**SUBMISSION, "selftext": selftext}))
    (row,) = rows_of(open_dump(path))
    assert row["text"] == "Rain?"


def test_parents_that_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "weather"
    path.write_bytes(content({**COMMENT, "parent_id": int("d4ufgzj", 36)}, {**COMMENT, "parent_id": None}))
    first, second = rows_of(open_dump(path))
    assert (first["reply_to"], "reply_to" in second) == ("t1_d4ufgzj", False)


def test_a_folder_of_packed_files_with_windows_of_two_gigabytes(tmp_path: Path) -> None:
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=31, enable_ldm=True)
    for name, row in (("RC_2016-07.zst", COMMENT), ("RS_2016-07.zst", SUBMISSION)):
        packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
        packed = packer.compress(content(row)) + packer.flush()
        (tmp_path / name).write_bytes(packed * 2)  # two frames
    reader = open_dump(tmp_path)
    assert [(row["file"], row["speaker"]) for row in rows_of(reader)] == [
        ("RS_2016-07.zst", "ann"), ("RS_2016-07.zst", "ann"), ("RC_2016-07.zst", "bob"), ("RC_2016-07.zst", "bob"),
    ]  # fmt: skip
    assert reader.bytes_read == reader.total_bytes
    (tmp_path / "RS_2016-07.zst").write_bytes(packed + packed[:-3])
    with pytest.raises(DumpError, match="the zstd data is damaged or cut off"):
        rows_of(open_dump(tmp_path))


def test_rows_of_another_form_are_rows_with_a_problem(tmp_path: Path) -> None:
    broken = [
        {"body": "x"},
        {**COMMENT, "id": None},
        {**COMMENT, "body": ["x"]},
        {**COMMENT, "parent_id": [1]},
    ]
    path = tmp_path / "weather"
    path.write_bytes(content(COMMENT, *broken) + b"{\n")
    rows = rows_of(open_dump(path))
    assert [(row["line"], row.get("problem")) for row in rows] == [
        (1, None), *((line, "malformed_row") for line in range(2, 6)), (6, "broken_json"),
    ]  # fmt: skip


def test_the_signs_that_reddit_escapes_are_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "weather"
    path.write_bytes(
        content({**SUBMISSION, "title": "Q&amp;A"}, {**COMMENT, "body": "&gt; a &copy b &amp;lt;"})
    )
    assert [row["text"] for row in rows_of(open_dump(path))] == ["Q&A\n\nIt rains.", "> a &copy b &lt;"]


def test_submissions_precede_comments_whatever_the_names_of_files(tmp_path: Path) -> None:
    orphan = {**ANSWER, "author": "cy", "parent_id": "t1_gone"}
    files = {
        "weather_comments": [orphan, COMMENT],
        "weather_submissions": [SUBMISSION],
        "all": [ANSWER, SUBMISSION],
    }
    for name, rows in files.items():
        (tmp_path / name).write_bytes(content(*rows))
    rows = rows_of(open_dump(tmp_path))
    assert [(row["file"], row["speaker"]) for row in rows] == [
        ("weather_submissions", "ann"),
        ("all", "[deleted]"), ("all", "ann"),
        ("weather_comments", "cy"), ("weather_comments", "bob"),
    ]  # fmt: skip
