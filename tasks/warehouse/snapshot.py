"""A snapshot: the parts that are published together, and its manifest, which outlives a damaged catalog.

The catalog says which snapshot is published. A manifest of the same parts lies in the lake, written before the catalog
is replaced; its number, not the clock, says which is the newest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

KEPT_SNAPSHOTS = 6
"""How many manifests stay, and with them every file that they name: the published one and those before it."""

_PATTERN = "snapshot=*.json"


@dataclass(frozen=True)
class Partition:
    """A published Parquet file: the part `key` of `table`, relative to the home folder.

    bytes, sha256: of the file as it was published; None where a version of ssrem published it that took neither.
    """

    table: str
    key: str
    path: str
    rows: int
    bytes: int | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, root: Path, table: str, key: str, path: str, rows: int, at: Path | None = None) -> Partition:
        """A part that was just written, with its size and digest; at: where it lies as long as it is a draft."""
        file = at or root / path
        return cls(table, key, path, rows, file.stat().st_size, file_digest(file))

    @property
    def folder(self) -> str:
        """The folder in the lake: `run=ID`, or `run=ID.WHAT` where it is not that of the run's own outputs."""
        return self.path.split("/")[1]

    @property
    def run(self) -> str:
        """Id of the run that made it; an upgrade writes its rows anew, but makes nothing."""
        return self.folder.removeprefix("run=").split(".")[0]

    @property
    def origin(self) -> str:
        """Its path as the run wrote it, whatever has rewritten it since."""
        return f"lake/run={self.run}/{Path(self.path).name}"


@dataclass(frozen=True)
class Snapshot:
    """The parts published together. number: rises with every publish; 0 before the first.

    damage: what is wrong with the catalog, where the snapshot was read from its manifest.
    """

    number: int
    parts: list[Partition]
    damage: str | None = None


@dataclass(frozen=True)
class Manifest:
    """A snapshot as the lake holds it, and the layout that it was written under."""

    number: int
    layout: str
    parts: list[Partition]


def write_manifest(lake: Path, layout: str, snapshot: Snapshot, published_at: datetime) -> Path:
    """Write the manifest of a snapshot, whole or not at all, and flush it to the disk; returns its path."""
    content: dict[str, Any] = {
        "layout": layout,
        "number": snapshot.number,
        "published_at": f"{published_at:%F %T}",
        "parts": [astuple(part) for part in snapshot.parts],
    }
    lake.mkdir(parents=True, exist_ok=True)
    path = lake / f"snapshot={snapshot.number:08}.json"
    draft = lake / f".{path.name}.tmp"
    try:
        with draft.open("w", encoding="utf-8") as handle:
            json.dump({**content, "sha256": _digest(content)}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(lake)
    return path


def manifests(lake: Path) -> list[Manifest]:
    """The manifests of the lake that are whole, newest first."""
    found = [_read(path) for path in sorted(lake.glob(_PATTERN), reverse=True)]
    return [manifest for manifest in found if manifest]


def newest_manifest(lake: Path) -> Manifest | None:
    """The newest whole manifest of the lake."""
    for path in sorted(lake.glob(_PATTERN), reverse=True):
        if manifest := _read(path):
            return manifest
    return None


def last_number(lake: Path) -> int:
    """The highest number that a manifest of the lake bears, 0 without one."""
    return max((_number(path) for path in lake.glob(_PATTERN)), default=0)


def drop_manifests(lake: Path, *, above: int | None = None, keep: int | None = None) -> None:
    """Remove those `above` a number, which were never published, or all but the newest to `keep`."""
    paths = sorted(lake.glob(_PATTERN))
    gone = paths[:-keep] if keep else [path for path in paths if above is not None and _number(path) > above]
    for path in gone:
        path.unlink(missing_ok=True)


def sync_path(path: Path) -> None:
    """Flush a file or folder to the disk, so that a rename after it never shows an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into; it becomes `folder`, flushed to the disk, when all is written, and goes if not."""
    draft = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in [*draft.rglob("*"), draft]:
            sync_path(path)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        sync_path(folder.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _read(path: Path) -> Manifest | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digest = content.pop("sha256")
        parts = [Partition(*values) for values in content["parts"]]
        found = Manifest(int(content["number"]), str(content["layout"]), parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if digest == _digest(content) else None


def _number(path: Path) -> int:
    digits = path.stem.partition("=")[2]
    return int(digits) if digits.isdecimal() else 0


def _digest(content: dict[str, Any]) -> str:
    plain: Sequence[Any] = sorted(json.loads(json.dumps(content)).items())
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
