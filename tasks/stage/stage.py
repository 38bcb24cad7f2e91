"""A stage: read the published snapshot, build tables in scratch, pass the gate, publish whole or not at all."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas import TABLES
from sql import statement
from ssrem import __version__
from ssrem.errors import GateError, HomeError
from tasks.stage.ledger import already_done, run_key
from tasks.warehouse.catalog import create_views
from tasks.warehouse.clock import utc_now
from tasks.warehouse.error_translation import in_plain_words
from tasks.warehouse.garbage import collect
from tasks.warehouse.home import Warehouse
from tasks.warehouse.integrity import damage, remember_published
from tasks.warehouse.interrupted_runs import clean_up
from tasks.warehouse.replicas import keep_twice
from tasks.warehouse.snapshot import Partition, sync_path

if TYPE_CHECKING:
    import duckdb

    from schemas.contract import Table

MEMORY_LIMITS = {"ingest": "1200MB"}
DEFAULT_MEMORY_LIMIT = "2GB"
"""What DuckDB takes before it spills, by stage: with 5 M turns ingest then stays under 2 GB, speaker tables under 3."""


Inputs = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Resources:
    """What DuckDB may take: memory before it spills to disk (None: by stage), and threads (None: all cores)."""

    memory_limit: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Output:
    """A part to publish: the staged rows of `table` that meet `where` (all, if None) become the part `key`."""

    table: str
    key: str
    where: str | None = None


@dataclass
class Stage:
    """A run of a stage in progress. `connection` sees staged tables first, then the published ones."""

    home: Warehouse
    name: str
    run_id: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]
    started: datetime
    connection: duckdb.DuckDBPyConnection
    scratch: Path
    parts: list[Partition]
    staged: list[str] = field(default_factory=list)

    def done(self) -> bool:
        """Whether this very run has published before; asked again under the lock, as another may have just now."""
        return already_done(self.home, self.name, self.parameters, self.inputs)

    def create(self, table: str, sql_name: str | None = None, **parameters: Any) -> None:
        """Create the staged table by its contract and fill it from the statement; a scratch table has no contract."""
        if table in TABLES:
            self.connection.execute(TABLES[table].ddl())
            self.staged.append(table)
            if sql_name is not None:
                self.append(table, sql_name, **parameters)
        else:
            text = statement(sql_name or table)
            self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS {text}", bound(text, parameters))

    def append(self, table: str, sql_name: str, **parameters: Any) -> None:
        """Insert what the statement selects into a staged table."""
        text = statement(sql_name)
        self.connection.execute(f"INSERT INTO {table} BY NAME {text}", bound(text, parameters))

    def create_from_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Create the staged table by its contract and fill it with `rows`, a mapping of column to value each."""
        import polars as pl

        self.create(table)
        if rows:
            names = TABLES[table].column_names
            frame = pl.DataFrame([{n: row[n] for n in names} for row in rows], infer_schema_length=None)
            self.connection.register("rows_to_insert", frame.to_arrow())
            self.connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM rows_to_insert")
            self.connection.unregister("rows_to_insert")

    def gate(self) -> None:
        """Check every staged table against its contract and the stage's SQL checks.

        Raises GateError where one fails: nothing is published then, and what failed lies under `failures/`.
        """
        from tasks.stage.gate import check_tables, offending_rows

        results = check_tables(self.connection, self.name, self.run_id, self.staged)
        self.create_from_rows("check_results", [r.row for r in results])
        failed = [r for r in results if not r.row["passed"]]
        if not failed:
            return
        folder = self.home.failures / self.run_id
        folder.mkdir(parents=True, exist_ok=True)
        self.connection.execute(f"COPY check_results TO '{_quoted(folder / 'check_results.csv')}' (HEADER)")
        for number, result in enumerate(failed, 1):
            result.save_rows(self.connection, folder / f"{number}-{result.row['table_name']}.csv")
        first = failed[0]
        rows = offending_rows(self.connection, first)
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise GateError(
            f"gate of {self.name}: table {first.row['table_name']}: expected {first.row['expectation']}, broken by "
            f"{first.row['unexpected']:,} rows, such as {rows}{more}; nothing was published; all rows: {folder}",
            folder,
        )

    def publish(
        self,
        outputs: Sequence[Output],
        *,
        folders: Mapping[Path, Path] | None = None,
        retired: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Write the parts as Parquet into a new run folder and replace the catalog in one step.

        `folders` are moved first (from, to): what a published row points at, such as a model, is there before it.
        `retired` (table, key) are parts that the new ones make untrue; they leave the snapshot.
        """
        run = {
            "run_id": self.run_id,
            "stage": self.name,
            "key": run_key(self.name, self.parameters, self.inputs),
            "parameters": json.dumps(self.parameters, sort_keys=True, default=str),
            "inputs": json.dumps(self.inputs, sort_keys=True),
            "outputs": json.dumps([[o.table, o.key] for o in outputs]),
            "started": self.started,
            "ended": max(utc_now(), self.started),
            "state": "published",
            "ssrem_version": __version__,
        }
        self.create_from_rows("runs", [run])
        ledger = [Output(name, "all") for name in ("runs", "check_results") if name in self.staged]
        for output in ledger:  # one growing part, so that no old run's folder is kept for its two rows
            self.connection.execute(
                f"INSERT INTO main.{output.table} BY NAME SELECT * FROM published.{output.table}"
            )
        # The ledger lies apart: the next run writes it anew, and a folder of outputs may stay for years.
        drafts = {name: self.home.lake / f".{name}.tmp" for name in self._folders}
        own, apart = self._folders
        written: list[Partition] = []
        for folder, group in ((own, outputs), (apart, ledger)):
            if group:
                drafts[folder].mkdir(parents=True)
            for output in group:
                number = sum(p.table == output.table for p in written)
                file = f"{output.table}{f'.{number}' if number else ''}.parquet"
                draft = drafts[folder] / file
                rows = self._write(output, draft)
                path = f"lake/{folder}/{file}"
                written.append(Partition.of(self.home.root, output.table, output.key, path, rows, at=draft))
                keep_twice(output.table, draft)
        replaced = {(p.table, p.key) for p in written} | set(retired)
        kept = [p for p in self.parts if (p.table, p.key) not in replaced]
        moved: list[Path] = []
        try:
            for source, target in (folders or {}).items():
                if target.exists():  # left by a run that was killed before it published
                    shutil.rmtree(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                for found in source.rglob("*"):
                    sync_path(found)
                moved.append(target)
                source.replace(target)
                sync_path(target.parent)
            for folder in sorted({p.folder for p in written}):
                sync_path(drafts[folder])
                moved.append(self.home.lake / folder)
                drafts[folder].rename(moved[-1])
            sync_path(self.home.lake)
            self.home.write_catalog([*kept, *written])
        except BaseException:
            if not self._is_published():
                for leftover in moved:
                    shutil.rmtree(leftover, ignore_errors=True)
            raise
        remember_published(self.home.root, [*kept, *written], written)
        collect(self.home)

    def _is_published(self) -> bool:
        try:
            return any(p.run == self.run_id for p in self.home.parts())
        except HomeError:  # of an older layout still
            return False

    @property
    def _folders(self) -> tuple[str, str]:
        return f"run={self.run_id}", f"run={self.run_id}.ledger"

    def _write(self, output: Output, path: Path) -> int:
        table = TABLES[output.table]
        columns = ", ".join(f'"{c}"' for c in table.column_names)
        where = f" WHERE {output.where}" if output.where else ""
        write_parquet(self.connection, table, f"SELECT {columns} FROM main.{table.name}{where}", path)
        row = self.connection.execute(
            f"SELECT count(*) FROM read_parquet('{_quoted(path)}', hive_partitioning = false)"
        ).fetchone()
        assert row is not None
        return int(row[0])


def write_parquet(connection: duckdb.DuckDBPyConnection, table: Table, select: str, path: Path) -> None:
    """Write what is selected as a part of the table; GateError where its columns are not those of the contract."""
    connection.execute(
        f"COPY ({select}) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT 1000)"
    )
    found = connection.execute(
        f"DESCRIBE SELECT * FROM read_parquet('{_quoted(path)}', hive_partitioning = false)"
    ).fetchall()
    if [(name, kind) for name, kind, *_ in found] != [(c.name, c.type) for c in table.columns]:
        raise GateError(
            f"{path} does not have the columns of {table.name}'s contract: {found}; nothing was published"
        )
    sync_path(path)


def bound(text: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a statement names: DuckDB refuses values that it does not use."""
    return {name: parameters[name] for name in set(re.findall(r"\$([a-z]\w*)", text))}


@contextmanager
def open_stage(
    home: Warehouse,
    name: str,
    parameters: Mapping[str, Any],
    inputs: Inputs,
    resources: Resources | None = None,
    on_cleanup: Callable[[str], None] = lambda message: print(f"ssrem: {message}", file=sys.stderr),
    published: Callable[[duckdb.DuckDBPyConnection], list[Partition]] | None = None,
) -> Iterator[Stage]:
    """Open a stage under the home folder's lock; scratch goes when it closes, whether it published or not.

    inputs: what the stage reads, or a function that says so, which is asked under the lock: before it, another writer
    may change what is published. published: what gives the snapshot's parts, where it is not the home folder's own.

    Raises HomeError where the lock is held, the layout is another one, or the disk is full.
    """
    import duckdb

    resources = resources or Resources()
    with in_plain_words(home), home.lock(name):
        snapshot = home.snapshot() if published is None else None
        for message in clean_up(home, snapshot):
            on_cleanup(message)
        parts = snapshot.parts if snapshot else []
        damaged = damage(home.root, parts)
        started = _start(home.root, [p for p in parts if p not in {d.part for d in damaged}])
        run_id = f"{started:%Y%m%dT%H%M%S}-{secrets.token_hex(6)}"
        scratch = home.staging / run_id
        try:
            scratch.mkdir(parents=True)
            about = {"stage": name, "started": f"{started:%F %T}", "pid": os.getpid()}
            (scratch / "run.json").write_text(json.dumps(about))
            connection = duckdb.connect(str(scratch / "scratch.duckdb"))
            with connection:
                _configure(connection, name, resources, scratch)
                if published:
                    parts = published(connection)
                create_views(connection, home.root, parts, "published", damaged)
                read = inputs() if callable(inputs) else inputs
                yield Stage(home, name, run_id, parameters, read, started, connection, scratch, parts)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            for draft in home.lake.glob(f".run={run_id}*.tmp"):
                shutil.rmtree(draft, ignore_errors=True)


def _configure(
    connection: duckdb.DuckDBPyConnection, stage: str, resources: Resources, scratch: Path
) -> None:
    limit = resources.memory_limit or MEMORY_LIMITS.get(stage, DEFAULT_MEMORY_LIMIT)
    connection.execute(f"SET memory_limit = '{_quoted(limit)}'")
    if resources.threads:
        connection.execute(f"SET threads = {int(resources.threads)}")
    connection.execute(f"SET temp_directory = '{_quoted(scratch / 'spill')}'")
    connection.execute("SET preserve_insertion_order = false")
    # Scratch lives for minutes and dies with its run: neither compressing nor syncing it saves anything.
    connection.execute("SET force_compression = 'uncompressed'")
    connection.execute("SET fsync_mode = 'NONE'")
    connection.execute("CREATE SCHEMA published")
    connection.execute("SET search_path = 'main,published'")


def _start(root: Path, parts: Sequence[Partition]) -> datetime:
    """The time now, or just after the last run's end where the clock says that this lies ahead: what is ordered by
    time stays in order, whatever the clock does."""
    import duckdb

    now = utc_now()
    for part in parts:
        if part.table == "runs":
            with duckdb.connect(":memory:") as connection:
                query = f"SELECT max(ended) FROM read_parquet('{_quoted(root / part.path)}')"
                row = connection.execute(query).fetchone()
            now = max(now, row[0] + timedelta(microseconds=1)) if row and row[0] else now
    return now


def _quoted(value: str | Path) -> str:
    return str(value).replace("'", "''")
