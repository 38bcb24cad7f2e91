"""The catalog: the small DuckDB file that lists the published Parquet files and has a view for each table.

Replacing the file publishes a snapshot: all tables change at once. The views in it are for DuckDB clients and stages,
and hold absolute paths; readers make views from the list, so that a home folder can be moved and copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ssrem.errors import HomeError, one_line
from ssrem.files import check_regular, sha256
from ssrem.schemas import LANDED, TABLES, VIEWS, fingerprint
from ssrem.sql import statement
from ssrem.tables.builder import quoted
from ssrem.tasks.warehouse.files import whole_file

if TYPE_CHECKING:
    import duckdb

LAYOUT = f"2-{fingerprint()}"
"""Version of a home folder's files and of the tables' contracts; home folders of another layout are refused."""

OTHERWISE = "restore it from a backup copy, or choose a new folder with --home and land the dumps again"


@dataclass(frozen=True)
class PartitionKey:
    """The values that all rows of a partition share; a field is None where the table is not divided by it.

    corpus: the landed corpus that the rows are of; dataset: the annotated set, or what a study is of; evaluator and
    version: what trained, scored or was measured; generator and split: of negatives; study: the study's name. The
    tables `runs` and `check_results` have one partition, whose key has no field.
    """

    corpus: str | None = None
    dataset: str | None = None
    evaluator: str | None = None
    version: int | None = None
    generator: str | None = None
    split: str | None = None
    study: str | None = None

    def values(self) -> dict[str, str | int]:
        """The fields that are not None, by name: the form in which a key is stored."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.values().items()) or "all rows"


Address = tuple[str, PartitionKey]
"""A table and the key of one of its partitions; a snapshot has at most one file for each."""


@dataclass(frozen=True)
class Partition:
    """A published Parquet file with the rows of `table` under `key`.

    path: relative to the home folder. rows: their number. bytes, sha256: of the file as it was published.
    """

    table: str
    key: PartitionKey
    path: str
    rows: int
    bytes: int
    sha256: str

    @property
    def address(self) -> Address:
        """The table and the key."""
        return self.table, self.key

    @property
    def folder(self) -> str:
        """The folder in the lake: `run=ID`, or `run=ID.ledger` for the tables `runs` and `check_results`."""
        return self.path.split("/")[1]

    @property
    def run(self) -> str:
        """Id of the run that wrote it."""
        return self.folder.removeprefix("run=").split(".")[0]


def of_turns(partitions: Iterable[Partition], corpus: str) -> list[Address]:
    """Addresses of the partitions computed from a corpus's turns: its tables, negatives, scores and studies."""
    return [
        p.address
        for p in partitions
        if (p.table not in LANDED and p.key.corpus == corpus)
        or (p.table == "studies" and p.key.dataset == corpus)
    ]


@dataclass(frozen=True)
class Snapshot:
    """The partitions published together. number: rises with every publish, from 0. root: home folder of the catalog's
    views; empty if some were left out, since their files were damaged."""

    number: int
    partitions: list[Partition]
    root: str = ""


