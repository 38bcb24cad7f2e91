"""The `ssrem` command: parse, call, print."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

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
        with nullcontext() if options.verb == "sql" else _terminated():
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
    except Exception as error:
        # A signal to the whole process group also ends Prefect's server, so that Prefect fails to report to it.
        cause = error.__context__
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        if cause is None:
            raise
        return _report_signal(cause, options.verb)


def _report_signal(stopped: KeyboardInterrupt, verb: str) -> int:
    """Report that a signal ended the command; returns the exit status."""
    left = "" if verb == "sql" else "; nothing of this stage was published, run it again to go on"
    how, status = ("terminated", 143) if isinstance(stopped, Terminated) else ("interrupted", 130)
    print(f"ssrem: {how}{left}", file=sys.stderr)
    return status


@contextmanager
def _terminated() -> Iterator[None]:
    """Raise SIGTERM as an exception, in the main thread of a process that does not handle it otherwise."""

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
    """Drop the list of leaked objects that DuckDB's bindings print at exit after Great Expectations used them."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
