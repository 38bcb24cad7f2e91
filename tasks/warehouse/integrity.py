"""Whether published files still are what was published, and what to say where they are not.

A part is taken for whole while its size and time of change are those at which its content was last compared with its
digest (`.verified.json`); any other is read through. `deep` reads all of them: it finds what a failing disk changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import HomeError
from tasks.warehouse.snapshot import Partition, file_digest

_VERIFIED = ".verified.json"
_MARK = "damaged part: "


@dataclass(frozen=True)
class Damage:
    """A published part that is not as it was published, and what is wrong with it."""

    part: Partition
    what: str

    def __str__(self) -> str:
        return f"{self.part.path} (part {self.part.key!r} of {self.part.table}) {self.what}"


def damage(root: Path, parts: Iterable[Partition], *, deep: bool = False) -> list[Damage]:
    """Those of the parts that are missing, cut short or changed."""
    known = {} if deep else _verified(root)
    found = ((part, _wrong(root / part.path, part, known.get(part.path))) for part in parts)
    return [Damage(part, what) for part, what in found if what]


def remember(root: Path, parts: Sequence[Partition]) -> None:
    """Note the parts, found whole, so that they need not be read through again until they change."""
    stats = {}
    for part in parts:
        with suppress(OSError):
            stats[part.path] = _stat(root / part.path)
    if stats == _verified(root):
        return
    draft = root / f"{_VERIFIED}.{os.getpid()}.tmp"
    with suppress(OSError):  # it only saves time
        draft.write_text(json.dumps(stats))
        draft.replace(root / _VERIFIED)
    draft.unlink(missing_ok=True)


def remember_published(root: Path, parts: Sequence[Partition], fresh: Sequence[Partition]) -> None:
    """The same for a snapshot of which only the `fresh` parts were just written and compared."""
    known = _verified(root)
    paths = {part.path for part in fresh}
    remember(root, [p for p in parts if p.path in paths or _same(root / p.path, known.get(p.path))])


def forget(root: Path) -> None:
    """Have every part read through again by the next run that writes."""
    with suppress(OSError):
        (root / _VERIFIED).unlink(missing_ok=True)


def blamed(root: Path, parts: Sequence[Partition], error: Exception) -> HomeError | None:
    """The error of a query or stage as what is really wrong, where that is a damaged part."""
    import duckdb

    text = str(error)
    if _MARK in text:
        return HomeError(" ".join(text.split(_MARK, 1)[1].split()))
    # The query's own; any other error may come from a file that is not as it was written.
    own = (
        duckdb.ProgrammingError,
        duckdb.ConversionException,
        duckdb.OutOfMemoryException,
        duckdb.InterruptException,
    )
    if isinstance(error, own) and not isinstance(error, duckdb.InvalidInputException):
        return None
    if not isinstance(error, duckdb.Error) or not (found := damage(root, parts, deep=True)):
        return None
    forget(root)
    return HomeError(told(found[0]))


def told(found: Damage) -> str:
    """One line: the damaged part, and the way out."""
    return f"{found}; any run that writes, such as ssrem tables, repairs it, and ssrem status says how far"


def refusing_select(columns: Sequence[tuple[str, str]], found: Damage) -> str:
    """A SELECT of the columns (name, type) that tells of the damage as soon as it is asked for rows."""
    says = "'" + (_MARK + told(found)).replace("'", "''") + "'"
    # Both in the columns and in WHERE: a query that needs no column, or filters on one, is refused, too.
    values = ", ".join(f'error({says})::{kind} AS "{name}"' for name, kind in columns)
    return f"SELECT {values} FROM range(1) WHERE error({says}) IS NULL"


def _wrong(path: Path, part: Partition, known: list[int] | None) -> str | None:
    try:
        stat = _stat(path)
        if part.bytes is not None and stat[0] != part.bytes:
            return f"has {stat[0]:,} of {part.bytes:,} bytes"
        if stat == known:
            return None
        if part.sha256 is None:
            return _wrong_footer(path, part)
        return None if file_digest(path) == part.sha256 else "was changed after it was published"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"


def _wrong_footer(path: Path, part: Partition) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError):
        return "is no whole Parquet file"
    return None if rows == part.rows else f"has {rows:,} of {part.rows:,} rows"


def _verified(root: Path) -> dict[str, list[int]]:
    try:
        found = json.loads((root / _VERIFIED).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _same(path: Path, known: list[int] | None) -> bool:
    try:
        return known is not None and _stat(path) == known
    except OSError:
        return False


def _stat(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