_COLUMNS = {
    "table_name": "VARCHAR",
    **{one.name: "BIGINT" if one.name == "version" else "VARCHAR" for one in fields(PartitionKey)},
    **{"path": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT", "sha256": "VARCHAR"},
}
"""Columns of the catalog's table of partitions."""


def new_engine() -> duckdb.DuckDBPyConnection:
    """A new in-memory DuckDB, whose settings do not affect other readers."""
    import duckdb

    connection = duckdb.connect(":memory:")
    # By default DuckDB keeps in memory whatever it read, and syncs each write; `whole_file` syncs a draft once.
    connection.execute("SET enable_external_file_cache = false; SET fsync_mode = 'NONE'")
    return connection


engine = cache(new_engine)
"""The DuckDB that all readers and writers of catalogs share through cursors, since starting one takes 15 ms."""

_attaching = Lock()  # DuckDB does not attach the same file twice


@contextmanager
def _attached(catalog: Path, option: str = "READ_ONLY") -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor with the file attached as database `catalog`; connect() would not notice that the file was replaced."""
    with _attaching, engine().cursor() as cursor:
        cursor.execute(f"ATTACH '{quoted(catalog)}' AS catalog ({option})")
        try:
            yield cursor
            cursor.execute("USE memory")
            cursor.execute("DETACH catalog")
        except BaseException:
            engine.cache_clear()  # after an error such as a full disk, it may keep the file attached
            raise


def read_catalog(catalog: Path) -> Snapshot:
    """The snapshot that a catalog publishes; HomeError if it cannot be read or has another layout.

    A stage reads it many times, so the last snapshot read is kept until the file changes.
    """
    import duckdb

    try:
        found = catalog.stat()
        return _snapshot(catalog, (found.st_ino, found.st_mtime_ns, found.st_size))
    except OSError as error:
        raise HomeError(f"{catalog} {error.strerror or error}; {OTHERWISE}") from None
    except (duckdb.Error, ValueError) as error:  # ValueError: `home` does not have one row
        way_out = OTHERWISE
        if "Could not set lock" in str(error):
            way_out = "a program has it open for writing; close that, or let it open the file read-only"
        raise HomeError(f"{catalog} cannot be read ({one_line(error)}); {way_out}") from None


@lru_cache(1)
def _snapshot(catalog: Path, stamp: tuple[int, int, int]) -> Snapshot:
    """The cached part of `read_catalog`. stamp: inode, modification time and size, by which a change is noticed."""
    check_regular(catalog)
    with _attached(catalog) as cursor:
        ((layout, *more),) = cursor.execute("FROM catalog.ssrem.home").fetchall()
        if layout != LAYOUT:
            raise HomeError(
                f"{catalog.parent} was written by another version of ssrem (layout {layout}, this version reads "
                f"{LAYOUT}); choose a new folder with --home, and land its dumps and human ratings there again"
            )
        query = f"SELECT {', '.join(_COLUMNS)} FROM catalog.ssrem.partitions ORDER BY ALL"
        rows = cursor.execute(query).fetchall()
    partitions = [Partition(row[0], PartitionKey(*row[1:-4]), *row[-4:]) for row in rows]
    _, number, root = more
    return Snapshot(number, partitions, root)


def write_catalog(catalog: Path, snapshot: Snapshot, published_at: datetime) -> None:
    """Replace the catalog by one of this snapshot; after an error the old one stays."""
    home = "layout VARCHAR, published_at TIMESTAMP, snapshot BIGINT, root VARCHAR"
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    rows = [(p.table, *astuple(p.key), p.path, p.rows, p.bytes, p.sha256) for p in snapshot.partitions]
    # v1.0.0 is then the oldest version of DuckDB that can open the catalog.
    with whole_file(catalog) as draft, _attached(draft, "STORAGE_VERSION 'v1.0.0'") as cursor:
        cursor.execute("USE catalog")  # so that views that query other views find them
        cursor.execute(f"CREATE SCHEMA ssrem; CREATE TABLE ssrem.home ({home})")
        cursor.execute(f"CREATE TABLE ssrem.partitions ({columns})")
        if rows:  # in one statement, since thousands of partitions take seconds row by row
            values = ", ".join(f"unnest(?::{kind}[])" for kind in _COLUMNS.values())
            insert = f"INSERT INTO ssrem.partitions SELECT {values}"
            cursor.execute(insert, [list(column) for column in zip(*rows, strict=True)])
        complete = create_views(cursor, catalog.parent, snapshot.partitions, "VIEW ")
        row = [LAYOUT, published_at, snapshot.number, str(catalog.parent) if complete else ""]
        cursor.execute("INSERT INTO ssrem.home VALUES (?, ?, ?, ?)", row)
        cursor.execute("CHECKPOINT")


def create_views(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    partitions: Sequence[Partition],
    into: str,
    query: str | None = None,
) -> bool:
    """Create a view for each table over its partitions, without rows if it has none, and the views of `VIEWS`.

    into: `TEMP VIEW `, or `VIEW ` with a schema. query: create only the views that it may need, since all take 50 ms
    and most queries less. Views of damaged files are left out, in which case it returns False; `damage_behind` explains
    the error of a query for one.
    """
    import duckdb

    tables: dict[str, list[Partition]] = {name: [] for name in TABLES}
    for partition in partitions:
        tables[partition.table].append(partition)
    every, complete = query is None or any(name in query for name in VIEWS), True
    for name in (*TABLES, *VIEWS):
        if not every and name not in str(query):
            continue
        if own := tables.get(name, []):
            files = ", ".join(f"'{quoted(root / partition.path)}'" for partition in own)
            columns = ", ".join(f'"{column}"' for column in TABLES[name].column_names)
            body = f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false)"
        else:
            body = statement(f"views/{name}") if name in VIEWS else TABLES[name].empty_select()
        try:
            connection.execute(f'CREATE OR REPLACE {into}"{name}" AS {body}')
        except duckdb.Error:
            if complete if name in VIEWS else not find_damage(root, own, deep=True):
                raise
            complete = False
    return complete


def made_by(table: str, key: PartitionKey) -> str | None:
    """The command that makes a partition anew; None if it holds what no command can make again."""
    if table in ("runs", "check_results", "evaluators", "learning_curves"):
        return None
    if table in LANDED:
        return f"ssrem ingest SOURCE --name {key.corpus} --replace"
    if table == "negatives":
        return f"ssrem negatives {key.generator} --corpus {key.corpus} --split {key.split}"
    if table == "studies":
        return f"ssrem study {key.study} --of {key.dataset} --evaluator {key.evaluator}"
    if key.dataset is not None:
        of_one = f" --evaluator {key.evaluator}, version {key.version} being in use" if key.evaluator else ""
        return f"ssrem correlate FILE{of_one}, FILE being that of {key.dataset},"
    if key.evaluator is not None:
        in_use = f", version {key.version} being in use,"
        return f"ssrem score-corpus --corpus {key.corpus} --evaluator {key.evaluator}{in_use}"
    return f"ssrem tables --corpus {key.corpus}, with the options that it had,"


def find_damage(root: Path, partitions: Iterable[Partition], *, deep: bool = False) -> dict[Partition, str]:
    """Map each damaged partition to a line that says what is wrong and what brings its rows back. Damaged is a file
    that is missing, cannot be read, has another size or, with `deep`, other content than was published."""
    damaged = {}
    for partition in partitions:
        path, what, first = root / partition.path, "", ""
        try:
            if (size := path.stat().st_size) != partition.bytes:
                what = f"has {size:,} of {partition.bytes:,} bytes"
            elif deep and sha256(path) != partition.sha256:
                # A stage takes a file of the right size for undamaged, and would not make it anew.
                what, first = "was changed after it was published", "delete it, then "
        except FileNotFoundError:
            what = "is missing"
        except OSError as error:
            what = f"cannot be read ({error.strerror or error})"
        if what:
            way_out = "restore it from a backup copy of the home folder; nothing else holds these rows"
            if command := made_by(partition.table, partition.key):
                way_out = f"{first}run {command} to make it anew"
            name = f"{partition.path} (table {partition.table}, {partition.key})"
            damaged[partition] = f"{name} {what}; {way_out}"
    return damaged


def damage_behind(root: Path, partitions: Sequence[Partition], error: BaseException) -> HomeError | None:
    """The HomeError that names the damaged file, if one caused an error of DuckDB; None otherwise."""
    import duckdb

    kind = type(error).__name__.removesuffix("Exception")
    of_queries = {"Binder", "Parser", "Syntax", "InvalidType", "Conversion", "OutOfMemory", "Interrupt"}
    if not isinstance(error, duckdb.Error) or kind in of_queries:
        return None
    if kind == "Catalog":  # the unknown name is that of a view that was left out, or any other
        words = set(re.findall(r"\w+", str(error)))
        partitions = [p for p in partitions if p.table in words or words & VIEWS.keys()]
    damaged = find_damage(root, partitions) or find_damage(root, partitions, deep=True)
    return HomeError(next(iter(damaged.values()))) if damaged else None
