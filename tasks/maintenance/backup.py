"""Back up and restore: a published snapshot with all that it needs, copied while others read and write."""

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
from typing import Any

import duckdb

from ssrem.errors import HomeError
from tasks.privacy.forgotten_list import FILE as FORGOTTEN_LIST
from tasks.warehouse.catalog import DamagedCatalogError, OtherLayoutError, read_catalog
from tasks.warehouse.files import sync_path
from tasks.warehouse.garbage import MARK, PIN
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import Partition

ARCHIVES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}

BESIDE = ("models", "encoders", "masked-lm", "reports")
"""Folders that come with the snapshot. Caches (`vectors`) and scratch do not: they are made again where needed."""

OWN = {".lock", ".prefect", ".restore.tmp", "staging"}
"""What may lie in a folder that something is restored into."""


@dataclass(frozen=True)
class Saved:
    """A backup or what was restored from one: where it lies, files and bytes."""

    path: Path
    files: int
    bytes: int


def back_up(home: Warehouse, target: Path) -> Saved:
    """Copy the published snapshot to `target`: a .tar, .tar.gz or .tgz file, or else a new folder.

    Runs may publish meanwhile: the copy is of the snapshot at the start, whose files stay as long as this takes. The
    target appears when it is complete. HomeError where nothing is published, a file is missing, or target is taken.
    """
    if not home.catalog.exists():
        raise HomeError(f"nothing is published in {home.root}; there is nothing to back up")
    mode = next((mode for suffix, mode in ARCHIVES.items() if target.name.endswith(suffix)), None)
    if target.exists() and (mode is None or target.is_dir()):
        raise HomeError(f"{target} is there already; name another file or folder to back up to")
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    size = files = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _pinned(home) as pin:
            if mode:
                with tarfile.open(draft, mode) as archive:  # type: ignore[call-overload]
                    for path, name in _files(home, pin):
                        archive.add(path, name, recursive=False)
                        size, files = size + path.stat().st_size, files + 1
            else:
                for path, name in _files(home, pin):
                    (draft / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, draft / name)
                    sync_path(draft / name)
                    size, files = size + path.stat().st_size, files + 1
        sync_path(draft)
        draft.replace(target)
    except FileNotFoundError as error:
        raise HomeError(
            f"{error.filename} is missing, so {home.root} cannot be backed up whole; see ssrem status"
        ) from None
    finally:
        if draft.is_dir():
            shutil.rmtree(draft)
        draft.unlink(missing_ok=True)
    return Saved(target, files, size)


def restore(home: Warehouse, source: Path) -> Saved:
    """Put what `back_up` made into the home folder, which must be new or empty, whatever its path was.

    source: the backup; the home folder itself where that was moved, so that its catalog names the new place.
    HomeError where the backup is not whole or the home folder is in use; it is then left as it was.
    """
    if source.resolve() == home.root:
        with home.lock("restore"):
            parts = home.partitions()
            home.write_catalog(parts)
        return Saved(home.root, len(parts), sum((home.root / p.path).stat().st_size for p in parts))
    if not source.exists():
        raise HomeError(f"{source} does not exist; name what ssrem home backup wrote")
    with home.lock("restore"):
        if taken := sorted({p.name for p in home.root.iterdir()} - OWN):
            raise HomeError(
                f"{home.root} is not empty ({taken[0]} …); restore into another --home, then use that one"
            )
        draft = home.root / ".restore.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _unpack(source, draft)
            parts = _whole(source, draft)
            size = [p.stat().st_size for p in draft.rglob("*") if p.is_file()]
            for folder in ("lake", *BESIDE, FORGOTTEN_LIST):
                if (draft / folder).exists():
                    (draft / folder).rename(home.root / folder)
            home.write_catalog(parts)  # its views name the folder that they look into
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return Saved(home.root, len(size), sum(size))


@contextmanager
def _pinned(home: Warehouse) -> Iterator[Path]:
    """A copy of the catalog in the home folder, whose parts are not collected while this process lives."""
    name = f"{PIN}{os.getpid()}-{secrets.token_hex(3)}"
    draft, pin = home.root / f".{name}.tmp", home.root / f"catalog.{name}.duckdb"
    try:
        with draft.open("xb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # before it has the name by which whoever collects finds it
            handle.write(home.catalog.read_bytes())
            handle.flush()
            draft.rename(pin)
            yield pin
    finally:
        for path in (draft, pin):
            path.unlink(missing_ok=True)


def _files(home: Warehouse, pin: Path) -> Iterator[tuple[Path, str]]:
    """Files of the snapshot, and their names in the backup; the catalog first."""
    parts = read_catalog(pin).partitions
    yield pin, "catalog.duckdb"
    for part in parts:
        yield home.root / part.path, part.path
    for folder in sorted({part.folder for part in parts}):  # what describes the parts
        for path in sorted((home.lake / folder).iterdir()):
            if path.suffix != ".parquet" and path.name != MARK:
                yield path, str(path.relative_to(home.root))
    if (home.root / FORGOTTEN_LIST).exists():
        yield home.root / FORGOTTEN_LIST, FORGOTTEN_LIST
    versions = _versions(home, parts)
    for beside in BESIDE:
        for path in sorted((home.root / beside).rglob("*")):
            name = path.relative_to(home.root)
            if path.is_symlink() or not path.is_file() or ".tmp" in path.suffixes:
                continue
            if beside != "models" or name.parts[1:3] in versions:
                yield path, str(name)


def _versions(home: Warehouse, parts: list[Partition]) -> set[tuple[str, ...]]:
    """Name and version of the evaluators that the parts list; HomeError where the model of one is missing."""
    found = set()
    for part in parts:
        if part.table == "evaluators":
            query = "SELECT evaluator, version::VARCHAR FROM read_parquet(?, hive_partitioning = false)"
            found |= set(_rows(query, home.root / part.path))
    for name, version in found:
        (home.models / name / version).stat()
    return found


def _unpack(source: Path, draft: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, draft)
        return
    draft.mkdir()
    try:
        with tarfile.open(source) as archive:
            archive.extractall(draft, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise HomeError(f"{source} is no whole backup ({reason}); take another one") from None


def _whole(source: Path, draft: Path) -> list[Partition]:
    """Parts of an unpacked backup; HomeError where one is missing or cannot be read."""
    if not (draft / "catalog.duckdb").is_file():
        raise HomeError(f"{source} is no backup of a home folder: it has no catalog.duckdb")
    try:
        parts = read_catalog(draft / "catalog.duckdb").partitions
    except OtherLayoutError as error:
        raise OtherLayoutError(source, error.layout) from None
    except DamagedCatalogError:
        raise HomeError(f"{source} is no whole backup: its catalog is damaged; take another") from None
    for part in parts:
        try:
            query = "SELECT count(*) FROM read_parquet(?, hive_partitioning = false)"
            rows = _rows(query, draft / part.path)
        except duckdb.Error:
            rows = []
        if rows != [(part.rows,)]:
            raise HomeError(f"{source} is no whole backup: {part.path} is missing or damaged; take another")
    return parts


def _rows(query: str, path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(":memory:") as connection:
        return connection.execute(query, [str(path)]).fetchall()
