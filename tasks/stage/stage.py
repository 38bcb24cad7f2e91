"""A run of a stage: tables are built in a scratch database, checked by the gate and published in one step."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from ssrem import __version__
from ssrem.errors import GateError, say
from ssrem.schemas import TABLES
from ssrem.tables.builder import PARQUET, TableBuilder, quoted
from ssrem.tasks.stage.ledger import Recipe, write_outputs
from ssrem.tasks.warehouse.catalog import create_views
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.error_translation import translated_errors
from ssrem.tasks.warehouse.files import sync_path
from ssrem.tasks.warehouse.garbage import prune_runs
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import clean_up
from ssrem.tasks.warehouse.integrity import find_damage, remember_intact
from ssrem.tasks.warehouse.partition import Address, Partition, PartitionKey, write_replica

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMITS = {"ingest": "1200MB", "tables": "1300MB"}
DEFAULT_MEMORY_LIMIT = "2GB"
"""What DuckDB takes before it spills, by stage: with 5 M messages ingest and tables then stay under 2 GB."""


class Resources(BaseModel, frozen=True, extra="forbid"):
    """What DuckDB may use."""

    memory_limit: str | None = Field(
        None,
        description="Memory before DuckDB spills to disk, such as 2GB; by default it depends on the stage",
    )
    threads: int | None = Field(None, ge=1, description="Threads of DuckDB; by default all cores")


@dataclass(frozen=True)
class Output:
    """A partition to publish: the staged rows of `table` that meet `where` (all, if None), under `key`."""

    table: str
    key: PartitionKey
    where: str | None = None

    @property
    def address(self) -> Address:
        """The table and the key."""
        return self.table, self.key


@dataclass
class Stage(TableBuilder):
    """A run of a stage in progress. `connection` sees staged tables first, then the published ones.

    partitions: of the snapshot that the run reads; staged: names of the tables that it has created so far.
    """

    home: Warehouse
    name: str
    run_id: str
    recipe: Recipe
    started: datetime
    connection: duckdb.DuckDBPyConnection
    scratch: Path
    partitions: list[Partition]
    staged: list[str] = field(default_factory=list)

    def now(self) -> datetime:
        """The current time, or the start of the run if the clock was set back to before it."""
        return max(utc_now(), self.started)

    def gate(self) -> None:
        """Check every staged table against its contract and the stage's SQL checks.

        Raises GateError where one fails: nothing is published then, and what failed lies under `failures/`.
        """
        from ssrem.tasks.stage.gate import check_tables, offending_rows

        results = check_tables(self.connection, self.name, self.run_id, self.staged)
        self.create_from_rows("check_results", [r.row for r in results])
        failed = [r for r in results if not r.row["passed"]]
        if not failed:
            return
        folder = self.home.failures / self.run_id
        folder.mkdir(parents=True, exist_ok=True)
        self.connection.execute(f"COPY check_results TO '{quoted(folder / 'check_results.csv')}' (HEADER)")
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
        retired: Sequence[Address] = (),
    ) -> dict[str, int]:
        """Write the outputs as Parquet into a new run folder and replace the catalog in one step; returns their rows by
        table.

        `folders` (from, to) are moved first: a model is in its place before the row that names it is published.
        `retired` are partitions that leave the snapshot, since the new ones make them outdated.
        """
        run = {
            "run_id": self.run_id,
            "stage": self.name,
            "key": self.recipe.key(self.name),
            "parameters": json.dumps(self.recipe.parameters, sort_keys=True, default=str),
            "inputs": json.dumps(self.recipe.inputs, sort_keys=True),
            "outputs": write_outputs([output.address for output in outputs]),
            "started": self.started,
            "ended": self.now(),
            "state": "published",
            "ssrem_version": __version__,
        }
        self.create_from_rows("runs", [run])
        ledger = [Output(name, PartitionKey()) for name in ("runs", "check_results") if name in self.staged]
        for output in ledger:  # one growing partition, so that no old run's folder stays for its two rows
            self.connection.execute(
                f"INSERT INTO main.{output.table} BY NAME SELECT * FROM published.{output.table}"
            )
        # The ledger has a folder of its own: the next run writes it anew, but a folder of outputs may stay for years.
        written = self._write(f"run={self.run_id}", outputs)
        rows: Counter[str] = Counter()
        for partition in written:
            rows[partition.table] += partition.rows
        written += self._write(f"run={self.run_id}.ledger", ledger)
        replaced = {partition.address for partition in written} | set(retired)
        snapshot = [partition for partition in self.partitions if partition.address not in replaced]
        snapshot += written
        self._move_into_place(folders or {}, written, snapshot)
        remember_intact(self.home.root, snapshot, written)
        prune_runs(self.home)
        return dict(rows)

    def _move_into_place(
        self, folders: Mapping[Path, Path], written: Sequence[Partition], snapshot: list[Partition]
    ) -> None:
        """Move folders (from, to) and written run folders into the home folder, and publish the snapshot.

        After an error they are deleted, unless the snapshot was published before it.
        """
        moved: list[Path] = []
        try:
            for source, target in folders.items():
                if target.exists():  # left by a run that was killed before it published
                    shutil.rmtree(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                for path in source.rglob("*"):
                    sync_path(path)
                moved.append(target)
                source.replace(target)
                sync_path(target.parent)
            for folder in sorted({partition.folder for partition in written}):
                sync_path(self._draft(folder))
                moved.append(self.home.lake / folder)
                self._draft(folder).rename(moved[-1])
            sync_path(self.home.lake)
            self.home.write_catalog(snapshot)
        except BaseException:
            if all(partition.run != self.run_id for partition in self.home.partitions()):
                for leftover in moved:
                    shutil.rmtree(leftover, ignore_errors=True)
            raise

    def _draft(self, folder: str) -> Path:
        return self.home.lake / f".{folder}.tmp"

    def _write(self, folder: str, outputs: Sequence[Output]) -> list[Partition]:
        """Write the outputs into the draft of a folder of the lake; the partitions that they will be."""
        draft = self._draft(folder)
        written: list[Partition] = []
        if outputs:
            draft.mkdir(parents=True)
        for output in outputs:
            number = sum(partition.table == output.table for partition in written)
            file = draft / f"{output.table}{f'.{number}' if number else ''}.parquet"
            rows = self._write_file(output, file)
            written.append(Partition.of_file(output.address, f"lake/{folder}/{file.name}", rows, file))
            write_replica(output.table, file)
        return written

    def _write_file(self, output: Output, path: Path) -> int:
        """Write the staged rows of an output as Parquet; how many. GateError where the file has not the columns of the
        table's contract."""
        columns = TABLES[output.table].columns
        if output.where is None and self.file(output.table).exists():
            shutil.move(self.file(output.table), path)
            query = f"SELECT count(*) FROM read_parquet('{quoted(path)}', hive_partitioning = false)"
        else:
            names = ", ".join(f'"{column.name}"' for column in columns)
            where = f" WHERE {output.where}" if output.where else ""
            query = f"COPY (SELECT {names} FROM main.{output.table}{where}) TO '{quoted(path)}' ({PARQUET})"
        ((rows,),) = self.connection.execute(query).fetchall()
        described = self.connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet('{quoted(path)}', hive_partitioning = false)"
        ).fetchall()
        if [(name, kind) for name, kind, *_ in described] != [(c.name, c.type) for c in columns]:
            raise GateError(
                f"{path} does not have the columns of {output.table}'s contract: {described}; nothing was published"
            )
        sync_path(path)
        return int(rows)


