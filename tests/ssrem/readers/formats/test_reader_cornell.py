"""Cornell Movie-Dialogs: two files as distributed, every row of both accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.formats.cornell import CornellReader
from support.reader_rows import rows_of

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
    assert rows == [
        {**conversation, "line": 1, "conversation_id": "L3"},
        {
            **message,
            **bianca,
            "line": 2,
            "conversation_id": "L3",
            "utterance_id": "L3",
            "text": "They do not! +++$+++ Really",
        },
        {**message, **cameron, "line": 1, "conversation_id": "L3", "utterance_id": "L4", "text": "Café?"},
        {
            **bad,
            "file": "movie_conversations.txt",
            "line": 1,
            "conversation_id": "L3",
            "utterance_id": "L404",
            "raw": CONVERSATIONS[0],
        },
        {**conversation, "line": 2, "conversation_id": "L1"},
        {**message, **cameron, "line": 4, "conversation_id": "L1", "utterance_id": "L1"},
        {**message, **bianca, "line": 3, "conversation_id": "L1", "utterance_id": "L2", "text": ""},
        {**bad, "file": "movie_conversations.txt", "line": 3, "raw": CONVERSATIONS[2]},
        {
            **message,
            "line": 5,
            "utterance_id": "L9",
            "speaker": "u9",
            "text": "alone",
            "metadata": '{"character":"NOBODY","movie":"m1"}',
        },
        {**bad, "file": "movie_lines.txt", "line": 6, "raw": LINES[5]},
        {
            **message,
            "line": 7,
            "utterance_id": "L3",
            "speaker": "u0",
            "text": "twice",
            "metadata": '{"character":"BIANCA","movie":"m0"}',
        },
    ]
    assert reader.bytes_read == reader.total_bytes


def test_thousands_of_lines_are_found_by_their_ids(tmp_path: Path) -> None:
    lines = [b"L%d +++$+++ u%d +++$+++ m0 +++$+++ N +++$+++ text %d" % (i, i % 2, i) for i in range(5000)]
    conversations = [
        b"u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L%d', 'L%d']" % (i, i + 1) for i in range(4998, -1, -2)
    ]
    rows = rows_of(CornellReader(_folder(tmp_path, lines, conversations), batch_rows=100))
    messages = [row for row in rows if row["record"] == "message"]
    assert len(messages) == 5000
    assert all(row["text"] == f"text {row['utterance_id'][1:]}" for row in messages)
    assert [row["line"] for row in messages[:2]] == [4999, 5000]


def test_an_empty_file_is_one_line(tmp_path: Path) -> None:
    folder = _folder(tmp_path, LINES, CONVERSATIONS)
    (folder / "movie_lines.txt").write_bytes(b"")
    with pytest.raises(DumpError, match=r"movie_lines\.txt: the file is empty"):
        open_dump(folder)
