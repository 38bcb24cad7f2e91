"""The `ssrem` command: parse, call, print."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from flows.cli.parser import parser
from ssrem.errors import SsremError
from tasks.warehouse import lock


class Terminated(KeyboardInterrupt):
    """Asked to end by a service manager or `kill`: what an interrupt tidies up is tidied up, and no server stays."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, 1 for a failure told in one line or a figure that differs, 130 when
    interrupted, 143 when terminated."""
    options = parser().parse_args(arguments)
    atexit.register(close_stderr)  # first registered, so run last
    if (
        getattr(options, "wait", None) is not None
    ):  # as an environment, so that workers' processes know it, too
        os.environ[lock.VARIABLE] = str(options.wait)
    try:
        from flows.cli import dispatch as commands

        # The prompt of `sql` takes an interrupt for the end of a query; it holds nothing that a signal could leave.
        with nullcontext() if options.verb == "sql" else _terminated():
            return commands.run(options)
    except SsremError as error:
        print(f"ssrem: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        return _told(stopped, options.verb)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except RuntimeError as error:
        if "Prefect API server" not in str(error):
            raise
        reason = "Prefect's server did not start within its time; try again, or name a running one in PREFECT_API_URL"
        print(f"ssrem: {reason}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that is full or a folder that may not be written, wherever it showed
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"ssrem: {where}{error.strerror or error}; make room, or change its permissions", file=sys.stderr
        )
        return 1
    except Exception as error:
        # A signal to the whole group ends Prefect's server too, and Prefect then fails to tell it of the interrupt.
        behind = error.__context__
        while behind is not None and not isinstance(behind, KeyboardInterrupt):
            behind = behind.__context__
        if behind is None:
            raise
        return _told(behind, options.verb)


def _told(stopped: KeyboardInterrupt, verb: str) -> int:
    """Say that a signal ended the command; its exit status."""
    left = "" if verb == "sql" else "; nothing of this stage was published, run it again to go on"
    how, status = ("terminated", 143) if isinstance(stopped, Terminated) else ("interrupted", 130)
    print(f"ssrem: {how}{left}", file=sys.stderr)
    return status


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM as an exception, where that can be had: in the main thread of a process that does not handle it."""

    def end(*_: object) -> None:
        raise Terminated

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def close_stderr() -> None:
    """DuckDB's bindings list what a gate's libraries still hold when the interpreter ends; nobody can act on it."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
