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


def read(tmp_path: Path, *rows: Any, more: bytes = b"") -> list[dict[str, Any]]:
    """The rows of a dump of these objects, and of these bytes after them."""
    (tmp_path / "weather").write_bytes(content(*rows) + more)
    reader = open_dump(tmp_path / "weather")
    assert reader.format == "reddit"
    return rows_of(reader)


def test_submissions_open_the_conversation_of_their_comments(tmp_path: Path) -> None:
    rows = read(tmp_path, SUBMISSION, COMMENT, ANSWER)
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


def test_a_submission_without_a_text_is_its_title(tmp_path: Path) -> None:
    rows = [{**SUBMISSION, "selftext": selftext} for selftext in ("", "[deleted]", "[removed]", None)]
    assert [row["text"] for row in read(tmp_path, *rows)] == ["Rain?"] * 4


def test_parents_that_are_numbers(tmp_path: Path) -> None:
    parents = (int("d4ufgzj", 36), None)
    first, second = read(tmp_path, *({**COMMENT, "parent_id": parent} for parent in parents))
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
        *(COMMENT | wrong for wrong in ({"id": None}, {"body": ["x"]}, {"parent_id": [1]})),
    ]
    rows = read(tmp_path, COMMENT, *broken, more=b"{\n")
    assert [(row["line"], row.get("problem")) for row in rows] == [
        (1, None), *((line, "malformed_row") for line in range(2, 6)), (6, "broken_json"),
    ]  # fmt: skip


def test_the_signs_that_reddit_escapes_are_read_as_such(tmp_path: Path) -> None:
    rows = {**SUBMISSION, "title": "Q&amp;A"}, {**COMMENT, "body": "&gt; a &copy b &amp;lt;"}
    assert [row["text"] for row in read(tmp_path, *rows)] == ["Q&A\n\nIt rains.", "> a &copy b &lt;"]


def test_submissions_precede_comments_whatever_the_names_of_files(tmp_path: Path) -> None:
    orphan = {**ANSWER, "author": "cy", "parent_id": "t1_gone"}
    (tmp_path / "weather_comments").write_bytes(content(orphan, COMMENT))
    (tmp_path / "weather_submissions").write_bytes(content(SUBMISSION))
    (tmp_path / "all").write_bytes(content(ANSWER, SUBMISSION))
    rows = rows_of(open_dump(tmp_path))
    assert [(row["file"], row["speaker"]) for row in rows] == [
        ("weather_submissions", "ann"),
        ("all", "[deleted]"), ("all", "ann"),
        ("weather_comments", "cy"), ("weather_comments", "bob"),
    ]  # fmt: skip
