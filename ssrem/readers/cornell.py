"""Cornell Movie-Dialogs as distributed: two files in Latin-1, ` +++$+++ ` between the fields."""

from __future__ import annotations

import mmap
import re
from array import array
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, RowBuilder
from ssrem.readers.metadata import canonical_object
from ssrem.readers.streams import LONGEST_ROW, too_long

_LINES, _CONVERSATIONS = "movie_lines.txt", "movie_conversations.txt"
_PARTS = (_LINES, _CONVERSATIONS, "movie_characters_metadata.txt", "movie_titles_metadata.txt")
_SEPARATOR = re.compile(rb" \+\+\+\$\+\+\+ ?")
_LINE_IDS = re.compile(rb"\s*\[\s*('[^']+'\s*(,\s*'[^']+'\s*)*)\]\s*")
_LINE_ID = re.compile(rb"'([^']+)'")


class CornellReader(Reader):
    """Conversations in the order of movie_conversations.txt: a 'conversation' record, then its messages.

    A conversation's id is that of its first line; speaker and addressee are its two characters. A line that a
    conversation names but the corpus lacks is a 'malformed_row' with the conversation's bytes. Lines of no conversation
    and malformed rows of movie_lines.txt come last. Of that file only an index is in memory, 17 bytes a line (5 MB for
    the corpus as distributed), not the texts.
    """

    format: ClassVar[str] = "cornell"
    describes: ClassVar[str] = "the folder of the Cornell Movie-Dialogs Corpus, as distributed"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return (path / _LINES).is_file() and (path / _CONVERSATIONS).is_file()

    def check(self) -> None:
        for path in (self.path / _LINES, self.path / _CONVERSATIONS):
            if not path.stat().st_size:
                raise DumpError(f"{path}: the file is empty; unpack the corpus again")

    def files(self) -> list[Path]:
        return sorted(self.path / name for name in _PARTS if (self.path / name).is_file())

    @property
    def total_bytes(self) -> int:
        return sum((self.path / name).stat().st_size for name in (_LINES, _CONVERSATIONS))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        self.check()
        builder = RowBuilder(self.batch_rows)
        with (
            (self.path / _LINES).open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            lines = _Lines(self.path / _LINES, content)
            self.bytes_read = len(content)
            with (self.path / _CONVERSATIONS).open("rb") as conversations:
                number = 0
                while row := conversations.readline(LONGEST_ROW):
                    number += 1
                    if len(row) == LONGEST_ROW:
                        raise too_long(self.path / _CONVERSATIONS, f"line {number:,}")
                    self.bytes_read += len(row)
                    if row.strip():
                        yield from _add_conversation(row.rstrip(b"\r\n"), number, lines, builder)
                        yield from builder.full_batches()
            for index in np.flatnonzero(~lines.used):
                _add_line(lines.row(int(index)), int(lines.numbers[index]), None, (), builder)
                yield from builder.full_batches()
        yield from builder.batches()


class _Lines:
    """Index of movie_lines.txt by line id: sorted hashes of the ids, and the offsets of their rows."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._content = content
        starts, numbers, hashes = array("q"), array("q"), array("q")
        start, number = 0, 0
        while start < len(content):
            stop = content.find(b"\n", start) + 1 or len(content)
            number += 1
            if stop - start > LONGEST_ROW:
                raise too_long(path, f"line {number:,}")
            row = content[start:stop]
            if row.strip():
                starts.append(start)
                numbers.append(number)
                hashes.append(_hash(_SEPARATOR.split(row, 1)[0]))
            start = stop
        self.numbers = np.frombuffer(numbers, np.int64)
        self.used = np.zeros(len(starts), bool)
        self._starts = np.frombuffer(starts, np.int64)
        hashed = np.frombuffer(hashes, np.int64)
        # Stable, so that `find` returns the first of rows with the same id.
        self._order = np.argsort(hashed, kind="stable")
        self._sorted = hashed[self._order]

    def row(self, index: int) -> bytes:
        start = int(self._starts[index])
        stop = self._content.find(b"\n", start)
        return self._content[start : stop if stop >= 0 else len(self._content)].rstrip(b"\r")

    def find(self, line_id: bytes) -> int | None:
        """The index of the first well-formed row with this id, or None."""
        wanted = _hash(line_id)
        at = int(np.searchsorted(self._sorted, wanted))
        while at < len(self._sorted) and self._sorted[at] == wanted:
            index = int(self._order[at])
            fields = _fields(self.row(index))
            if fields is not None and fields[0] == line_id:
                return index
            at += 1
        return None


def _hash(line_id: bytes) -> int:
    return int.from_bytes(blake2b(line_id, digest_size=8).digest(), "little", signed=True)


def _fields(row: bytes) -> list[bytes] | None:
    """id, character, movie, name and, if present, text; None for a row of another form."""
    fields = _SEPARATOR.split(row, 4)
    return fields if len(fields) >= 4 and all(fields[:2]) else None


def _add_conversation(
    row: bytes, number: int, lines: _Lines, builder: RowBuilder
) -> Iterator[pa.RecordBatch]:
    fields = _SEPARATOR.split(row)
    listed = _LINE_IDS.fullmatch(fields[3]) if len(fields) == 4 else None
    if listed is None:
        builder.add_problem("malformed_row", _CONVERSATIONS, number, row)
        return
    ids = _LINE_ID.findall(listed[1])
    conversation = ids[0].decode("latin-1")
    pair = tuple(field.decode("latin-1") for field in fields[:2])
    metadata = canonical_object({"movie": fields[2].decode("latin-1"), "characters": pair})
    builder.add(
        "conversation", _CONVERSATIONS, number, {"conversation_id": conversation, "metadata": metadata}
    )
    for line_id in ids:
        yield from builder.full_batches()
        index = lines.find(line_id)
        if index is None:
            values = {"conversation_id": conversation, "utterance_id": line_id.decode("latin-1")}
            builder.add_problem("malformed_row", _CONVERSATIONS, number, row, values)
            continue
        lines.used[index] = True
        _add_line(lines.row(index), int(lines.numbers[index]), conversation, pair, builder)


def _add_line(
    row: bytes, number: int, conversation: str | None, pair: tuple[str, ...], builder: RowBuilder
) -> None:
    fields = _fields(row)
    if fields is None:
        builder.add_problem("malformed_row", _LINES, number, row)
        return
    line_id, speaker, movie, name, *text = (field.decode("latin-1") for field in fields)
    other = [character for character in pair if character != speaker]
    values = {
        "conversation_id": conversation,
        "utterance_id": line_id,
        "speaker": speaker,
        "addressee": other[0] if speaker in pair and len(other) == 1 else None,
        "text": text[0] if text else None,
        "metadata": canonical_object({"movie": movie, "character": name}),
    }
    builder.add("message", _LINES, number, values)
