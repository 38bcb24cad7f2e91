"""Files and folders that appear on the disk complete or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ssrem.files import check_regular, sha256


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
    """A file to write. When the block ends it becomes `path`, flushed to the disk; after an error it is deleted.

    Raises OSError as `check_target`, before the block runs.
    """
    check_target(path)
    draft = path.with_name(f".{path.name}.tmp")
    try:
        yield draft
        sync_path(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into. When the block ends it becomes `folder`, flushed to the disk; after an error it is
    deleted."""
    draft = folder.with_name(f"{folder.name}.tmp")
    delete(draft)
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in [*draft.rglob("*"), draft]:
            sync_path(path)
        delete(folder)
        draft.rename(folder)
        sync_path(folder.parent)
    finally:
        delete(draft)


def folder_damage(folder: Path, manifest: str, *, deep: bool = False) -> str | None:
    """What is missing from a saved folder or, if `deep`, was changed in it; None if nothing.

    manifest: name of the folder's JSON file, in which `sha256`, if present, maps each file name to its digest.
    """
    try:
        content = json.loads((folder / manifest).read_text(encoding="utf-8"))
        digests = content.get("sha256")
        for name, digest in digests.items() if isinstance(digests, dict) else ():
            if not (folder / name).is_file():
                return f"{folder / name} is missing"
            if deep and sha256(folder / name) != digest:
                return f"{folder / name} was changed"
    except FileNotFoundError:
        return f"{folder / manifest} is missing"
    except (OSError, ValueError, AttributeError) as error:
        return f"{folder / manifest} cannot be read ({error})"
    return None
