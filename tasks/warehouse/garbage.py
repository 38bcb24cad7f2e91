"""Garbage collection: delete what a home folder no longer needs, but nothing that a reader may still have open."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import HomeError
from ssrem.tasks.warehouse.catalog import read_catalog
from ssrem.tasks.warehouse.files import delete
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import Partition
from ssrem.tasks.warehouse.snapshot import drop_manifests, manifests

KEPT_RUNS = 5
"""How many of the newest run folders that no snapshot uses are kept, for readers of an older snapshot."""

KEPT_SECONDS = 600.0
"""Seconds for which a run folder is kept at least after it was first seen unused."""

KEPT_FAILURES = 20
"""For how many of the newest failed runs the rows that their gates refused are kept."""

STALE_AFTER = 30 * 86400.0
"""Seconds after which an interrupted training is not expected to be resumed."""

PIN = "backup-"
"""Catalogs of this name, `catalog.backup-….duckdb`, protect the files that a backup in progress still has to copy."""

DRAFT = ".draft"
"""Ending of the file beside such a catalog that holds the path of the backup's draft."""

MARK = ".unused"
"""File in a run folder: since its modification time, no snapshot has used the folder."""


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

    keep_runs: unused run folders that stay; keep_seconds: how long each unused folder stays at least; keep_failures:
    failed runs whose rows stay. Raises HomeError where another process writes.
    """
    with home.lock("prune"):
        home.snapshot()  # refuses a home folder of another layout
        runs = prune_runs(home, keep_runs, keep_seconds)
        failed = sorted(home.failures.glob("*"), key=_changed)
        old = failed[: max(0, len(failed) - keep_failures)]
        rest = _delete(home, [*old, *_models_without_version(home), *_stale_checkpoints(home)])
    return Pruned(runs.removed + rest.removed, runs.bytes + rest.bytes)


def prune_runs(home: Warehouse, keep_runs: int = KEPT_RUNS, keep_seconds: float = KEPT_SECONDS) -> Pruned:
    """Delete run folders that no snapshot has used for a while, except the newest few; call it under the lock.

    A folder is marked when it is first seen unused and deleted by a later call, so that readers of an older snapshot
    have at least `keep_seconds`. If the clock is set back, folders are only kept longer.
    """
    try:
        used = {partition.folder for partition in _used_partitions(home)}
    except HomeError:  # a catalog cannot be read, and what it needs must not be deleted
        return Pruned([], 0)
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
    # A manifest can replace a damaged catalog only as long as its files exist.
    drop_manifests(home.lake, keep=keep_runs + 1)
    named = {partition.folder for manifest in manifests(home.lake) for partition in manifest.partitions}
    newest_last = sorted(unused, key=lambda run: (since[run], run))
    old = newest_last[: max(0, len(newest_last) - keep_runs)]
    expired = (folder for run in old if now - since[run] >= keep_seconds for folder in unused[run])
    return _delete(home, (folder for folder in expired if folder.name not in named))


def _used_partitions(home: Warehouse) -> Iterator[Partition]:
    """Partitions of the published snapshot, and of those that are being backed up."""
    yield from home.partitions()
    delete_ended_backups(home)
    for catalog in home.root.glob(f"catalog.{PIN}*.duckdb"):
        try:
            yield from read_catalog(catalog).partitions
        except HomeError:
            if catalog.exists():  # else a backup has just ended
                raise


def delete_ended_backups(home: Warehouse) -> None:
    """Delete the files of backups whose process was killed."""
    for pin in home.root.glob(f"catalog.{PIN}*.duckdb"):
        if _abandoned(pin):
            delete_backup(pin)


def delete_backup(pin: Path) -> None:
    """Delete the files of a backup that has ended: the draft beside its target, and the pin."""
    note = pin.with_suffix(DRAFT)
    with suppress(OSError, UnicodeDecodeError):
        delete(Path(note.read_text(encoding="utf-8")))
    note.unlink(missing_ok=True)
    pin.unlink(missing_ok=True)


def _abandoned(pin: Path) -> bool:
    """Whether the process that wrote the pin has ended: the kernel then releases its lock on the file."""
    try:
        with pin.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        pass
    return True


def _marked(mark: Path, now: float) -> float:
    """Modification time of the mark, seconds; it is set to `now` where there is no mark, or one from the future."""
    with suppress(FileNotFoundError):
        since = mark.stat().st_mtime
        if since <= now:
            return since
    with suppress(OSError):  # on a full disk the folder stays until there is room for a mark
        mark.touch()
        os.utime(mark, (now, now))
    return now


def _models_without_version(home: Warehouse) -> list[Path]:
    """Folders of models without a published version: their run was killed before it published."""
    known = set(home.query("SELECT evaluator, version::VARCHAR FROM evaluators"))
    return [f for f in home.models.glob("*/*") if (f.parent.name, f.name) not in known]


def _stale_checkpoints(home: Warehouse) -> list[Path]:
    """Checkpoints of trainings interrupted long ago, and of published ones killed before they deleted them."""
    done = {key[:16] for (key,) in home.query("SELECT key FROM runs")}
    folders = (home.root / "checkpoints").glob("*")
    return [f for f in folders if f.name in done or time.time() - _changed(f) > STALE_AFTER]


def _changed(path: Path) -> float:
    """Latest modification time of anything in the folder, seconds."""
    return max(p.stat().st_mtime for p in (path, *path.rglob("*")))


def _delete(home: Warehouse, paths: Iterable[Path]) -> Pruned:
    removed, size = [], 0
    for path in paths:
        size += sum(f.stat().st_size for f in (path, *path.rglob("*")) if f.is_file())
        delete(path)
        removed.append(str(path.relative_to(home.root)))
    return Pruned(removed, size)
