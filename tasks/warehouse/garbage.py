"""Collect: what a home folder no longer needs goes, but not under the feet of a reader."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ssrem.errors import HomeError
from tasks.warehouse.catalog import read_catalog
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import Partition
from tasks.warehouse.snapshot import drop_manifests, manifests

KEPT_RUNS = 5
"""Run folders that the snapshot no longer uses are kept for readers with an older one: the last few at least …"""

KEPT_SECONDS = 600.0
"""… and each for as long after it was first seen unused."""

KEPT_FAILURES = 20
"""What failed gates saw is kept of the last few runs that failed."""

STALE_AFTER = 30 * 86400.0
"""Seconds after which a training that was broken off is not expected to be taken up again."""

PIN = "backup-"
"""Catalogs of this name, `catalog.backup-….duckdb`, keep what a backup in progress still has to copy."""

MARK = ".unused"
"""File in a run folder: since its time of change, no snapshot has used the folder."""


@dataclass(frozen=True)
class Collected:
    """What was removed: paths relative to the home folder, and the bytes that they took."""

    removed: list[str] = field(default_factory=list)
    bytes: int = 0


def collect_old(
    home: Warehouse,
    keep_runs: int = KEPT_RUNS,
    keep_failures: int = KEPT_FAILURES,
    *,
    keep_seconds: float = KEPT_SECONDS,
) -> Collected:
    """Remove old run folders, what failed gates saw, models that no version names and trainings given up.

    keep_runs: run folders kept although no snapshot uses them; keep_seconds: how long each of them is kept at least;
    keep_failures: failed runs whose rows are kept. Raises HomeError where another process writes.
    """
    with home.lock("collect"):
        home.check()
        gone = collect(home, keep_runs, keep_seconds)
        failed = sorted(home.failures.glob("*"), key=_changed)
        old = failed[: max(0, len(failed) - keep_failures)]
        found = [*old, *_models_without_version(home), *_stale_checkpoints(home)]
        rest = _remove(home, found)
    return Collected(gone.removed + rest.removed, gone.bytes + rest.bytes)


def collect(home: Warehouse, keep_runs: int = KEPT_RUNS, keep_seconds: float = KEPT_SECONDS) -> Collected:
    """Remove run folders that no snapshot has used for a while, but for the newest few; to be called under the lock.

    A folder is marked when it is first seen unused and goes at a later call, so that whoever opened the snapshot
    before has `keep_seconds` at least. A clock that was set back only makes it stay longer.
    """
    try:
        used = {p.folder for p in _used_partitions(home)}
    except HomeError:  # what such a catalog keeps cannot be told, so nothing goes
        return Collected()
    now = time.time()
    unused: dict[str, list[Path]] = {}
    since: dict[str, float] = {}
    for folder in home.lake.glob("run=*"):
        mark = folder / MARK
        if folder.name in used:
            with suppress(OSError):
                mark.unlink(missing_ok=True)
            continue
        run = folder.name.split(".")[0]
        unused.setdefault(run, []).append(folder)
        since[run] = max(since.get(run, 0.0), _marked(mark, now))
    # A manifest counts for recovery only as long as its files are there.
    drop_manifests(home.lake, keep=keep_runs + 1)
    named = {partition.folder for m in manifests(home.lake) for partition in m.partitions}
    newest_last = sorted(unused, key=lambda run: (since[run], run))
    old = newest_last[: max(0, len(newest_last) - keep_runs)]
    gone = (run for run in old if now - since[run] >= keep_seconds)
    return _remove(home, (folder for run in gone for folder in unused[run] if folder.name not in named))


def _used_partitions(home: Warehouse) -> Iterator[Partition]:
    """Partitions of the published snapshot, and of those that are being backed up."""
    yield from home.partitions()
    for catalog in home.root.glob(f"catalog.{PIN}*.duckdb"):
        if _abandoned(catalog):
            catalog.unlink(missing_ok=True)
            continue
        try:
            yield from read_catalog(catalog).partitions
        except HomeError:
            if catalog.exists():  # else a backup has just ended
                raise


def _abandoned(pin: Path) -> bool:
    """Whether the process that set the pin has ended: the kernel then drops its lock."""
    try:
        with pin.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        pass
    return True


def _marked(mark: Path, now: float) -> float:
    """When the mark was set, seconds; set now where there is none, or one from the future."""
    with suppress(FileNotFoundError):
        since = mark.stat().st_mtime
        if since <= now:
            return since
    with suppress(OSError):  # on a full disk the folder stays until there is room for a mark
        mark.touch()
        os.utime(mark, (now, now))
    return now


def _models_without_version(home: Warehouse) -> list[Path]:
    """Folders of models that were moved in by a run that died before it published."""
    with home.reader() as connection:
        known = set(connection.execute("SELECT evaluator, version::VARCHAR FROM evaluators").fetchall())
    return [f for f in home.models.glob("*/*") if (f.parent.name, f.name) not in known]


def _stale_checkpoints(home: Warehouse) -> list[Path]:
    """Trainings broken off long ago, and those that were finished by a run that died before it could tidy up."""
    with home.reader() as connection:
        done = {key[:16] for (key,) in connection.execute("SELECT key FROM runs").fetchall()}
    folders = (home.root / "checkpoints").glob("*")
    return [f for f in folders if f.name in done or time.time() - _changed(f) > STALE_AFTER]


def _changed(path: Path) -> float:
    """When anything in the folder changed last, seconds."""
    return max(p.stat().st_mtime for p in (path, *path.rglob("*")))


def _remove(home: Warehouse, paths: Iterable[Path]) -> Collected:
    removed, size = [], 0
    for path in paths:
        size += sum(f.stat().st_size for f in (path, *path.rglob("*")) if f.is_file())
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed.append(str(path.relative_to(home.root)))
    return Collected(removed, size)
