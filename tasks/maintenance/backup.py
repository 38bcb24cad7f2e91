"""Back up a published snapshot and the files it needs while other processes read and write; restore a backup."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import HomeError
from ssrem.files import check_regular
from ssrem.tasks.privacy.forgotten_list import FILE as FORGOTTEN_LIST
from ssrem.tasks.warehouse.catalog import DamagedCatalogError, OtherLayoutError, read_catalog
from ssrem.tasks.warehouse.files import delete, sync_path
from ssrem.tasks.warehouse.garbage import DRAFT, MARK, PIN, delete_backup, delete_ended_backups
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import find_damage
from ssrem.tasks.warehouse.partition import Partition
from ssrem.tasks.warehouse.snapshot import Snapshot

ARCHIVES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}

BESIDE = ("models", "encoders", "masked-lm", "reports", "judgments")
"""Folders that are backed up with the snapshot. Caches (`vectors`) and scratch are not: stages recreate them."""

MOVED = ("lake", *BESIDE, FORGOTTEN_LIST)
"""What a restore moves into the home folder before it writes the catalog."""

BEGUN = ".restoring"
"""File that exists while a restore is unfinished: the home folder's files of MOVED may be incomplete."""

OWN = {".lock", BEGUN, ".restore.tmp", "staging"}
"""Names that the home folder may contain before a backup is restored into it."""


@dataclass(frozen=True)
class Saved:
    """A backup or a restored home folder: its path, number of files and bytes."""

    path: Path
    files: int
    bytes: int


def back_up(home: Warehouse, target: Path) -> Saved:
    """Copy the published snapshot to `target`: a .tar, .tar.gz or .tgz file, or else a new folder.

    Runs may publish meanwhile: the snapshot at the start is copied, and its files are not deleted until the end. The
    target appears when it is complete. Raises HomeError if nothing is published, a file is missing, or the target
    exists.
    """
    if not home.catalog.exists():
        raise HomeError(f"nothing is published in {home.root}; there is nothing to back up")
    delete_ended_backups(home)
    mode = next((mode for suffix, mode in ARCHIVES.items() if target.name.endswith(suffix)), None)
    if target.exists() and (mode is None or not target.is_file()):
        raise HomeError(f"{target} exists; name another file or folder to back up to")
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _pinned(home, draft) as pin:
            files = list(_files(home, pin))
            size = sum(path.stat().st_size for path, _ in files)
            if mode:
                with tarfile.open(draft, mode) as archive:  # type: ignore[call-overload]
                    for path, name in files:
                        archive.add(path, name, recursive=False)
            for path, name in () if mode else files:
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, draft / name)
                sync_path(draft / name)
            sync_path(draft)
            draft.replace(target)
    except FileNotFoundError as error:
        raise HomeError(
            f"{error.filename} is missing, so a backup of {home.root} would be incomplete; see ssrem status"
        ) from None
    return Saved(target, len(files), size)


def restore(home: Warehouse, source: Path) -> Saved:
    """Restore a backup into the home folder, which must be new or empty.

    source: the backup; or the home folder itself, after it was moved, to write a catalog with its new path. Raises
    HomeError, and changes nothing, if the backup is incomplete or of another layout, or the home folder is in use.
    """
    if source.resolve() == home.root:
        with home.lock("restore"):
            partitions = home.partitions()
            home.write_catalog(partitions)
        size = [(home.root / partition.path).stat().st_size for partition in partitions]
        return Saved(home.root, len(size), sum(size))
    if not source.exists():
        raise HomeError(f"{source} does not exist; name what ssrem home backup wrote")
    draft, begun = home.root / ".restore.tmp", home.root / BEGUN
    with home.lock("restore"):
        published = home.snapshot().partitions
        if begun.exists() and not published:  # by a restore that was interrupted
            for name in MOVED:
                delete(home.root / name)
        taken = sorted({p.name for p in home.root.iterdir()} - OWN)
        not_empty = HomeError(
            f"{home.root} is not empty ({', '.join(taken[:1])} …); restore into another --home, then use that one"
        )
        if taken and not begun.exists():
            raise not_empty
        delete(draft)
        try:
            _unpack(source, draft)
            partitions = _checked(source, draft)
            if taken and published != partitions:
                raise not_empty
            begun.touch()
            for name in () if taken else MOVED:
                if (draft / name).exists():
                    (draft / name).rename(home.root / name)
            home.write_catalog(partitions)  # its views name the folder that they look into
            begun.unlink()
        finally:
            delete(draft)
        size = [p.stat().st_size for name in MOVED for p in _all_files(home.root / name)]
    return Saved(home.root, len(size), sum(size))


