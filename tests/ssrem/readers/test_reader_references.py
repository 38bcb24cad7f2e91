"""References that are written otherwise than the ids that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.readers import open_dump
from support.reader_rows import rows_of

HEAD = "conversation,id,speaker,addressee,reply_to,text\n"


def _written(folder: Path, *rows: str, name: str = "dump.csv") -> Path:
    path = folder / name
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("id", "reply_to", "resolved"),
    [
        ("1", "1.0", "1"), ("1234567890123456", "1234567890123456.0", "1234567890123456"),
        ("9007199254740994", "9007199254740994.0", "9007199254740994.0"),
        ("12345678901234567", "12345678901234567.0", "12345678901234567.0"),
        ("1.0", "1.0", "1.0"), ("1.0", "7.0", "7.0"), ("v1.0", "1.0", "1"), ("1", "1.5", "1.5"), ("1", "v1.0", "v1.0"),
        ("abc", "t1_abc", "abc"), ("abc", "t3_xyz", "xyz"), ("t1_abc", "t1_abc", "t1_abc"),
        ("t3_abc", "t1_abc", "t1_abc"), ("abc", "t2_abc", "t2_abc"),
    ],
)  # fmt: skip
def test_a_reply_names_an_id_as_ids_are_written(
    tmp_path: Path, id: str, reply_to: str, resolved: str
) -> None:
    rows = rows_of(open_dump(_written(tmp_path, f"c,{id},ann,,,1.0", f"c,x,bob,,{reply_to},t1_a")))
    assert [row.get("reply_to") for row in rows] == [None, resolved]
    assert [(row["utterance_id"], row["text"]) for row in rows] == [(id, "1.0"), ("x", "t1_a")]


@pytest.mark.parametrize("speaker", ["7", "7.0"])
def test_an_addressee_is_a_person_as_speakers_are_written(tmp_path: Path, speaker: str) -> None:
    rows = rows_of(open_dump(_written(tmp_path, f"c,a,{speaker},,,hi", "c,b,8,7.0,,ho")))
    assert rows[1]["addressee"] == speaker


def test_the_ids_of_all_files_decide(tmp_path: Path) -> None:
    first = _written(tmp_path, "c,1,ann,,,hi", "c,2,bob,,1.0,ho")
    other = _written(tmp_path, "d,3.0,ann,,,hi", "d,4.0,bob,,3.0,ho", name="other.csv")
    rows = rows_of(open_dump([first, other]))
    assert [row.get("reply_to") for row in rows] == [None, "1.0", None, "3.0"]
