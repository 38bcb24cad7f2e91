"""Exclusive write lock of a home folder; blocked writers see who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, cast

from ssrem.errors import HomeError, say
from ssrem.settings import seconds
from ssrem.tasks.warehouse.files import out_of_room

VARIABLE = "SSREM_WAIT"
"""Environment variable: how long writers in this process and its children wait for the lock, such as 90, 30m or 6h."""


@contextmanager
def locked(root: Path, what: str) -> Iterator[None]:
    """Hold the write lock of the home folder, which is created for its owner alone: it will hold people's words.

    what: shown to others that want it. Waits up to $SSREM_WAIT for another writer, then raises HomeError naming it.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = (root / ".lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise cannot_write(root, error.strerror) from None
    with handle:  # the kernel releases the lock of a process that dies
        _acquire(root, handle)
        about = {"pid": os.getpid(), "host": socket.gethostname(), "what": what}
        try:
            handle.truncate(0)
            json.dump({**about, "since": f"{datetime.now(UTC):%F %T}"}, handle)
            handle.flush()
        except OSError as error:
            raise out_of_room(root, error) or cannot_write(root, error.strerror) from None
        try:
            yield
        finally:
            handle.truncate(0)  # whoever holds the lock next may not be ssrem


def cannot_write(root: Path, why: object) -> HomeError:
    """The error of a home folder that nobody can write to."""
    return HomeError(f"cannot write to {root}: {why}; choose another folder with --home")


def _acquire(root: Path, handle: TextIO) -> None:
    try:
        limit = cast(float, seconds(os.environ.get(VARIABLE) or "0"))
    except ValueError as error:
        raise HomeError(f"${VARIABLE}: {error}") from None
    waiting, deadline = False, time.monotonic() + limit
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
        who = "process {pid} on {host} ({what} since {since} UTC)" if holder else "another process"
        who = who.format_map(holder)
        if time.monotonic() >= deadline:
            still, waited = (" still", f" after {limit:g} s") if limit else ("", "")
            way_out = "wait longer" if limit else "wait for it to end, or let ssrem do so with --wait 6h"
            raise HomeError(f"{root} is{still} in use by {who}{waited}; {way_out}")
        if not waiting:
            say(f"waiting for {who}, which writes to {root}")
            waiting = True
        time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))


def lock_holder(root: Path) -> dict[str, Any] | None:
    """Who holds the lock: pid, host, what, since; None if nobody does, even if the lock file still names someone."""
    with suppress(OSError), (root / ".lock").open(encoding="utf-8") as handle:
        if holder := _holder(handle):
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return holder
    return None


def _holder(handle: TextIO) -> dict[str, Any]:
    """What the lock file says; empty unless a process of ssrem wrote it."""
    handle.seek(0)
    try:
        holder = json.loads(handle.read())
        return {key: holder[key] for key in ("pid", "host", "what", "since")}
    except (ValueError, TypeError, KeyError):
        return {}


def alive(pid: object) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass  # it is another user's
    return True
