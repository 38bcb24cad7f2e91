"""The home folder's lock: one writer at a time, whoever it is told to all."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from ssrem.errors import HomeError
from tasks.warehouse.clock import utc_now
from tasks.warehouse.waiting import POLL_SECONDS, patience


@contextmanager
def locked(root: Path, what: str) -> Iterator[None]:
    """Hold the home folder for writing. The kernel drops the lock of a process that dies.

    Where another writer has it, wait as long as $SSREM_WAIT says; HomeError, naming the holder, after that.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = (root / ".lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise HomeError(
            f"cannot write to {root}: {error.strerror}; choose another folder with --home"
        ) from None
    with handle:
        _acquire(root, handle)
        handle.truncate(0)
        json.dump(
            {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "what": what,
                "since": f"{utc_now():%F %T}",
            },
            handle,
        )
        handle.flush()
        yield


def _acquire(root: Path, handle: TextIO) -> None:
    limit, told = patience(), False
    deadline = time.monotonic() + limit  # whatever happens to the clock on the wall
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            who = _holder(handle.read())
        if time.monotonic() >= deadline:
            waited = f" after {limit:g} s" if limit else ""
            way_out = "wait longer" if limit else "wait for it to end, or let ssrem do so with --wait 6h"
            raise HomeError(f"{root} is{' still' * told} in use by {who}{waited}; {way_out}")
        if not told:
            print(f"ssrem: waiting for {who}, which writes to {root}", file=sys.stderr, flush=True)
            told = True
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def holder(root: Path) -> dict[str, Any] | None:
    """Who holds the lock: pid, host, what, since; None where nobody does, whatever the file still says."""
    try:
        handle = (root / ".lock").open(encoding="utf-8")
    except OSError:
        return None
    with handle:
        text = handle.read()
        held = _held(text)
        if held and held.get("host") == socket.gethostname() and not alive(held.get("pid")):
            return None  # without trying the lock, which would stand in the way of a run that starts just now
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return held or {}
    return None


def _holder(text: str) -> str:
    try:
        held = json.loads(text)
        return f"process {held['pid']} on {held['host']} ({held['what']} since {held['since']} UTC)"
    except (ValueError, KeyError):
        return "another process"


def _held(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(text)
        return found if isinstance(found, dict) else {}
    return {}


def alive(pid: object) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]
