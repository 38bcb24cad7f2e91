"""A command in a pseudo-terminal, to type into and to read from."""

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

from support.paths import ROOT

PATIENCE = 60
"""Seconds to wait for expected output."""

# The new process takes the terminal for its own before it becomes the command: pty.fork() would do so in a copy of this
# one, in which a lock that another thread held stays locked for good.
TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Terminal:
    """Runs a command in a pseudo-terminal, 160 columns wide."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        environment = {**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1", **environment}
        self.screen, terminal = pty.openpty()
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.child = subprocess.Popen(
            [sys.executable, "-c", TAKE, *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            cwd=ROOT,
            env=environment,
        )
        os.close(terminal)
        self.unread = ""

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def until(self, pattern: str) -> str:
        """What the terminal shows up to and with the pattern; AssertionError if that does not come."""
        limit = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.unread)):
            left = limit - time.monotonic()
            more = self._read() if left > 0 and select.select([self.screen], [], [], left)[0] else b""
            assert more, f"{pattern!r} did not come: {self.unread!r}"
            self.unread += more.decode("utf-8", "replace").replace("\r\n", "\n")
        shown, self.unread = self.unread[: match.end()], self.unread[match.end() :]
        return shown

    def close(self) -> tuple[int, str]:
        """Wait for the command to end; its exit status and what it showed last."""
        while more := self._read():
            self.unread += more.decode("utf-8", "replace").replace("\r\n", "\n")
        return self.child.wait(), self.unread

    def end(self) -> None:
        """End the command, whatever the outcome of the test."""
        self.child.kill()
        self.child.wait()
        os.close(self.screen)

    def _read(self) -> bytes:
        try:
            return os.read(self.screen, 65_536)
        except OSError:  # how a terminal signals its end
            return b""
