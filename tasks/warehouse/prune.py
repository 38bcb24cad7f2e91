"""What a home folder no longer needs, what killed runs left in it, and what `ssrem status` finds wrong with it."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.errors import HomeError, say
from ssrem.tasks.warehouse.catalog import find_damage
from ssrem.tasks.warehouse.files import delete, model_damage
from ssrem.tasks.warehouse.home import Warehouse

KEPT_RUNS, KEPT_SECONDS = 5, 600.0
"""How many of the newest unused runs are kept, and for how many seconds each at least, for readers of old snapshots."""

KEPT_FAILURES, STALE_AFTER = 20, 30 * 86400.0
"""Failed runs whose refused rows are kept; seconds after which an interrupted training counts as abandoned."""

MODELS = ("encoders", "masked-lm", "lm")
"""Folders of encoders and language models that were trained in this home folder; a stage that needs one retrains it."""

_DRAFTS = (
    *(".catalog.duckdb.tmp*", "lake/.run=*.tmp", ".forgotten.json.tmp", "vectors/*/*.tmp"),
    *(f"{folder}/*.tmp" for folder in MODELS),
)
"""Patterns of files and folders, relative to the home folder, whose writing was not completed."""


@dataclass(frozen=True)
class Pruned:
    """What was deleted: paths relative to the home folder, and their size in bytes."""

    removed: list[str]
    bytes: int


def prune(
    home: Warehouse,
    keep_runs: int = KEPT_RUNS,
    keep_failures: int = KEPT_FAILURES,
    *,
    keep_seconds: float = KEPT_SECONDS,
) -> Pruned:
    """Delete old run folders, rows that failed gates refused, models of no version, and checkpoints of old trainings.

    keep_runs, keep_seconds: as in `unused_runs`; keep_failures: how many of the newest failed runs keep their rows.
    Raises HomeError if another process is writing.
    """
    with home.lock("prune"):
        clean_up(home)
        unused = unused_runs(home, keep_runs, keep_seconds)
        failed = sorted(home.failures.glob("*"), key=_changed)
        unused += failed[: max(0, len(failed) - keep_failures)]
        # A model without a published version comes from a run that was killed before it published.
        known = set(home.query("SELECT evaluator, version::VARCHAR FROM evaluators"))
        unused += [f for f in home.models.glob("*/*") if (f.parent.name, f.name) not in known]
        # Published trainings have no use for their checkpoints; those interrupted long ago are not resumed.
        done = {key[:16] for (key,) in home.query("SELECT key FROM runs")}
        checkpoints = (home.root / "checkpoints").glob("*")
        unused += [f for f in checkpoints if f.name in done or time.time() - _changed(f) > STALE_AFTER]
        files = (f for path in unused for f in (path, *path.rglob("*")) if f.is_file())
        pruned = Pruned([str(p.relative_to(home.root)) for p in unused], sum(f.stat().st_size for f in files))
        for path in unused:
            delete(path)
    return pruned


def unused_runs(
    home: Warehouse, keep_runs: int = KEPT_RUNS, keep_seconds: float = KEPT_SECONDS
) -> list[Path]:
    """Folders of runs that the published snapshot does not use, except the `keep_runs` newest unused runs and those
    unused for less than `keep_seconds`.

    A folder's modification time says since when it is unused: the publish that replaces it sets it.
    """
    used = {partition.folder for partition in home.partitions()}
    folders: dict[str, list[Path]] = defaultdict(list)
    for folder in home.lake.glob("run=*"):
        if folder.name not in used:
            folders[folder.name.split(".")[0]].append(folder)
    since = {run: max(folder.stat().st_mtime for folder in of_run) for run, of_run in folders.items()}
    newest_last = sorted(since, key=lambda run: (since[run], run))
    old = newest_last[: max(0, len(newest_last) - keep_runs)]
    return [folder for run in old if time.time() - since[run] >= keep_seconds for folder in folders[run]]


def _changed(path: Path) -> float:
    """Latest modification time of anything in the folder, seconds."""
    return max(p.stat().st_mtime for p in (path, *path.rglob("*")))


def leftovers(home: Warehouse) -> list[Path]:
    """Files and folders that killed runs left behind; while a run is in progress, also its own scratch and drafts."""
    return [path for pattern in ("staging/*", *_DRAFTS) for path in home.root.glob(pattern)]


def clean_up(home: Warehouse) -> None:
    """Delete what killed runs left behind and print a line on stderr for each; call it under the lock.

    The catalog of a home folder that was moved or copied is written anew, so that its views read the files here, and
    so is one without the views of damaged files, which may have been restored.
    """
    home = Warehouse(home.root)  # with the files that a stage makes anew
    snapshot = home.snapshot()
    published = {partition.run for partition in snapshot.partitions}
    for scratch in sorted(home.staging.glob("*")):
        run = _about(scratch)
        done = "it had published" if scratch.name in published else "it had published nothing"
        name = f"{run['stage']} of {run['started']} UTC"
        say(f"an earlier run was interrupted ({name}); {done} and was cleaned up")
        if scratch.name not in published:  # its folders in the lake belong to no snapshot
            for folder in home.lake.glob(f"run={scratch.name}*"):
                delete(folder)
    for path in leftovers(home):
        delete(path)
    if snapshot.partitions and snapshot.root != str(home.root):
        home.write_catalog(snapshot.partitions)


def _about(scratch: Path) -> dict[str, Any]:
    """What a run wrote about itself into its scratch folder: stage, started, pid."""
    about = {"stage": "a run", "started": "an unknown time", "pid": None}
    with suppress(OSError, ValueError):  # it was killed before it had written it
        about |= json.loads((scratch / "run.json").read_text())
    return about


def health(home: Warehouse, *, deep: bool = False) -> list[str]:
    """Findings for an operator, a line each: unfinished runs, damaged files and how to get them back, failed gates.

    deep: compare every published file, and the models in use, with their digests.
    """
    says, lines = "{what}, begun {since} UTC, is running: process {pid} on {host}", []
    if writer := home.writer():
        lines.append(says.format_map(writer))
    for run in map(_about, sorted(home.staging.glob("*"))):
        if writer is None or run["pid"] != writer["pid"]:
            lines.append(
                f"{run['stage']}, begun {run['started']} UTC, was interrupted; nothing that was published is lost, and "
                "the next run cleans up"
            )
    damaged = find_damage(home.root, home.partitions(), deep=deep)
    lines += [f"damaged: {line}" for line in damaged.values()]
    with suppress(HomeError):  # a line above reports it if the tables that these read are damaged
        for name, version in home.in_use():
            if damage := model_damage(home.models, name, version, deep=deep):
                lines.append(
                    f"{name} version {version} is in use, but {damage}; restore it from a backup copy, or delete its "
                    f"folder and run ssrem train {name}"
                )
    failed = sorted(home.failures.glob("*"))
    return lines + [f"a gate failed in run {f.name}; its rows are in {f}" for f in failed]