@contextmanager
def open_stage(
    home: Warehouse,
    name: str,
    recipe: Callable[[], Recipe],
    resources: Resources | None = None,
) -> Iterator[Stage]:
    """Open a stage under the home folder's lock; scratch goes when it closes, whether it published or not.

    recipe: asked under the lock, since another writer may change what is published before it is held.

    Raises HomeError where the lock is held, the layout is another one, or the disk is full.
    """
    import duckdb

    resources = resources or Resources()
    with translated_errors(home), home.lock(name):
        snapshot = home.snapshot()
        for message in clean_up(home, snapshot):
            say(message)
        damaged = find_damage(home.root, snapshot.partitions)
        started = _start(home, snapshot.partitions)
        run_id = f"{started:%Y%m%dT%H%M%S%f}-{secrets.token_hex(6)}"  # sorts by time, within a second as well
        scratch = home.staging / run_id
        try:
            scratch.mkdir(parents=True)
            about = {"stage": name, "started": f"{started:%F %T}", "pid": os.getpid()}
            (scratch / "run.json").write_text(json.dumps(about))
            with duckdb.connect(str(scratch / "scratch.duckdb")) as connection:
                _configure(connection, name, resources, scratch)
                connection.begin()
                create_views(connection, home.root, snapshot.partitions, "published", damaged)
                connection.commit()
                yield Stage(home, name, run_id, recipe(), started, connection, scratch, snapshot.partitions)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            for draft in home.lake.glob(f".run={run_id}*.tmp"):
                shutil.rmtree(draft, ignore_errors=True)


def _configure(
    connection: duckdb.DuckDBPyConnection, stage: str, resources: Resources, scratch: Path
) -> None:
    limit = resources.memory_limit or MEMORY_LIMITS.get(stage, DEFAULT_MEMORY_LIMIT)
    connection.execute(f"SET memory_limit = '{quoted(limit)}'")
    if resources.threads:
        connection.execute(f"SET threads = {int(resources.threads)}")
    connection.execute(f"SET temp_directory = '{quoted(scratch / 'spill')}'")
    connection.execute("SET preserve_insertion_order = false")
    # Scratch lives for minutes and dies with its run: neither compressing nor syncing it saves anything.
    connection.execute("SET force_compression = 'uncompressed'")
    connection.execute("SET fsync_mode = 'NONE'")
    connection.execute("CREATE SCHEMA published")
    connection.execute("SET search_path = 'main,published'")


def _start(home: Warehouse, partitions: Sequence[Partition]) -> datetime:
    """The current time, or just after the end of the last run if the clock was set back to before it: what is ordered
    by time stays in order, whatever the clock does."""
    started, ended = utc_now(), None
    if any(partition.table == "runs" for partition in partitions):
        ((ended,),) = home.query("SELECT max(ended) FROM runs", partial=True)
    return max(started, ended + timedelta(microseconds=1)) if ended else started
