"""What all formats with columns ask of their header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ssrem.errors import DumpError
from ssrem.readers.layout import Layout

_NEEDED = ("conversation", "speaker", "text")
_MOST_LISTED = 30


def check_columns(path: Path, columns: Sequence[str], mapping: Mapping[str, tuple[str, ...]]) -> None:
    """DumpError on a column twice, a mapped column that is not there, or a needed field without one."""
    there = ", ".join(columns[:_MOST_LISTED]) + (", …" if len(columns) > _MOST_LISTED else "")
    twice = next((name for i, name in enumerate(columns) if name in columns[:i]), None)
    if twice is not None:
        raise DumpError(f"{path}: the column {twice!r} is there twice; rename one")
    absent = [column for parts in mapping.values() for column in parts if column not in columns]
    if absent:
        raise DumpError(
            f"{path}: --map names the column {absent[0]!r}, which is not there; the columns are {there}"
        )
    found = Layout(mapping).plan(tuple(columns)).sources
    missing = [field for field in _NEEDED if field not in found]
    if missing:
        raise DumpError(
            f"{path}: no column is known as {' or '.join(missing)}; the columns are {there}; "
            f"say which is which with --map, for example --map {missing[0]}=COLUMN"
        )
