"""The `ssrem` command: parse, call, print."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence

from ssrem.cli.signals import Stoppable
from ssrem.errors import SsremError, printable

UNPUBLISHED = "; nothing of this stage was published, run it again to go on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, 1 after an error or if a figure differs, 130 if interrupted, 143 if
    terminated. Errors are reported in one line."""
    open_streams()
    stoppable = Stoppable(UNPUBLISHED)
    atexit.register(stoppable.end_at_once)  # first registered, so run last
    atexit.register(close_stderr)
    try:
        with stoppable:  # also during the imports below, which take a while
            from ssrem.cli.parser import parse
            from ssrem.tasks.warehouse import lock

            options = parse(arguments)
            if options.verb == "sql":  # writes nothing
                stoppable.message = ""
            if getattr(options, "wait", None) is not None:
                os.environ[lock.VARIABLE] = str(options.wait)  # worker processes need it too
            if getattr(options, "no_prefect", False):
                os.environ.pop("PREFECT_API_URL", None)
            from ssrem.cli import dispatch  # after parsing, so that help answers at once

            status = dispatch.run(options)
        atexit.register(ignore_signals)
        return status
    except SsremError as error:
        print(f"ssrem: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        return stoppable.report(stopped)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except MemoryError:
        print("ssrem: not enough memory; give it more, or a smaller file", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, or a folder without write permission
        where = f"{error.filename}: " if error.filename else ""
        line = f"ssrem: {where}{error.strerror or error}; make room, or change its permissions"
        print(printable(line), file=sys.stderr)
        return 1


def open_streams() -> None:
    """Open standard streams that are closed, as by `2>&-`, on /dev/null. Else the next file that is opened takes the
    place of such a stream, and messages are written into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))


def ignore_signals() -> None:
    """Keep the exit status of a command that is done, even if a signal arrives while the interpreter shuts down."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def close_stderr() -> None:
    """Suppress the list of leaked objects that DuckDB's bindings print at exit if Great Expectations used them."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
