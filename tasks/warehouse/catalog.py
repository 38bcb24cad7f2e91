"""The catalog: the small DuckDB file of views that readers open, and the snapshot that it publishes."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import astuple, replace
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import HomeError, one_line
from ssrem.schemas import TABLES, VIEWS, fingerprint
from ssrem.sql import statement
from ssrem.tables.builder import quoted
from ssrem.tasks.warehouse.files import sync_path
from ssrem.tasks.warehouse.integrity import Damage, find_damage, refusing_select
from ssrem.tasks.warehouse.partition import KEY_FIELDS, Partition, PartitionKey
from ssrem.tasks.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    import duckdb

LAYOUT = f"2-{fingerprint()}"
"""Version of a home folder's files and of the tables' contracts; home folders of another layout are refused."""

READABLE_SINCE = "v1.0.0"
"""Oldest version of DuckDB whose shell and clients can open the catalog."""


class DamagedCatalogError(HomeError):
    """The catalog cannot be read; the newest manifest in the lake can replace it."""


class OtherLayoutError(HomeError):
    """A home folder or backup of another layout, which is refused."""

    def __init__(self, root: Path, layout: str) -> None:
        super().__init__(
            f"{root} was written by another version of ssrem (layout {layout}, this version reads {LAYOUT}); "
            "choose a new folder with --home, and land its dumps and human ratings there again"
        )
        self.layout = layout


def read_catalog(catalog: Path) -> Snapshot:
    """The snapshot that a catalog publishes; an unchanged file is read once, and never by the process that wrote it.

    Raises DamagedCatalogError if it cannot be read, OtherLayoutError if it has another layout.
    """
    try:
        file = catalog.stat()
    except OSError as error:
        raise DamagedCatalogError(f"{catalog} cannot be opened ({error.strerror})") from None
    key = _key(catalog, file)
    snapshot = _last_written.get(key) or _read(*key)
    return replace(snapshot, partitions=[*snapshot.partitions])


def _key(catalog: Path, file: os.stat_result) -> tuple[Path, int, int, int]:
    """The catalog and what changes whenever its file does."""
    return catalog, file.st_ino, file.st_mtime_ns, file.st_size


_last_written: dict[tuple[Path, int, int, int], Snapshot] = {}
"""The catalog that this process published last, and its snapshot as `read_catalog` returns it."""


def publish_catalog(draft: Path, catalog: Path, snapshot: Snapshot) -> None:
    """Replace the catalog by the draft, which holds this snapshot."""

    def nulls_last(partition: Partition) -> list[tuple[bool, Any]]:
        return [
            (value is None, value) for value in (partition.table, *astuple(partition.key), partition.path)
        ]

    written = replace(snapshot, partitions=sorted(snapshot.partitions, key=nulls_last))
    key = _key(catalog, draft.stat())
    draft.replace(catalog)
    _last_written.clear()
    _last_written[key] = written


@lru_cache(maxsize=4)
def _read(catalog: Path, *_file: int) -> Snapshot:
    """The snapshot of the catalog; `_file`, what changes with the file, is part of the cache's key alone."""
    import duckdb

    # Attached: connect() returns a database that this process has open already, even if its file was replaced since.
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(f"ATTACH '{quoted(catalog)}' AS catalog (READ_ONLY)")
            connection.execute("USE catalog")
            ((layout,),) = connection.execute("SELECT layout FROM ssrem.home").fetchall()
            if layout != LAYOUT:
                raise OtherLayoutError(catalog.parent, layout)
            ((number,),) = connection.execute("SELECT snapshot FROM ssrem.home").fetchall()
            rows = connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM ssrem.partitions ORDER BY ALL"
            ).fetchall()
        except (duckdb.Error, ValueError) as error:  # ValueError: a table without its only row
            raise DamagedCatalogError(f"{catalog} cannot be read ({one_line(error)})") from None
    partitions = [Partition(row[0], PartitionKey(*row[1:-4]), *row[-4:]) for row in rows]
    return Snapshot(number, layout, partitions)


