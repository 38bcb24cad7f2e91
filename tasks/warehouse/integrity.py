"""Integrity: detect published files that are missing or changed, and raise errors that name them.

A partition counts as intact while its size and modification time are the same as when its content last matched its
digest (`.verified.json`); otherwise its content is compared again. `deep` compares the content of all partitions, which
also detects changes by a failing disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import HomeError
from ssrem.evaluators import MANIFEST
from ssrem.files import sha256
from ssrem.tasks.warehouse.files import folder_damage
from ssrem.tasks.warehouse.partition import Partition

_VERIFIED = ".verified.json"
_MARK = "damaged partition: "


@dataclass(frozen=True)
class Damage:
    """A partition whose file is missing, truncated or changed, and what is wrong with it."""

    partition: Partition
    what: str

    def __str__(self) -> str:
        return f"{self.partition} {self.what}"


def find_damage(root: Path, partitions: Iterable[Partition], *, deep: bool = False) -> list[Damage]:
    """Those of the partitions that are missing, truncated or changed."""
    verified = {} if deep else _verified(root)
    checked = ((p, _defect(root / p.path, p, verified.get(p.path))) for p in partitions)
    return [Damage(partition, defect) for partition, defect in checked if defect]


def remember_intact(
    root: Path, partitions: Sequence[Partition], fresh: Sequence[Partition] | None = None
) -> None:
    """Record which partitions of a snapshot are intact, so that they are not compared again until they change.

    fresh: those that were just written or compared, all if None. Of the others, only those recorded before that have
    not changed stay on record.
    """
    before, stats = _verified(root), {}
    paths = {partition.path for partition in (partitions if fresh is None else fresh)}
    for path in (partition.path for partition in partitions):
        with suppress(OSError):
            stat = _stat(root / path)
            if path in paths or stat == before.get(path):
                stats[path] = stat
    if stats == before:
        return
    draft = root / f"{_VERIFIED}.{os.getpid()}.tmp"
    with suppress(OSError):  # the record only saves time
        draft.write_text(json.dumps(stats))
        draft.replace(root / _VERIFIED)
    draft.unlink(missing_ok=True)


def forget_verified(root: Path) -> None:
    """Make the next writing run compare every partition with its digest again."""
    with suppress(OSError):
        (root / _VERIFIED).unlink(missing_ok=True)


def damage_behind(root: Path, partitions: Sequence[Partition], error: Exception) -> HomeError | None:
    """The HomeError that names the damaged partition, if one caused `error`; None otherwise."""
    import duckdb

    text = str(error)
    if _MARK in text:
        return HomeError(" ".join(text.split(_MARK, 1)[1].split()))
    # These errors come from the query itself; any other error of DuckDB may come from a damaged file.
    own = (
        *(duckdb.ProgrammingError, duckdb.ConversionException),
        *(duckdb.OutOfMemoryException, duckdb.InterruptException),
    )
    if isinstance(error, own) and not isinstance(error, duckdb.InvalidInputException):
        return None
    if not isinstance(error, duckdb.Error) or not (damaged := find_damage(root, partitions, deep=True)):
        return None
    forget_verified(root)
    return HomeError(_way_out(damaged[0]))


def _way_out(damage: Damage) -> str:
    return f"{damage}; any run that writes, such as ssrem tables, repairs it, and ssrem status says how far"


def refusing_select(columns: Sequence[tuple[str, str]], damage: Damage) -> str:
    """A SELECT of the columns (name, type) that fails with an error naming the damage as soon as it is queried."""
    says = "'" + (_MARK + _way_out(damage)).replace("'", "''") + "'"
    # The error is both in the columns and in WHERE, so that queries without columns, or with a filter, fail as well.
    values = ", ".join(f'error({says})::{kind} AS "{name}"' for name, kind in columns)
    return f"SELECT {values} FROM range(1) WHERE error({says}) IS NULL"


def _defect(path: Path, partition: Partition, verified: list[int] | None) -> str | None:
    try:
        stat = _stat(path)
        if stat[0] != partition.bytes:
            return f"has {stat[0]:,} of {partition.bytes:,} bytes"
        if stat == verified:
            return None
        return None if sha256(path) == partition.sha256 else "was changed after it was published"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"


def _verified(root: Path) -> dict[str, list[int]]:
    """Path of each partition that matched its digest, to its size (bytes) and modification time (ns) then."""
    try:
        content = json.loads((root / _VERIFIED).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _stat(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def model_damage(models: Path, name: str, version: int, *, deep: bool = False) -> str | None:
    """What is missing from the model of an evaluator's version or, if `deep`, was changed in it; None if nothing."""
    return folder_damage(models / name / str(version), MANIFEST, deep=deep)
