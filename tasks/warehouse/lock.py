"""Exclusive write lock of a home folder; blocked writers see who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ssrem.errors import HomeError, say
from ssrem.tasks.warehouse.clock import utc_now

VARIABLE = "SSREM_WAIT"
"""Environment variable: how long writers in this process and its children wait for the lock."""

POLL_SECONDS = 0.2

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """Seconds in a duration: a number, with s, m, h or d after it, such as 90, 30m or 6h; ValueError otherwise."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no duration such as 90, 30m or 6h")
    return float(match[1]) * _UNITS[match[2]]


def patience() -> float:
    """Seconds to wait for another writer: $SSREM_WAIT, or 0. Raises HomeError if its value is no duration."""
    try:
        return seconds(os.environ.get(VARIABLE) or "0")
    except ValueError as error:
        raise HomeError(f"${VARIABLE}: {error}") from None


@contextmanager
def locked(root: Path, what: str) -> Iterator[None]:
    """Hold the write lock of the home folder. The kernel releases the lock of a process that dies.

    what: shown to other processes that want the lock. Waits up to $SSREM_WAIT for another writer, then raises HomeError
    naming the holder.
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
        about = {"pid": os.getpid(), "host": socket.gethostname()}
        json.dump({**about, "what": what, "since": f"{utc_now():%F %T}"}, handle)
        handle.flush()
        yield


def _acquire(root: Path, handle: TextIO) -> None:
    limit, waiting = patience(), False
    deadline = time.monotonic() + limit
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
        who = "another process"
        if {"pid", "host", "what", "since"} <= holder.keys():
            who = "process {pid} on {host} ({what} since {since} UTC)".format_map(holder)
        if time.monotonic() >= deadline:
            waited = f" after {limit:g} s" if limit else ""
            way_out = "wait longer" if limit else "wait for it to end, or let ssrem do so with --wait 6h"
            raise HomeError(f"{root} is{' still' * waiting} in use by {who}{waited}; {way_out}")
        if not waiting:
            say(f"waiting for {who}, which writes to {root}")
            waiting = True
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def lock_holder(root: Path) -> dict[str, Any] | None:
    """Who holds the lock: pid, host, what, since; None if nobody does, even if the lock file still names someone."""
    try:
        handle = (root / ".lock").open(encoding="utf-8")
    except OSError:
        return None
    with handle:
        holder = _holder(handle)
        if holder and holder.get("host") == socket.gethostname() and not alive(holder.get("pid")):
            return None  # without taking the lock: to hold it for a moment could refuse a run that starts now
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return holder
    return None


def _holder(handle: TextIO) -> dict[str, Any]:
    handle.seek(0)
    try:
        holder = json.loads(handle.read())
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def alive(pid: object) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
