"""Everything that a home folder holds, decoded for a search for somebody, or as digests to compare two homes by."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from ssrem.schemas import TABLES
from ssrem.tasks.warehouse.home import Warehouse

_SALTED = {"key", "parameters"}
"""Columns of the ledger that hold digests of forgotten people, under a salt that each home folder draws."""
_VOLATILE = {
    *("run_id", "run", "started", "ended", "landed_at"),
    *("trained_at", "decided_at", "promoted_at", "seconds"),
}
"""Columns that hold times and ids of runs."""


def content(home: Warehouse) -> dict[str, str]:
    """Table to a digest of its rows in any order, without columns of times and run ids; "" if it has no rows."""
    digests = {}
    with home.reader() as connection:
        for table in TABLES.values():
            left_out = _VOLATILE | (_SALTED if table.name == "runs" else set())
            names = ", ".join(f'"{c}"' for c in table.column_names if c not in left_out)
            rows = connection.execute(f"SELECT DISTINCT {names} FROM {table.name} ORDER BY ALL").fetchall()
            digests[table.name] = hashlib.sha256(repr(rows).encode()).hexdigest()[:12] if rows else ""
    return digests


def contents(root: Path) -> Iterator[tuple[Path, str]]:
    """Each file with its bytes and, where it is a table or a database, with its values as text."""
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        yield path, path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield path, _text(pq.read_table(path).to_pylist())
        elif path.suffix == ".duckdb":
            with duckdb.connect(":memory:") as connection:
                connection.execute(f"ATTACH '{path}' AS held (READ_ONLY)")
                tables = connection.execute("SELECT schema, name, sql FROM (SHOW ALL TABLES), duckdb_views()")
                yield path, _text(tables.fetchall())
                yield path, _text(connection.execute("FROM held.ssrem.partitions").fetchall())
        elif path.suffix == ".db":
            with closing(sqlite3.connect(path)) as database:
                yield path, "\n".join(database.iterdump())


def _text(value: object) -> str:
    """Strings and bytes as they are, wherever they stand."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return "\n".join(map(_text, value.values()))
    if isinstance(value, list | tuple):
        return "\n".join(map(_text, value))
    return str(value)


def occurrences(root: Path, strings: list[str]) -> list[tuple[str, Path]]:
    """Which of the strings stand where, whatever their case."""
    wanted = [(string, string.lower()) for string in strings]
    return [
        (string, path.relative_to(root))
        for path, text in contents(root)
        for lowered in [text.lower()]
        for string, low in wanted
        if low in lowered
    ]
