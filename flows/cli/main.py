"""The `ssrem` command: parse, call, print."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from flows.cli.parser import parse
from ssrem.errors import SsremError
from tasks.warehouse import lock


class Terminated(KeyboardInterrupt):
    """SIGTERM, from a service manager or `kill`: cleaned up after as an interrupt, so that no server stays."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, 1 after an error or if a figure differs, 130 if interrupted, 143 if
    terminated. Errors are reported in one line."""
    options = parse(arguments)
    atexit.register(close_stderr)  # first registered, so run last
    if getattr(options, "wait", None) is not None:
        os.environ[lock.VARIABLE] = str(options.wait)  # worker processes need it too
    try:
        from flows.cli import dispatch  # after the options, so that help answers at once

        # `sql` writes nothing, so that a signal leaves nothing to clean up.
        with nullcontext() if options.verb == "sql" else _stopped():
            return dispatch.run(options)
    except SsremError as error:
        print(f"ssrem: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        return _report_signal(stopped, options.verb)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except RuntimeError as error:
        if "Prefect API server" not in str(error):
            raise
        reason = "Prefect's server did not start within its time; try again, or name a running one in PREFECT_API_URL"
        print(f"ssrem: {reason}", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk or a folder that may not be written, wherever it happened
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"ssrem: {where}{error.strerror or error}; make room, or change its permissions", file=sys.stderr
        )
        return 1


def _report_signal(stopped: KeyboardInterrupt, verb: str) -> int:
    """Report that a signal ended the command; returns the exit status."""
    left = "" if verb == "sql" else "; nothing of this stage was published, run it again to go on"
    how, status = ("terminated", 143) if isinstance(stopped, Terminated) else ("interrupted", 130)
    print(f"ssrem: {how}{left}", file=sys.stderr)
    return status


@contextmanager
def _stopped() -> Iterator[None]:
    """Whatever ends the block after a signal is Terminated or KeyboardInterrupt, SIGTERM included; only in the main
    thread of a process that does not handle SIGTERM itself.

    What the signal's handler raises does not always arrive: DuckDB raises an error of its own in its place where it
    interrupts a statement, and so does Prefect where its server was ended by the same signal. So the interpreter
    notes the signals that arrive, whoever handles them: Prefect has a handler of its own while a flow runs.
    """

    def end(*_: object) -> None:
        raise Terminated

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    arrived, notes = socket.socketpair()
    with arrived, notes:
        arrived.setblocking(False)
        notes.setblocking(False)
        before = signal.set_wakeup_fd(notes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, end)
        try:
            yield
        except BaseException as error:
            with suppress(BlockingIOError):
                signals = arrived.recv(4096)
                if signal.SIGTERM in signals:
                    raise Terminated from error
                if signal.SIGINT in signals:
                    raise KeyboardInterrupt from error
            raise
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.set_wakeup_fd(before)


def close_stderr() -> None:
    """Drop the list of leaked objects that DuckDB's bindings print at exit after Great Expectations used them."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
