"""Switchboard: callers by number, words without the marks of disfluencies; noises left out and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.readers import open_dump
from ssrem.readers.formats.switchboard import cleaned
from support.exports import SWITCHBOARD, SWITCHBOARD_UTT, write_dump
from support.reader_rows import rows_of

TABLE = "sw00utt/sw_0001_4325.utt.csv"


def test_a_folder_of_tables_with_its_callers(tmp_path: Path) -> None:
    reader = open_dump(write_dump(SWITCHBOARD, tmp_path / "swda"))
    first, second, unread = rows_of(reader)
    assert (first["conversation_id"], first["utterance_id"], first["speaker"]) == ("4325", "4325/0", "1632")
    assert (first["text"], first["metadata"]) == ("Uh, hello, I, I call about dogs.", '{"act_tag":"o"}')
    assert (second["speaker"], second["text"]) == ("1519", "Well, we have tw- three.")
    assert (unread["file"], unread["line"], unread["problem"]) == ("sw_0001_4325.utt.csv", 5, "malformed_row")
    assert reader.left_out == {"noises without words": 1}


def test_rows_of_the_metadata_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    metadata = SWITCHBOARD["swda-metadata.csv"] + b"1,2\r3,4\n"
    reader = open_dump(write_dump(SWITCHBOARD | {"swda-metadata.csv": metadata}, tmp_path / "swda"))
    assert rows_of(reader)[0]["speaker"] == "1632"
    assert reader.left_out["unreadable rows of swda-metadata.csv"] == 1


def test_a_table_alone_has_seats(tmp_path: Path) -> None:
    rows = rows_of(open_dump(write_dump({"": SWITCHBOARD[TABLE]}, tmp_path / "sw_0001_4325.utt.csv")))
    assert [row.get("speaker") for row in rows] == ["A", "B", None]


def test_a_transcript_names_its_callers(tmp_path: Path) -> None:
    reader = open_dump(write_dump(SWITCHBOARD_UTT, tmp_path / "sw_0001_4325.utt"))
    first, second, unread = rows_of(reader)
    assert (first["conversation_id"], first["speaker"], first["text"]) == ("4325", "1632", "Hello there.")
    assert (second["line"], second["speaker"]) == (12, "1519")
    assert (second["text"], second["metadata"]) == ("And, you have, uh, dogs, too?", '{"act_tag":"qy^d"}')
    assert (unread["line"], unread["raw"]) == (15, b"not an utterance")
    assert reader.left_out == {"noises without words": 1}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{D So, } [ [ I, + I, ] + we ] went. /", "So, I, I, we went."),
        ("<<very loud>> yes *[[slang]] -- no <laughter>! -/", "yes no!"),
        ("{E I mean, } a t- ten-year-old, #right#? /", "I mean, a t- ten-year-old, right?"),
        ("and/or ((maybe)) @", "and/or maybe"),
        ("<Talking>.  /", ""),
    ],
)
def test_marks_go_and_words_stay(written: str, words: str) -> None:
    assert cleaned(written) == words