_COLUMNS = {
    "table_name": "VARCHAR",
    **{name: "BIGINT" if name == "version" else "VARCHAR" for name in KEY_FIELDS},
    **{"path": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT", "sha256": "VARCHAR"},
}
"""Columns of the catalog's table of partitions."""


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """DuckDB as it writes catalogs, one for the process: to start it takes longer than to write one."""
    import duckdb

    return duckdb.connect(":memory:")


def draft_catalog(root: Path, snapshot: Snapshot, published_at: datetime) -> Path:
    """Write a catalog of the snapshot to a file beside the current one; returns its path. An error leaves no file."""
    draft = root / ".catalog.tmp"
    draft.unlink(missing_ok=True)
    partitions = snapshot.partitions
    try:
        with _engine().cursor() as connection:
            connection.execute(f"ATTACH '{quoted(draft)}' AS draft (STORAGE_VERSION '{READABLE_SINCE}')")
            connection.execute("USE draft")
            connection.begin()  # committed once: each commit is a write that waits for the disk
            connection.execute("CREATE SCHEMA ssrem")
            connection.execute(
                "CREATE TABLE ssrem.home (layout VARCHAR, published_at TIMESTAMP, snapshot BIGINT)"
            )
            connection.execute(
                "INSERT INTO ssrem.home VALUES (?, ?, ?)", [LAYOUT, published_at, snapshot.number]
            )
            columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
            connection.execute(f"CREATE TABLE ssrem.partitions ({columns})")
            if partitions:  # in one statement: row by row thousands of partitions take seconds
                rows = [(p.table, *astuple(p.key), p.path, p.rows, p.bytes, p.sha256) for p in partitions]
                values = ", ".join(f"unnest(?::{kind}[])" for kind in _COLUMNS.values())
                connection.execute(
                    f"INSERT INTO ssrem.partitions SELECT {values}",
                    [list(column) for column in zip(*rows, strict=True)],
                )
            create_views(connection, root, partitions, damaged=find_damage(root, partitions))
            connection.commit()
            connection.execute("CHECKPOINT")
            connection.execute("USE memory")
            connection.execute("DETACH draft")
        sync_path(draft)
    except BaseException:
        _engine.cache_clear()  # with what is attached to it
        for file in (draft, draft.with_name(f"{draft.name}.wal")):
            file.unlink(missing_ok=True)
        raise
    return draft


def names_in(query: str | None) -> set[str]:
    """The tables and views that a query needs, all if None. To create only these saves most of a short query's time."""
    if query is None or any(name in query for name in VIEWS):
        return {*TABLES, *VIEWS}
    return {name for name in TABLES if name in query}


def create_views(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    partitions: Sequence[Partition],
    schema: str = "main",
    damaged: Sequence[Damage] = (),
    names: Collection[str] | None = None,
) -> None:
    """Create in `schema` a view for each table over its partitions, without rows if it has none, and `VIEWS`.

    Querying a view over a `damaged` partition raises an error that names the damage. names: the views to create, all if
    None.
    """
    names = names_in(None) if names is None else names
    damage_of = {damage.partition.table: damage for damage in damaged}
    paths: dict[str, list[str]] = {}
    for partition in partitions:
        paths.setdefault(partition.table, []).append(quoted(root / partition.path))
    for table in (table for name, table in TABLES.items() if name in names):
        if table.name in damage_of:
            body = refusing_select([(c.name, c.type) for c in table.columns], damage_of[table.name])
        elif table.name in paths:
            files = ", ".join(f"'{path}'" for path in paths[table.name])
            columns = ", ".join(f'"{c.name}"' for c in table.columns)
            body = f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false)"
        else:
            body = table.empty_select()
        connection.execute(f'CREATE OR REPLACE VIEW {schema}."{table.name}" AS {body}')
    for view in (view for name, view in VIEWS.items() if name in names):
        body = statement(f"views/{view.name}")
        connection.execute(f'CREATE OR REPLACE VIEW {schema}."{view.name}" AS {body}')
