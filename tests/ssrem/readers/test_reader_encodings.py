"""Text that is not UTF-8: cp1252 guessed line by line, and other encodings by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from support.reader_rows import rows_of

HEADER = "conversation;speaker;text\n"


def _texts(path: Path, encoding: str | None = None) -> list[str]:
    return [row.get("text", row.get("problem")) for row in rows_of(open_dump(path, encoding=encoding))]


def test_a_damaged_line_far_down_in_json_is_quarantined(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    line = json.dumps({"conversation": "c", "speaker": "a", "text": "x" * 500_000}).encode() + b"\n"
    path.write_bytes(line * 18 + line.replace(b"xx", b"\xe9x"))
    assert _texts(path)[-2:] == ["x" * 500_000, "undecodable"]


@pytest.mark.parametrize(
    "content",
    [
        (HEADER + "c;a;é\nc;a;ü\nc;a;ö\n").encode() + b"c;a;caf\xe9\n",  # UTF-8 with a damaged line
        (HEADER + "c;a;Привет\nc;b;Как дела\n").encode("cp1251"),
        (HEADER + "c;a;こんにちは\n").encode("shift_jis"),
        HEADER.encode() + b"c;a;x\x00\xe9\n",
        HEADER.encode() + b"c;a;\xff\n",
    ],
)
def test_what_is_not_like_western_text_is_not_guessed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dump.csv"
    path.write_bytes(content)
    assert _texts(path)[-1] in ("undecodable", "malformed_row")
    assert not any("cp1252" in note for note in open_dump(path).notes)


def test_an_encoding_by_name(tmp_path: Path) -> None:
    path = tmp_path / "dump.csv"
    for encoding in ("cp1251", "utf-16", "utf-16-le", "UTF-8", "koi8-r"):
        path.write_bytes((HEADER + "c;Анна;Привет\n").encode(encoding))
        assert _texts(path, encoding) == ["Привет"]


def test_bytes_that_the_encoding_does_not_have_are_quarantined_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "dump.csv"
    path.write_bytes((HEADER + "c;a;é\n").encode("cp1252") + b"c;a;\x81\n")
    for encoding in ("cp1252", None):
        first, second = rows_of(open_dump(path, encoding=encoding))
        if encoding:
            assert first["text"] == "é"
        place = {"record": "message", "file": "dump.csv", "line": 3}
        assert second == {**place, "problem": "undecodable", "raw": b"c;a;\x81"}


def test_an_unknown_encoding_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "dump.csv").write_text(HEADER)
    for encoding in ("nope", "base64", "", "hex", "rot13", "\0"):
        with pytest.raises(DumpError, match="there is no such encoding of text; write for example cp1252"):
            open_dump(tmp_path / "dump.csv", encoding=encoding)


def test_an_encoding_that_breaks_off_or_does_not_apply_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "dump.csv"
    path.write_bytes((HEADER + "c;a;x").encode("utf-16")[:-1])
    with pytest.raises(DumpError, match="the utf-16 text is damaged or cut off; give its encoding"):
        _texts(path, "utf-16")
    folder = tmp_path / "cornell"
    folder.mkdir()
    (folder / "movie_lines.txt").write_bytes(b"L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ caf\xe9\n")
    (folder / "movie_conversations.txt").write_text("u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1']\n")
    with pytest.raises(DumpError, match="--encoding does not apply to cornell; leave it out"):
        open_dump(folder, encoding="cp1252")
    assert _texts(folder)[-1] == "café"


def test_binary_content_stays_of_no_format(tmp_path: Path) -> None:
    (tmp_path / "dump.csv").write_bytes(bytes(range(256)) * 20)
    for encoding in (None, "cp1252", "latin-1"):
        with pytest.raises(DumpError, match="of no known format"):
            open_dump(tmp_path / "dump.csv", encoding=encoding)
