"""The drop folder: detects complete dumps in it, and moves them away after they landed or were rejected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ssrem.errors import DumpError

DONE, REJECTED = "done", "rejected"
UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp", "~")
"""Name endings under which programs write incomplete files."""

Stamp = tuple[tuple[str, int, int], ...]


class RejectedError(DumpError):
    """Dumps of the drop folder were rejected. outcomes: what became of the others, by file."""

    def __init__(self, message: str, outcomes: Mapping[str, str]) -> None:
        super().__init__(message)
        self.outcomes = dict(outcomes)

    def __reduce__(self) -> tuple[type[RejectedError], tuple[str, dict[str, str]]]:
        return type(self), (str(self), self.outcomes)


def complete(folder: Path, settle: float, sleep: Callable[[float], None] = time.sleep) -> list[Path]:
    """Complete files and folders in the drop folder, by name: nothing in them changed for `settle` seconds.

    Hidden ones and those with an ending of UNFINISHED are ignored. Changes are detected by comparing before and after
    the wait, so changes of the system clock do no harm. DumpError if the folder does not exist.
    """
    before = _look(folder)
    if not before:
        return []
    sleep(settle)
    after = _look(folder)
    return [path for path, stamp in sorted(after.items()) if before.get(path) == stamp]


def file_away(path: Path, where: str, reason: str | None = None) -> Path:
    """Move a dump into the subfolder `where` under a free name, with the reason in a file beside it.

    Returns its new path. The reason is written first, so that every rejected dump has one.
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
        raise DumpError(f"{folder} is not a folder; create it, or name another one with --inbox")
    stamps = {}
    for path in folder.iterdir():
        if path.name in (DONE, REJECTED) or path.name.startswith(".") or path.name.endswith(UNFINISHED):
            continue
        try:
            stamps[path] = _stamp(path)
        except FileNotFoundError:  # renamed meanwhile, so not complete
            continue
    return stamps


def _stamp(path: Path) -> Stamp:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(str(file), file.stat()) for file in files]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
