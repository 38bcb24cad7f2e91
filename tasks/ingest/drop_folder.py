"""The drop folder: dumps that appear in it, and where they go once they have landed or were refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ssrem.errors import DumpError

DONE, REJECTED = "done", "rejected"
UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp", "~")
"""Endings under which programs write what is not complete yet."""

Stamp = tuple[tuple[str, int, int], ...]


def complete(folder: Path, settle: float, sleep: Callable[[float], None] = time.sleep) -> list[Path]:
    """Files and folders in the drop folder that are complete, by name: nothing in them changed for `settle` seconds.

    Hidden ones and those with an ending of UNFINISHED are not looked at. No clock is read but to wait, so one that
    jumps does no harm. Raises DumpError where there is no such folder.
    """
    before = _look(folder)
    if not before:
        return []
    sleep(settle)
    after = _look(folder)
    return [path for path, stamp in sorted(after.items()) if before.get(path) == stamp]


def file_away(path: Path, where: str, reason: str | None = None) -> Path:
    """Move what was looked at into the subfolder `where`, under a free name; the reason lies beside it.

    Returns where it is now. The reason is written first, so that nothing rejected lies there without one.
    """
    folder = path.parent / where
    folder.mkdir(exist_ok=True)
    target, number = folder / path.name, 1
    while target.exists() or _reason(target).exists():
        number += 1
        target = folder / f"{path.name}.{number}"
    if reason is not None:
        _reason(target).write_text(reason + "\n", encoding="utf-8")
    return path.rename(target)


def _reason(target: Path) -> Path:
    return target.with_name(f"{target.name}.reason.txt")


def _look(folder: Path) -> dict[Path, Stamp]:
    if not folder.is_dir():
        raise DumpError(f"{folder} is no folder; make it, or name another one with --inbox")
    found = {}
    for path in folder.iterdir():
        if path.name in (DONE, REJECTED) or path.name.startswith(".") or path.name.endswith(UNFINISHED):
            continue
        try:
            found[path] = _stamp(path)
        except FileNotFoundError:  # renamed while we looked: it is not complete
            continue
    return found


def _stamp(path: Path) -> Stamp:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(str(file), file.stat()) for file in files]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