def _all_files(path: Path) -> list[Path]:
    return [p for p in (path, *path.rglob("*")) if p.is_file()]


@contextmanager
def _pinned(home: Warehouse, draft: Path) -> Iterator[Path]:
    """A copy of the catalog in the home folder, whose partitions are not deleted while this process lives.

    draft: deleted when the block ends or, if the process is killed, by a later run.
    """
    name = f"{PIN}{os.getpid()}-{secrets.token_hex(3)}"
    unlocked, pin = home.root / f".{name}.tmp", home.root / f"catalog.{name}.duckdb"
    try:
        with unlocked.open("xb") as handle:
            # Locked before it gets the name that garbage collection looks for.
            fcntl.flock(handle, fcntl.LOCK_EX)
            handle.write(home.catalog.read_bytes())
            handle.flush()
            pin.with_suffix(DRAFT).write_text(str(draft.absolute()), encoding="utf-8")
            unlocked.rename(pin)
            yield pin
    finally:
        delete_backup(pin)
        unlocked.unlink(missing_ok=True)


def _files(home: Warehouse, pin: Path) -> Iterator[tuple[Path, str]]:
    """Files to back up, and their names in the backup; the catalog first."""
    snapshot = read_catalog(pin)
    partitions = snapshot.partitions
    yield pin, "catalog.duckdb"
    for partition in partitions:
        yield home.root / partition.path, partition.path
    for folder in sorted({partition.folder for partition in partitions}):  # replicas
        for path in sorted((home.lake / folder).iterdir()):
            if path.suffix != ".parquet" and path.name != MARK:
                yield path, str(path.relative_to(home.root))
    if (home.root / FORGOTTEN_LIST).exists():
        yield home.root / FORGOTTEN_LIST, FORGOTTEN_LIST
    versions = _versions(home, snapshot)
    for beside in BESIDE:
        for path in sorted((home.root / beside).rglob("*")):
            name = path.relative_to(home.root)
            if path.is_symlink() or not path.is_file() or ".tmp" in path.suffixes:
                continue
            if beside != "models" or name.parts[1:3] in versions:
                yield path, str(name)


def _versions(home: Warehouse, snapshot: Snapshot) -> set[tuple[str, ...]]:
    """Name and version of the published evaluators; FileNotFoundError if the model of one is missing."""
    with home.reader(snapshot=snapshot) as connection:
        versions = set(connection.execute("SELECT evaluator, version::VARCHAR FROM evaluators").fetchall())
    for name, version in versions:
        (home.models / name / version).stat()
    return versions


def _unpack(source: Path, draft: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, draft)
        return
    draft.mkdir()
    try:
        check_regular(source)
        with tarfile.open(source) as archive:
            archive.extractall(draft, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise HomeError(f"{source} is damaged or no backup ({reason}); restore another one") from None


def _checked(source: Path, draft: Path) -> list[Partition]:
    """Partitions of an unpacked backup; HomeError if one is missing or damaged, or the layout is another one."""
    if not (draft / "catalog.duckdb").is_file():
        raise HomeError(f"{source} is no backup of a home folder: it has no catalog.duckdb")
    try:
        partitions = read_catalog(draft / "catalog.duckdb").partitions
    except OtherLayoutError as error:
        raise OtherLayoutError(source, error.layout) from None
    except DamagedCatalogError:
        raise HomeError(f"{source} is damaged: its catalog cannot be read; restore another backup") from None
    if damaged := find_damage(draft, partitions, deep=True):
        path = damaged[0].partition.path
        raise HomeError(f"{source} is damaged: {path} is missing or changed; restore another backup")
    return partitions
