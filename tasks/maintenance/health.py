"""Health of a home folder for `ssrem status`: running and interrupted runs, damage, and logged incidents."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from ssrem.errors import HomeError
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import incidents
from ssrem.tasks.warehouse.integrity import find_damage, forget_verified, model_damage

SHOWN = 10
"""How many incidents are shown, the newest."""


def health(home: Warehouse, *, deep: bool = False) -> list[str]:
    """Findings for an operator, a line each; `deep` compares every published file with its digest."""
    lines = _runs(home)
    snapshot = home.snapshot()
    if snapshot.damage:
        lines.append(
            f"{snapshot.damage}; snapshot {snapshot.number} is shown, from its manifest in the lake; the next run that "
            "writes makes a new catalog"
        )
    damaged = find_damage(home.root, snapshot.partitions, deep=deep)
    if damaged and deep:
        forget_verified(home.root)
    lines += [
        f"damaged: {damage}; queries that do not need it still work; the next run that writes, such as ssrem tables, "
        "repairs it"
        for damage in damaged
    ]
    with suppress(HomeError):  # a line above reports it if the tables that these read are damaged
        lines += _models(home, deep)
        lines += _clock(home)
    lines += [f"a gate failed in run {f.name}; its rows are in {f}" for f in sorted(home.failures.glob("*"))]
    logged = incidents(home.root)
    if len(logged) > SHOWN:
        lines.append(f"{len(logged) - SHOWN} earlier incidents: {home.root / 'incidents.jsonl'}")
    return lines + [f"{at} UTC: {text}" for at, text in logged[-SHOWN:]]


def _runs(home: Warehouse) -> list[str]:
    """The run that holds the lock, and interrupted ones."""
    writer, lines = home.writer(), []
    if writer is not None:
        who = f"process {writer.get('pid', 'unknown')} on {writer.get('host', 'unknown')}"
        lines.append(
            f"{writer.get('what', 'a run')}, begun {writer.get('since', 'earlier')} UTC, is running: {who}"
        )
    for scratch in sorted(home.staging.glob("*")):
        run = _about(scratch)
        if writer is None or run.get("pid") != writer.get("pid"):
            lines.append(
                f"{run.get('stage', 'a run')}, begun {run.get('started', 'earlier')} UTC, was interrupted; nothing "
                "that was published is lost, and the next run cleans up"
            )
    return lines


def _about(scratch: Path) -> dict[str, Any]:
    try:
        run = json.loads((scratch / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    return run if isinstance(run, dict) else {}


def _models(home: Warehouse, deep: bool) -> list[str]:
    """Versions in use whose model is incomplete or, if `deep`, was changed."""
    versions = home.query("SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL")
    damages = (
        (name, version, model_damage(home.models, name, version, deep=deep)) for name, version in versions
    )
    return [
        f"{name} version {version} is in use, but {damage}; restore it from a backup, or train it again"
        for name, version, damage in damages
        if damage
    ]


def _clock(home: Warehouse) -> list[str]:
    """A line if the last run ended after what the clock shows now."""
    ((last,),) = home.query("SELECT max(ended) FROM runs")
    if last is None or last <= utc_now() + timedelta(minutes=1):
        return []
    return [
        f"the last run ended {last:%F %T} UTC, later than this machine's clock shows; until then new runs are dated "
        "just after it, so that they stay in order"
    ]
