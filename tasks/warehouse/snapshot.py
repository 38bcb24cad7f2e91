"""Snapshots: the partitions that are published together, and the manifests that can replace a damaged catalog.

The catalog holds the published snapshot. A manifest of the same partitions is written to the lake before the catalog is
replaced; the newest one is that with the highest number, whatever the clock says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ssrem.tasks.warehouse.files import whole_file
from ssrem.tasks.warehouse.partition import Partition

KEPT_SNAPSHOTS = 6
"""How many of the newest manifests are kept, and with them every file that they name."""

_PATTERN = "snapshot=*.json"


@dataclass(frozen=True)
class Snapshot:
    """The partitions published together. number: rises with every publish; 0 before the first.

    layout: of the home folder. damage: what is wrong with the catalog, if the snapshot was read from a manifest.
    """

    number: int
    layout: str
    partitions: list[Partition]
    damage: str | None = None


def write_manifest(lake: Path, snapshot: Snapshot, published_at: datetime) -> Path:
    """Write the manifest of a snapshot, complete or not at all, and flush it to the disk; returns its path."""
    content: dict[str, Any] = {
        "layout": snapshot.layout,
        "number": snapshot.number,
        "published_at": f"{published_at:%F %T}",
        "partitions": [partition.to_json() for partition in snapshot.partitions],
    }
    lake.mkdir(parents=True, exist_ok=True)
    path = lake / f"snapshot={snapshot.number:08}.json"
    with whole_file(path) as draft:
        draft.write_text(json.dumps({**content, "sha256": _digest(content)}), encoding="utf-8")
    return path


def manifests(lake: Path) -> Iterator[Snapshot]:
    """The snapshots of the intact manifests in the lake, newest first."""
    for path in sorted(lake.glob(_PATTERN), reverse=True):
        if snapshot := _read(path):
            yield snapshot


def last_number(lake: Path) -> int:
    """The highest number of a manifest in the lake; 0 if there is none."""
    return max((_number(path) for path in lake.glob(_PATTERN)), default=0)


def drop_manifests(lake: Path, *, above: int | None = None, keep: int | None = None) -> None:
    """Delete manifests with a number `above` this one, which were never published, or all but the newest `keep`."""
    paths = sorted(lake.glob(_PATTERN))
    dropped = (
        paths[:-keep] if keep else [path for path in paths if above is not None and _number(path) > above]
    )
    for path in dropped:
        path.unlink(missing_ok=True)


def _read(path: Path) -> Snapshot | None:
    """The snapshot of a manifest; None if the file is damaged. One of another layout may lack its partitions."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digest = content.pop("sha256")
        partitions = [Partition.from_json(one) for one in content.get("partitions", ())]
        snapshot = Snapshot(int(content["number"]), str(content["layout"]), partitions)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return snapshot if digest == _digest(content) else None


def _number(path: Path) -> int:
    digits = path.stem.removeprefix("snapshot=")
    return int(digits) if digits.isdecimal() else 0


def _digest(content: dict[str, Any]) -> str:
    plain = sorted(json.loads(json.dumps(content)).items())
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
