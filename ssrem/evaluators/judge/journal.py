"""The journal of a judge: every answer is appended to a file as it comes, and no question is asked twice."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssrem.encoders.store import Hashes

Entry = Mapping[str, Any]
"""An answer as JSON holds it, with `key`, a hash of all that was asked, and `texts`, hashes of the sample's texts."""


class Journal:
    """Answers by key. file: JSON lines, read once and then appended to; None keeps them in memory alone.

    Another process may append to the same file. A line that was cut off by a kill is ignored.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._entries = {entry["key"]: entry for entry in _entries(file)} if file and file.exists() else {}

    def get(self, key: str) -> Entry | None:
        """The answer; None where it was never asked."""
        return self._entries.get(key)

    def add(self, entry: Entry) -> None:
        """Keep an answer: when this returns, the operating system has it."""
        with self._lock:
            self._entries[entry["key"]] = entry
            if self._file is None:
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._file, "ab+") as stream:
                if stream.tell() and not _ends_in_line(stream):
                    stream.write(b"\n")
                stream.write(json.dumps(entry).encode() + b"\n")


def retain(folder: Path, held: Hashes) -> int:
    """Delete from the journals in a folder the answers about a text whose hash is not in `held`; returns how many."""
    deleted, hashes = 0, set(held.tolist())
    for file in sorted(folder.glob("*.jsonl")):
        with _locked(file, "rb+") as stream:
            lines = [(line, entry) for line in stream if (entry := _parsed(line))]
            kept = [line for line, entry in lines if hashes.issuperset(entry["texts"])]
            deleted += len(lines) - len(kept)
            stream.seek(0)
            stream.truncate()
            stream.writelines(kept)
    return deleted


@contextmanager
def _locked(file: Path, mode: str) -> Iterator[IO[bytes]]:
    with file.open(mode) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0, 2 if "a" in mode else 0)
        yield stream


def _ends_in_line(stream: IO[bytes]) -> bool:
    stream.seek(-1, 2)
    return stream.read(1) == b"\n"


def _entries(file: Path) -> Iterator[Entry]:
    with file.open("rb") as stream:
        yield from (entry for line in stream if (entry := _parsed(line)))


def _parsed(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"key", "texts"} <= entry.keys() else None
