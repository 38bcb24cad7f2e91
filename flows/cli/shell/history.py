"""What was typed at the prompt of `ssrem sql`, kept from one time to the next in the user's own state folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from flows.cli.shell.statements import on_one_line

KEPT = 1_000
"""Statements remembered."""


def place() -> Path:
    """Where the history lies: not in the home folder, which others may read."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # as the XDG specification has it
        state = Path.home() / ".local" / "state"
    return state / "ssrem" / "sql_history"


class History:
    """A file of statements, oldest first, a line each; only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = ""

    def load(self) -> list[str]:
        """What is remembered, oldest first; nothing where there is no file. OSError where it cannot be read."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        if len(lines) > 2 * KEPT:
            draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
            try:
                with _private(draft, os.O_TRUNC) as out:
                    out.writelines(f"{line}\n" for line in lines[-KEPT:])
                draft.replace(self.path)
            finally:
                draft.unlink(missing_ok=True)
        kept = lines[-KEPT:]
        self._last = kept[-1] if kept else ""
        return kept

    def add(self, statement: str) -> str | None:
        """Remember a statement; returns it as one line, None where it is the last one again.

        OSError where it cannot be kept. One with a line break in quotes is no line: it is remembered only here.
        """
        line = on_one_line(statement)
        if line in ("", self._last):
            return None
        self._last = line
        if line.splitlines() == [line]:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _private(self.path, os.O_APPEND) as out:
                out.write(f"{line}\n")
        return line


def _private(path: Path, how: int) -> TextIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "w", encoding="utf-8")
