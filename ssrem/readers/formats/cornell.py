"""Cornell Movie-Dialogs as distributed: two files in Latin-1, ` +++$+++ ` between the fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import head
from ssrem.readers.metadata import canonical_object

_LINES, _CONVERSATIONS = "movie_lines.txt", "movie_conversations.txt"
_SEPARATOR = re.compile(rb" \+\+\+\$\+\+\+ ?")
_LINE_IDS = re.compile(rb"\s*\[\s*('[^']+'\s*(,\s*'[^']+'\s*)*)\]\s*")
_LINE_ID = re.compile(rb"'([^']+)'")


class CornellReader(Reader):
    """Conversations in the order of movie_conversations.txt: a 'conversation' record, then its messages.

    A conversation's id is that of its first line; speaker and addressee are its two characters. A line that a
    conversation names but the corpus lacks is a 'malformed_row' with the conversation's bytes. Lines of no conversation
    and malformed rows of movie_lines.txt come last. The rows of movie_lines.txt (35 MB as distributed) are in memory.
    """

    format: ClassVar[str] = "cornell"
    describes: ClassVar[str] = "the folder of the Cornell Movie-Dialogs Corpus, as distributed"
    is_text: ClassVar[bool] = False  # Latin-1, by its publisher
    required: ClassVar = (_LINES, _CONVERSATIONS)
    unread: ClassVar = ("movie_characters_metadata.txt", "movie_titles_metadata.txt")

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        if not path.is_dir() and _SEPARATOR.search(head(path).partition(b"\n")[0]):
            return f"a file alone, with +++$+++ between its fields; give the folder with {_LINES} and {_CONVERSATIONS}"
        return super().near_miss(path)

    def records(self) -> Iterator[Record]:
        self.check()
        rows: dict[int, bytes] = {}  # by line number
        numbers: dict[bytes, int] = {}  # line id → the first line with it
        for number, row in self.lines(self.path / _LINES):
            if row.strip():
                rows[number] = row.rstrip(b"\r")
                if fields := _fields(row):
                    numbers.setdefault(fields[0], number)
        unnamed = dict.fromkeys(rows)  # numbers of the lines that no conversation has named yet
        for number, line in self.lines(self.path / _CONVERSATIONS):
            if not line.strip():
                continue
            row = line.rstrip(b"\r")
            fields = _SEPARATOR.split(row)
            listed = _LINE_IDS.fullmatch(fields[3]) if len(fields) == 4 else None
            if listed is None:
                yield problem("malformed_row", _CONVERSATIONS, number, row)
                continue
            ids = _LINE_ID.findall(listed[1])
            id, first, second, movie = (field.decode("latin-1") for field in (ids[0], *fields[:3]))
            about = {"movie": movie, "characters": [first, second]}
            yield self.conversation(_CONVERSATIONS, number, id, about)
            for line_id in ids:
                if line_id in numbers:
                    unnamed.pop(numbers[line_id], None)
                    yield _message(rows[numbers[line_id]], numbers[line_id], id, (first, second))
                else:
                    known = {"conversation_id": id, "utterance_id": line_id.decode("latin-1")}
                    yield problem("malformed_row", _CONVERSATIONS, number, row, **known)
        for number in unnamed:
            yield _message(rows[number], number, None, ())


def _fields(row: bytes) -> list[bytes] | None:
    """id, character, movie, name and, if present, text; None for a row of another form."""
    fields = _SEPARATOR.split(row, 4)
    return fields if len(fields) >= 4 and all(fields[:2]) else None


def _message(row: bytes, number: int, conversation: str | None, pair: tuple[str, ...]) -> Record:
    fields = _fields(row)
    if fields is None:
        return problem("malformed_row", _LINES, number, row)
    line_id, speaker, movie, name, *text = (field.decode("latin-1") for field in fields)
    other = [character for character in pair if character != speaker]
    return {
        "record": "message",
        "file": _LINES,
        "line": number,
        "conversation_id": conversation,
        "utterance_id": line_id,
        "speaker": speaker,
        "addressee": other[0] if speaker in pair and len(other) == 1 else None,
        "text": text[0] if text else None,
        "metadata": canonical_object({"movie": movie, "character": name}),
    }
