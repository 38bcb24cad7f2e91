"""Files and folders that appear on the disk complete or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync_path(path: Path) -> None:
    """Flush a file or folder to the disk, so that a rename after it never shows an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into. When the block ends it becomes `folder`, flushed to the disk; after an error it goes."""
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
