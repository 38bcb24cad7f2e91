"""A command in a terminal of its own, as somebody types into it and reads from it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress

from support.paths import ROOT

PATIENCE = 60
"""Seconds to wait for what must come."""

# The new process takes the terminal for its own before it becomes the command: pty.fork() would do so in a copy of this
# one, in which a lock that another thread held stays locked for good.
TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Terminal:
    """Runs a command in a pseudo-terminal, 160 columns wide."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        given = {**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1", **environment}
        self.screen, terminal = pty.openpty()
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.child = subprocess.Popen(
            [sys.executable, "-c", TAKE, *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            cwd=ROOT,
            env=given,
        )
        os.close(terminal)
        self.unread = ""

    def type(self, text: str) -> None:
        self.send(text.encode())

    def send(self, what: bytes) -> None:
        os.write(self.screen, what)

    def interrupt(self, pattern: str) -> str:
        """Press Ctrl-C until the pattern comes: one that falls between Python's prompt and its wait for keys is seen
        with the next key alone."""
        for _ in range(PATIENCE):
            self.send(b"\x03")
            with suppress(AssertionError):
                return self.until(pattern, patience=2)
        raise AssertionError(f"{pattern!r} did not come: {self.unread!r}")

    def until(self, pattern: str, patience: float = PATIENCE) -> str:
        """What the terminal shows up to and with the pattern; AssertionError if that does not come."""
        limit = time.monotonic() + patience
        while not (found := re.search(pattern, self.unread)):
            left = limit - time.monotonic()
            more = self._read() if left > 0 and select.select([self.screen], [], [], left)[0] else b""
            assert more, f"{pattern!r} did not come: {self.unread!r}"
            self.unread += more.decode("utf-8", "replace").replace("\r\n", "\n")
        shown, self.unread = self.unread[: found.end()], self.unread[found.end() :]
        return shown

    def close(self) -> tuple[int, str]:
        """Wait for the command to end; its exit status and what it showed last."""
        while more := self._read():
            self.unread += more.decode("utf-8", "replace").replace("\r\n", "\n")
        return self.child.wait(), self.unread

    def end(self) -> None:
        """Leave nothing running, whatever the test came to."""
        self.child.kill()
        self.child.wait()
        os.close(self.screen)

    def _read(self) -> bytes:
        try:
            return os.read(self.screen, 65_536)
        except OSError:  # what a terminal says at its end
            return b""
