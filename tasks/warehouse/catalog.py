"""The catalog: the small file of views that readers open, and what it says of the snapshot that it publishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas import TABLES, fingerprint
from schemas.layouts import Shapes, from_json, shapes, to_json
from ssrem.errors import HomeError
from tasks.warehouse.integrity import Damage, damage, refusing_select
from tasks.warehouse.snapshot import Partition, Snapshot, sync_path

if TYPE_CHECKING:
    import duckdb

LAYOUT = f"1-{fingerprint()}"
"""Version of the home folder's files and of the tables' contracts; another one is refused, never guessed at."""


READABLE_SINCE = "v1.0.0"
"""First version of DuckDB whose shell and clients open the catalog; without it, only those as new as ours."""


class DamagedCatalogError(HomeError):
    """The catalog cannot be read; the lake may still tell what was published."""


def read_catalog(catalog: Path) -> Snapshot:
    """The snapshot that a catalog of this layout publishes; DamagedCatalogError where it cannot be read, HomeError
    where it is of another layout. A file that did not change since is not opened again."""
    try:
        file = catalog.stat()
    except OSError as error:
        raise DamagedCatalogError(f"{catalog} cannot be opened ({error.strerror})") from None
    known = _read(catalog, file.st_ino, file.st_mtime_ns, file.st_size)
    return replace(known, parts=[*known.parts])


@lru_cache(maxsize=4)
def _read(catalog: Path, *_file: int) -> Snapshot:
    with _opened(catalog) as connection:
        return _published(connection)


def draft_catalog(root: Path, snapshot: Snapshot, published_at: datetime) -> Path:
    """Write a catalog of the snapshot beside the one in use, whole or not at all; returns its path."""
    import duckdb

    fresh = root / ".catalog.tmp"
    fresh.unlink(missing_ok=True)
    parts = snapshot.parts
    try:
        with duckdb.connect(
            str(fresh), config={"storage_compatibility_version": READABLE_SINCE}
        ) as connection:
            connection.execute("CREATE SCHEMA ssrem")
            connection.execute("CREATE TABLE ssrem.contracts (shapes VARCHAR)")
            connection.execute("INSERT INTO ssrem.contracts VALUES (?)", [to_json(shapes(TABLES.values()))])
            connection.execute(
                "CREATE TABLE ssrem.home (layout VARCHAR, published_at TIMESTAMP, snapshot BIGINT)"
            )
            connection.execute(
                "INSERT INTO ssrem.home VALUES (?, ?, ?)", [LAYOUT, published_at, snapshot.number]
            )
            connection.execute(
                "CREATE TABLE ssrem.parts "
                "(table_name VARCHAR, key VARCHAR, path VARCHAR, rows BIGINT, bytes BIGINT, sha256 VARCHAR)"
            )
            if parts:  # at once: row by row thousands of parts take seconds
                connection.execute(
                    "INSERT INTO ssrem.parts SELECT unnest(?), unnest(?), unnest(?), unnest(?), "
                    "unnest(?::BIGINT[]), unnest(?::VARCHAR[])",
                    [list(column) for column in zip(*map(astuple, parts), strict=True)],
                )
            create_views(connection, root, parts, damaged=damage(root, parts))
        sync_path(fresh)
    except BaseException:
        for file in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            file.unlink(missing_ok=True)
        raise
    return fresh


def create_views(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    parts: list[Partition],
    schema: str = "main",
    damaged: Sequence[Damage] = (),
) -> None:
    """Create a view a table over its parts in `schema`; a table without parts is an empty view of its columns.

    A view over a part that is `damaged` tells so as soon as it is asked.
    """
    wrong = {one.part.table: one for one in damaged}
    for table in TABLES.values():
        paths = [str(root / p.path) for p in parts if p.table == table.name]
        if table.name in wrong:
            body = refusing_select([(c.name, c.type) for c in table.columns], wrong[table.name])
        elif paths:
            files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            columns = ", ".join(f'"{c.name}"' for c in table.columns)
            body = f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false)"
        else:
            body = table.empty_select()
        connection.execute(f'CREATE OR REPLACE VIEW {schema}."{table.name}" AS {body}')


def layout_of(catalog: Path) -> str:
    """Layout that a catalog is of; HomeError where it cannot be read or says none."""
    rows = _ask(catalog, "SELECT layout FROM ssrem.home")
    if not rows:
        raise HomeError(f"{catalog} has no layout; restore it from a backup or use another --home")
    return str(rows[0][0])


def read_parts(catalog: Path) -> list[Partition]:
    """Parts that a catalog lists, of whatever layout; HomeError where it cannot be read."""
    known = _ask(catalog, "SELECT column_name FROM duckdb_columns() WHERE table_name = 'parts'")
    digests = ", bytes, sha256" if ("sha256",) in known else ""
    return [
        Partition(*row)
        for row in _ask(catalog, f"SELECT table_name, key, path, rows{digests} FROM ssrem.parts ORDER BY ALL")
    ]


def read_shapes(catalog: Path) -> Shapes | None:
    """Shapes of the tables of a catalog; None where it does not say them, as the first ones."""
    known = _ask(catalog, "SELECT true FROM duckdb_tables() WHERE table_name = 'contracts'")
    return from_json(_ask(catalog, "SELECT shapes FROM ssrem.contracts")[0][0]) if known else None


def _ask(catalog: Path, query: str) -> list[tuple[Any, ...]]:
    import duckdb

    try:
        with duckdb.connect(":memory:") as connection:
            quoted = str(catalog).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS catalog (READ_ONLY)")
            connection.execute("USE catalog")
            return connection.execute(query).fetchall()
    except duckdb.Error as error:
        reason = f"{catalog} cannot be opened ({_first_line(error)})"
        raise HomeError(f"{reason}; restore it from a backup or use another --home") from None


@contextmanager
def _opened(catalog: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    try:
        # Attached: connect() would hand out a database that this process has open, even one replaced since.
        connection = duckdb.connect(":memory:")
        quoted = str(catalog).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS catalog (READ_ONLY)")
        connection.execute("USE catalog")
    except duckdb.Error as error:
        raise DamagedCatalogError(f"{catalog} cannot be opened ({_first_line(error)})") from None
    with connection:
        try:
            row = connection.execute("SELECT layout FROM ssrem.home").fetchone()
        except duckdb.Error:
            row = None
        if row is None:
            raise DamagedCatalogError(f"{catalog} has no layout that ssrem wrote")
        if row[0] != LAYOUT:
            raise other_layout(catalog.parent, f"layout {row[0]}")
        try:
            yield connection
        except duckdb.Error as error:
            raise DamagedCatalogError(f"{catalog} cannot be read ({_first_line(error)})") from None


def _published(connection: duckdb.DuckDBPyConnection) -> Snapshot:
    cursor = connection.execute("SELECT * FROM ssrem.parts ORDER BY ALL")
    names = ["table" if d[0] == "table_name" else d[0] for d in cursor.description or []]
    parts = [Partition(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
    cursor = connection.execute("SELECT * FROM ssrem.home")
    row = dict(zip([d[0] for d in cursor.description or []], cursor.fetchone() or (), strict=True))
    return Snapshot(row.get("snapshot", 0), parts)  # the catalogs of older versions count nothing


def other_layout(root: Path, found: str) -> HomeError:
    """What to say of a home folder of another layout."""
    return HomeError(
        f"{root} has {found}, this version of ssrem reads layout {LAYOUT}; run ssrem upgrade, or use another --home"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]
