"""Translate errors caused by a full disk, too little memory or a damaged file into one line."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ssrem.errors import HomeError, SsremError
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import damage_behind
from ssrem.tasks.warehouse.partition import Partition


@contextmanager
def translated_errors(home: Warehouse) -> Iterator[None]:
    """Raise HomeError for out-of-disk and out-of-memory errors and for damaged partitions; other errors as they are."""
    try:
        yield
    except SsremError as error:
        if isinstance(error.__cause__, OSError) and (full := out_of_room(home, error.__cause__)):
            raise full from error
        raise
    except Exception as error:
        partitions: list[Partition] = []
        with suppress(HomeError):
            partitions = home.partitions()
        raise out_of_room(home, error) or damage_behind(home.root, partitions, error) or error from None


def out_of_room(home: Warehouse, error: Exception) -> HomeError | None:
    """Translate out-of-disk and out-of-memory errors; None for others."""
    text = str(error)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    if full or "No space left" in text or "File too large" in text:
        return HomeError(
            f"no room left on the disk of {home.root}; nothing was published; free some space and run again"
        )
    if "Out of Memory" in text or "could not allocate" in text.lower():
        return HomeError(
            "DuckDB ran out of memory; nothing was published; raise --memory-limit or lower --threads"
        )
    return None
