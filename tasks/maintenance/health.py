"""What an operator should know of a home folder: what runs, what died, what is damaged, and what was made good."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ssrem.errors import HomeError
from tasks.warehouse.clock import utc_now
from tasks.warehouse.home import Warehouse
from tasks.warehouse.incidents import incidents
from tasks.warehouse.integrity import find_damage, forget_verified
from tasks.warehouse.models import broken_models

SHOWN = 10
"""Incidents that are told, the last ones."""


def remarks(home: Warehouse, *, deep: bool = False) -> list[str]:
    """One line each. `deep` reads every published file through, which finds what a failing disk changed."""
    found = _runs(home)
    snapshot = home.snapshot()
    if snapshot.damage:
        found.append(
            f"{snapshot.damage}; what is shown is snapshot {snapshot.number} of the lake's manifests; the next run "
            "that writes makes a new catalog"
        )
    damaged = find_damage(home.root, snapshot.partitions, deep=deep)
    if damaged and deep:
        forget_verified(home.root)
    found += [
        f"damaged: {one}; queries that do not need it go on; the next run that writes, such as ssrem tables, repairs it"
        for one in damaged
    ]
    try:
        found += broken_models(home, deep=deep)
        found += _clock(home)
    except HomeError:
        pass  # what they ask is damaged, which was said
    found += [f"a gate failed in run {f.name}; its rows are in {f}" for f in sorted(home.failures.glob("*"))]
    told = incidents(home.root)
    if len(told) > SHOWN:
        found.append(f"{len(told) - SHOWN} earlier incidents: {home.root / 'incidents.jsonl'}")
    return found + [f"{at} UTC: {what}" for at, what in told[-SHOWN:]]


def _runs(home: Warehouse) -> list[str]:
    writer = home.writer()
    found = []
    if writer is not None:
        who = f"process {writer.get('pid', 'unknown')} on {writer.get('host', 'unknown')}"
        found.append(
            f"{writer.get('what', 'a run')}, begun {writer.get('since', 'earlier')} UTC, is running: {who}"
        )
    for leftover in sorted(home.staging.glob("*")):
        run = _about(leftover)
        if writer is None or run.get("pid") != writer.get("pid"):
            found.append(
                f"{run.get('stage', 'a run')}, begun {run.get('started', 'earlier')} UTC, was interrupted; nothing "
                "that was published is lost, and the next run cleans up"
            )
    return found


def _about(leftover: Path) -> dict[str, Any]:
    try:
        found = json.loads((leftover / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _clock(home: Warehouse) -> list[str]:
    with home.reader() as connection:
        row = connection.execute("SELECT max(ended) FROM runs").fetchone()
    last: datetime | None = row[0] if row else None
    if last is None or last <= utc_now() + timedelta(minutes=1):
        return []
    return [
        f"the last run ended {last:%F %T} UTC, which this machine's clock has not reached; runs are stamped just after "
        "it until then, so that their order holds"
    ]
