"""Incidents: the log of what went wrong, which `ssrem status` shows, and clean-up after interrupted runs."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.files import delete
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.snapshot import Snapshot, drop_manifests

KEPT = 200
"""How many of the newest lines of the log are kept."""

_LOG = "incidents.jsonl"

PURGE_NOTE = ".purge"
"""File with the id of a run; once it has published, the home folder must be purged."""

_DRAFTS = (
    *(".catalog.tmp", ".catalog.tmp.wal", ".verified.json.*.tmp", f".{PURGE_NOTE}.tmp"),
    *("lake/.run=*.tmp", "lake/.snapshot=*.tmp", "lake/run=*/.*.tmp"),
    *("vectors/*/*.tmp", "encoders/*.tmp", "masked-lm/*.tmp", ".forgotten.json.*.tmp", ".restore.tmp"),
)


def leftovers(home: Warehouse) -> list[Path]:
    """The files that interrupted runs left behind, provided that no run is in progress."""
    return [path for pattern in ("staging/*", PURGE_NOTE, *_DRAFTS) for path in home.root.glob(pattern)]


def clean_up(home: Warehouse, snapshot: Snapshot) -> list[str]:
    """Delete what interrupted runs left behind; returns a line for each of them, which is also logged.

    snapshot: the published one. The caller holds the lock.
    """
    messages = []
    published = {partition.run for partition in snapshot.partitions}
    for scratch in sorted(home.staging.glob("*")):
        try:
            run = json.loads((scratch / "run.json").read_text())
            name = f"{run['stage']} of {run['started']} UTC"
        except (OSError, ValueError, KeyError):
            name = scratch.name
        done = "it had published" if scratch.name in published else "it had published nothing"
        messages.append(f"an earlier run was interrupted ({name}); {done} and was cleaned up")
        log_incident(home.root, utc_now(), messages[-1])
        if scratch.name not in published and snapshot.damage is None:  # in the lake, but in no snapshot
            for folder in home.lake.glob(f"run={scratch.name}*"):
                delete(folder)
        delete(scratch)
    if snapshot.damage is None:  # manifests of snapshots that were never published
        drop_manifests(home.lake, above=snapshot.number)
    for draft in (path for pattern in _DRAFTS for path in home.root.glob(pattern)):
        delete(draft)
    return messages


def log_incident(root: Path, at: datetime, text: str) -> None:
    """Append one line to the log, unless it is its last one already. A full disk does not raise an error."""
    logged = incidents(root)
    if logged and logged[-1][1] == text:
        return
    path = root / _LOG
    with suppress(OSError):
        if len(logged) >= 2 * KEPT:
            draft = root / f"{_LOG}.tmp"
            draft.write_text("".join(_line(*entry) for entry in logged[-KEPT:]), encoding="utf-8")
            draft.replace(path)
        with path.open("ab") as handle:
            content = path.read_bytes()
            # An incomplete line of a killed run is ended first.
            handle.write(b"\n" if content and not content.endswith(b"\n") else b"")
            handle.write(_line(f"{at:%F %T}", text).encode())
            handle.flush()
            os.fsync(handle.fileno())


def incidents(root: Path) -> list[tuple[str, str]]:
    """Time (UTC) and text of each logged incident, oldest first. Half-written lines are skipped."""
    logged = []
    with suppress(OSError):
        for line in (root / _LOG).read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                logged.append((str(row["at"]), str(row["what"])))
    return logged


def _line(at: str, text: str) -> str:
    return json.dumps({"at": at, "what": text}, ensure_ascii=False) + "\n"
