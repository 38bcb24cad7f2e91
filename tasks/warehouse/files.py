"""Writes files and folders that appear on the disk complete or not at all, and finds damage in saved folders."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ssrem.errors import EvaluatorError, HomeError
from ssrem.evaluators import MANIFEST
from ssrem.files import check_regular, read_json, sha256


def sync_path(path: Path) -> None:
    """Flush a file or folder to the disk, so that a rename after it never shows an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete(path: Path) -> None:
    """Delete a file, or a folder with its content; does nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Raise OSError if `path` cannot become a file: it is a folder, pipe or device, or its folder does not exist."""
    check_regular(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which becomes `path` if the block ends without an error; OSError as `check_target`."""
    check_target(path)
    draft = path.with_name(f".{path.name}.tmp")
    draft.unlink(missing_ok=True)
    try:
        yield draft
        sync_path(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a draft folder, which is synced and becomes `folder` when the block ends; after an error it is deleted."""
    draft = folder.with_name(f"{folder.name}.tmp")
    delete(draft)
    draft.mkdir(parents=True)
    try:
        yield draft
        move_into_place(draft, folder)
    finally:
        delete(draft)


def move_into_place(draft: Path, folder: Path) -> None:
    """Sync a complete draft to the disk and rename it to `folder`; a folder that was there is deleted."""
    for path in (draft, *draft.rglob("*")):
        sync_path(path)
    delete(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft.rename(folder)
    sync_path(folder.parent)


def folder_damage(folder: Path, manifest: str, *, deep: bool = False) -> str | None:
    """A line on the file of a saved folder that is missing or, if `deep`, was changed; None if there is none. manifest:
    name of the folder's JSON file, whose object `sha256` maps the names of its files to their digests."""
    try:
        digests = read_json(folder / manifest, ()).get("sha256")
    except EvaluatorError as error:
        return str(error)
    for name, digest in digests.items() if isinstance(digests, dict) else ():
        if not (folder / name).is_file():
            return f"{folder / name} is missing"
        if deep and sha256(folder / name) != digest:
            return f"{folder / name} was changed"
    return None


def model_damage(models: Path, name: str, version: int, *, deep: bool = False) -> str | None:
    """A line on the file of a version's model that is missing or, if `deep`, was changed; None if there is none."""
    return folder_damage(models / name / str(version), MANIFEST, deep=deep)


def out_of_room(root: Path, error: BaseException) -> HomeError | None:
    """The HomeError that explains a full disk under the home folder `root`, or too little memory; None for others."""
    text = str(error)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    if full or "No space left" in text or "File too large" in text:
        lack, way_out = f"no room left on the disk of {root}", "free some space and run again"
    elif "Out of Memory" in text or "could not allocate" in text.lower():
        lack, way_out = "DuckDB ran out of memory", "raise --memory-limit or lower --threads"
    else:
        return None
    return HomeError(f"{lack}; nothing was published; {way_out}")
