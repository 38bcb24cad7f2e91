"""Signals that end a command: Ctrl-C (SIGINT) and SIGTERM, from a service manager or `kill`."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

GRACE = 1.5
"""Seconds that a command has to clean up after a signal. Then the process is ended, as by kill -9: nothing is published
in part, and the next run deletes leftovers."""

ENDING = (signal.SIGINT, signal.SIGTERM)

CLOSED = 0
"""Written to the watching thread, in place of a signal's number, when the block has ended."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like an interrupt."""


class Stoppable:
    """A block that a signal ends within GRACE seconds, and a second signal at once.

    If the block ends without an error, its work is done and the process exits normally: the signal then arrived while
    Python deleted an object or ran a callback, and Python dropped the error of the signal's handler.

    Any error that the signal causes leaves the block as KeyboardInterrupt or Terminated: DuckDB raises an error of its
    own in place of that of the signal's handler. A thread watches for signals, since Python does not handle them during
    a long call into a library. Outside the main thread, and in a process that handles SIGTERM itself, signals are not
    caught.

    message: what the line says after `interrupted` or `terminated`.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        self._arrived: int | None = None
        self._watching = False
        self._done = False
        self._closed = threading.Event()
        self._printing = threading.Lock()
        self._printed = False

    def __enter__(self) -> Stoppable:
        main_thread = threading.current_thread() is threading.main_thread()
        if main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._watching = True
            self._received, self._sender = socket.socketpair()
            self._sender.setblocking(False)
            self._previous_fd = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGTERM, _terminate)
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if not self._watching:
            return
        self._done = error is None
        self._sender.send(bytes([CLOSED]))
        self._closed.wait(GRACE)
        if self._arrived is None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        else:  # little is left to do, and another signal must not prevent the message
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(self._previous_fd)
        if error is not None and self._arrived is not None:
            raise (Terminated if self._arrived == signal.SIGTERM else KeyboardInterrupt) from error

    def report(self, stopped: KeyboardInterrupt) -> int:
        """Print that the command was stopped; returns the exit status."""
        status, line = self._outcome(isinstance(stopped, Terminated))
        with self._printing:
            if not self._printed:
                print(f"{_over_a_bar()}{line}", file=sys.stderr, flush=True)
                self._printed = True
        return status

    def end_at_once(self) -> None:
        """End the process if a signal ended the block: the interpreter takes seconds to tear down once PyTorch is
        loaded, and the thread that watches the time cannot run any more."""
        if self._arrived is not None and not self._done:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._outcome(self._arrived == signal.SIGTERM)[0])

    def _outcome(self, terminated: bool) -> tuple[int, str]:
        line = f"ssrem: {'terminated' if terminated else 'interrupted'}{self.message}"
        return 143 if terminated else 130, line

    def _end(self) -> NoReturn:
        """End the process now, whatever its main thread is doing."""
        status, line = self._outcome(self._arrived == signal.SIGTERM)
        # Not longer: the main thread may be writing to a terminal that is stopped.
        self._printing.acquire(timeout=0.2)
        if not self._printed:
            with suppress(OSError):
                os.write(2, f"{_over_a_bar()}{line}\n".encode())
        os._exit(status)

    def _watch(self) -> None:
        while self._arrived is None:
            number = self._received.recv(1)[0]
            if number == CLOSED:
                self._closed.set()
                return
            if number in ENDING:
                self._arrived = number
        deadline = time.monotonic() + GRACE
        with suppress(TimeoutError):
            while (left := deadline - time.monotonic()) > 0:  # also while the interpreter shuts down
                self._received.settimeout(left)
                if self._received.recv(1)[0] != CLOSED:
                    break
                self._closed.set()
                if self._done:
                    return
        self._end()


def _over_a_bar() -> str:
    """On a terminal, the control codes that delete a half-drawn progress bar and show the cursor."""
    return "\r\033[K\033[?25h" if os.isatty(2) else ""


def _terminate(*_: object) -> NoReturn:
    raise Terminated
