"""Runs a stage: asks the ledger whether it is done, builds its tables in a scratch database under the home folder's
lock, checks them by the gate, and publishes them in one step."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ssrem import __version__
from ssrem.errors import GateError, HomeError, SsremError
from ssrem.files import sha256
from ssrem.schemas import TABLES
from ssrem.tables.builder import PARQUET, TableBuilder, quoted
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.progress import progress, staged
from ssrem.tasks.warehouse.catalog import (
    Address,
    Partition,
    PartitionKey,
    create_views,
    damage_behind,
    find_damage,
)
from ssrem.tasks.warehouse.files import delete, move_into_place, out_of_room
from ssrem.tasks.warehouse.home import Warehouse, utc_now
from ssrem.tasks.warehouse.prune import clean_up, leftovers, unused_runs

if TYPE_CHECKING:
    import duckdb

Answer = TypeVar("Answer")

MEMORY_LIMITS = {"ingest": "700MB", "tables": "1300MB"}
"""Stage → memory of DuckDB before it spills (others: 2GB); these two then stay under 2 GB with 5 million messages."""


@dataclass(frozen=True)
class Recipe:
    """What determines the outputs of a run: its parameters, and the content hashes of what it reads."""

    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]

    def key(self, stage: str) -> str:
        """Hash of the stage, the recipe and the version of ssrem: a run with the same key need not be repeated."""
        content = json.dumps([__version__, stage, self.parameters, self.inputs], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Output:
    """A partition to publish: the staged rows of `table` that meet `where` (all, if None), under `key`."""

    table: str
    key: PartitionKey
    where: str | None = None


@dataclass(frozen=True)
class Built(Generic[Answer]):
    """What a stage has built. answer: what `run_stage` returns.

    outputs: partitions of the staged tables to publish, after the gate has checked them. folders: draft → place in the
    home folder to which it is moved when they are published. retired: partitions that leave the snapshot. Without
    outputs and retired partitions nothing is published. save: called when the gate has passed, to write the drafts of
    the folders. after: called last, after publishing, still under the lock.
    """

    answer: Answer
    outputs: Sequence[Output] = ()
    folders: Mapping[Path, Path] = field(default_factory=dict)
    retired: Sequence[Address] = ()
    save: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None


@dataclass
class Stage(TableBuilder):
    """A run of a stage in progress. `connection` finds a table among the staged ones first, then the published ones.

    partitions: those of the snapshot that the run reads; staged: names of the tables that it has created so far.
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
    unique: set[str] = field(default_factory=set)

    def now(self) -> datetime:
        """The current time, or the start of the run if the clock was set back to before it."""
        return max(utc_now(), self.started)

    def gate(self) -> None:
        """Check every staged table against its contract and the stage's SQL checks.

        Raises GateError if a check fails: nothing is published then, and the rows at fault are saved in `failures/`.
        """
        from ssrem.tasks.stage.gate import SAVED_ROWS, check_tables, offending_rows

        results = check_tables(self.connection, self.name, self.run_id, self.staged, self.unique)
        self.create_from_rows("check_results", [result.row for result in results])
        failed = [result for result in results if not result.row["passed"]]
        if not failed:
            return
        folder = self.home.failures / self.run_id
        folder.mkdir(parents=True, exist_ok=True)
        saved = {"check_results": "FROM check_results"}
        for number, (row, rule) in enumerate(failed, 1):
            saved[f"{number}-{row['table_name']}"] = f"SELECT * FROM ({rule.offending}) LIMIT {SAVED_ROWS}"
        for name, query in saved.items():
            self.connection.execute(f"COPY ({query}) TO '{quoted(folder / name)}.csv' (HEADER)")
        first = failed[0].row
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise GateError(
            f"gate of {self.name}: table {first['table_name']}: expected {first['expectation']}, broken by "
            f"{first['unexpected']:,} rows, such as {offending_rows(self.connection, failed[0])}{more}; nothing was "
            f"published; more rows: {folder}",
            folder,
        )

    def publish(
        self,
        outputs: Sequence[Output],
        *,
        folders: Mapping[Path, Path] | None = None,
        retired: Sequence[Address] = (),
    ) -> dict[str, int]:
        """Write the outputs as Parquet into a new run folder and replace the catalog in one step; returns the number of
        rows by table. folders, retired: as in `Built`. A model is moved before the row that names it is published."""
        run = {
            "run_id": self.run_id,
            "stage": self.name,
            "key": self.recipe.key(self.name),
            "parameters": json.dumps(self.recipe.parameters, sort_keys=True, default=str),
            "inputs": json.dumps(self.recipe.inputs, sort_keys=True),
            "outputs": json.dumps([{"table": output.table, **output.key.values()} for output in outputs]),
            "started": self.started,
            "ended": self.now(),
            "ssrem_version": __version__,
        }
        self.create_from_rows("runs", [run])
        ledger = [Output(name, PartitionKey()) for name in ("runs", "check_results") if name in self.staged]
        for name in (output.table for output in ledger):  # old rows are copied: no old folder stays for them
            self.connection.execute(f"INSERT INTO main.{name} BY NAME SELECT * FROM published.{name}")
        # The ledger has a folder of its own: every run replaces it, whereas a folder of outputs may stay for years.
        written = self._write(f"run={self.run_id}", outputs)
        rows = Counter[str]()
        for partition in written:
            rows[partition.table] += partition.rows
        written += self._write(f"run={self.run_id}.ledger", ledger)
        replaced = {partition.address for partition in written} | set(retired)
        kept = [partition for partition in self.partitions if partition.address not in replaced]
        lake = self.home.lake
        moves = {**(folders or {}), **{lake / f".{p.folder}.tmp": lake / p.folder for p in written}}
        try:
            for draft, folder in moves.items():  # replaces what a run killed before publishing left there
                move_into_place(draft, folder)
            self.home.write_catalog(kept + written)
        except BaseException:
            if all(partition.run != self.run_id for partition in self.home.partitions()):
                for folder in moves.values():
                    delete(folder)
            raise
        for folder in unused_runs(self.home):
            delete(folder)
        return rows

    def _write(self, folder: str, outputs: Sequence[Output]) -> list[Partition]:
        """Write the outputs into the draft of `folder` in the lake; GateError if a file breaks its table's contract."""
        draft = self.home.lake / f".{folder}.tmp"
        written: list[Partition] = []
        if outputs:
            draft.mkdir()  # without its parents: a home folder that was moved away must not appear again
        for output in outputs:
            number = sum(partition.table == output.table for partition in written)
            path = draft / f"{output.table}{f'.{number}' if number else ''}.parquet"
            columns = TABLES[output.table].columns
            if output.where is None and self.file(output.table).exists():
                shutil.move(self.file(output.table), path)
            else:
                names = ", ".join(f'"{column.name}"' for column in columns)
                rows = f"SELECT {names} FROM main.{output.table} WHERE {output.where or 'true'}"
                self.connection.execute(f"COPY ({rows}) TO '{quoted(path)}' ({PARQUET})")
            parquet = f"FROM read_parquet('{quoted(path)}', hive_partitioning = false)"
            ((count,),) = self.connection.execute(f"SELECT count(*) {parquet}").fetchall()
            described = self.connection.execute(f"DESCRIBE {parquet}").fetchall()
            if [(name, kind) for name, kind, *_ in described] != [(c.name, c.type) for c in columns]:
                raise GateError(
                    f"{path} does not have the columns of {output.table}'s contract: {described}; nothing was published"
                )
            of_file = (f"lake/{folder}/{path.name}", count, path.stat().st_size, sha256(path))
            written.append(Partition(output.table, output.key, *of_file))
        return written


def run_stage(
    home: Warehouse,
    name: str,
    recipe: Callable[[], Recipe],
    build: Callable[[Stage], Built[Answer]],
    *,
    done: Answer | Callable[[Recipe], Answer | None],
    resources: Resources | None = None,
    title: str = "",
) -> Answer:
    """Run the stage `name`, unless it is done already; returns the answer of `build`, or of `done`.

    recipe: returns what determines the outputs; called before the stage opens and again under the lock, as another
    writer may have published meanwhile. done: the answer if a run with this recipe has published and all its outputs
    are still published; or a function that decides otherwise and returns the answer, or None if the work is not done.
    title: name in progress lines (default: the name of the stage and what it is about).
    Raises what `recipe`, `done` and `build` raise, GateError, and HomeError if the lock is held or the disk is full.
    """

    def answer_if_done(wanted: Recipe) -> Answer | None:
        return done(wanted) if callable(done) else done if already_done(home, name, wanted) else None

    home.check_writable()
    if (answer := answer_if_done(recipe())) is not None:
        if leftovers(home) and home.writer() is None:  # left by a run killed after it had published
            with suppress(HomeError), home.lock(name):
                clean_up(home)
        return answer
    with open_stage(home, name, recipe, resources) as stage:
        if (answer := answer_if_done(stage.recipe)) is not None:
            return answer
        subjects = ("promote", "study", "evaluator", "generator", "corpus", "dataset")
        named = [str(value) for key in subjects if (value := stage.recipe.parameters.get(key))]
        with staged(title or " ".join([name, *named])) as work:  # such as `train ssrem`
            built = build(stage)
            if built.outputs:
                with progress(f"checking what {name} has built"):
                    stage.gate()
            built.save()
            if built.outputs or built.retired:
                with progress(f"publishing what {name} has built"):
                    work.counts = stage.publish(built.outputs, folders=built.folders, retired=built.retired)
            built.after()
            return built.answer


@contextmanager
def open_stage(
    home: Warehouse, name: str, recipe: Callable[[], Recipe], resources: Resources | None = None
) -> Iterator[Stage]:
    """Open a stage under the home folder's lock, where `recipe` is called; its scratch is deleted when it closes.

    Raises HomeError if the lock is held, a file that the stage needs is damaged, or the disk is full.
    """
    import duckdb

    with home.lock(name):
        clean_up(home)
        partitions = home.partitions()
        ((ended,),) = home.query("SELECT max(ended) FROM runs")
        # Just after the last run if the clock was set back to before its end: what is ordered by time stays in order.
        started = max(utc_now(), ended + timedelta(microseconds=1)) if ended else utc_now()
        run_id = f"{started:%Y%m%dT%H%M%S%f}-{secrets.token_hex(6)}"  # sorts by time, within a second as well
        scratch = home.staging / run_id
        try:
            scratch.mkdir(parents=True)
            home.lake.mkdir(exist_ok=True)
            about = {"stage": name, "started": f"{started:%F %T}", "pid": os.getpid()}
            (scratch / "run.json").write_text(json.dumps(about))
            with duckdb.connect(str(scratch / "scratch.duckdb")) as connection:
                _configure(connection, name, resources or Resources(), scratch)
                _show_published(connection, home, partitions)
                yield Stage(home, name, run_id, recipe(), started, connection, scratch, partitions)
        except Exception as error:
            cause = error.__cause__ if isinstance(error, SsremError) else error
            why = cause and (out_of_room(home.root, cause) or damage_behind(home.root, partitions, cause))
            if why:
                raise why from cause
            raise
        finally:
            try:
                _clear(home, run_id)
            except KeyboardInterrupt:  # further signals are ignored, so this is not interrupted
                _clear(home, run_id)
                raise


def _show_published(
    connection: duckdb.DuckDBPyConnection, home: Warehouse, partitions: Sequence[Partition]
) -> None:
    """Show the tables of these partitions as database `published`; a bare name means a staged table first, then these.

    The catalog is attached, which takes a tenth of the time of creating all views. Views are created where there is no
    catalog yet, or where the stage makes some of its partitions anew.
    """
    if partitions and partitions == Warehouse(home.root).partitions():
        connection.execute(f"ATTACH '{quoted(home.catalog)}' AS published (READ_ONLY)")
    else:
        connection.execute("ATTACH ':memory:' AS published")
        create_views(connection, home.root, partitions, "VIEW published.")
    connection.execute("SET search_path = 'scratch.main,published.main'")


def _clear(home: Warehouse, run_id: str) -> None:
    """Delete the scratch folder of a run and the drafts that it has not published."""
    for folder in (home.staging / run_id, *home.lake.glob(f".run={run_id}*.tmp")):
        delete(folder)


def _configure(
    connection: duckdb.DuckDBPyConnection, stage: str, resources: Resources, scratch: Path
) -> None:
    limit = resources.memory_limit or MEMORY_LIMITS.get(stage, "2GB")
    threads = f"SET threads = {int(resources.threads)};" if resources.threads else ""
    # Scratch is deleted with its run, minutes later: there is no gain in compressing it or syncing it to the disk.
    connection.execute(f"""
        SET memory_limit = '{quoted(limit)}'; {threads} SET temp_directory = '{quoted(scratch / "spill")}';
        SET preserve_insertion_order = false; SET force_compression = 'uncompressed'; SET fsync_mode = 'NONE'
    """)


def already_done(home: Warehouse, stage: str, recipe: Recipe) -> bool:
    """Whether a run of this recipe has published and all its partitions are still published and intact."""
    rows = home.query("SELECT run_id, outputs FROM runs WHERE key = ?", [recipe.key(stage)])
    current = intact(home, home.partitions())
    return any(
        all((address, run_id) in current for address in read_outputs(outputs) if address[0] in TABLES)
        for run_id, outputs in rows
    )


def intact(home: Warehouse, partitions: Sequence[Partition]) -> set[tuple[Address, str]]:
    """Address and run id of each partition whose file exists and has the size that was published."""
    damaged = find_damage(home.root, partitions)
    return {(p.address, p.run) for p in partitions if p not in damaged}


def last_parameters(home: Warehouse, corpus: str, stage: str) -> dict[str, Any]:
    """Parameters of the newest run of the stage for the corpus or annotated set; empty if there is none."""
    rows = home.query(
        "SELECT parameters FROM runs WHERE stage = ? "
        "AND ? IN (parameters->>'$.corpus', parameters->>'$.dataset') ORDER BY started DESC LIMIT 1",
        [stage, corpus],
    )
    return dict(json.loads(rows[0][0])) if rows else {}


def read_outputs(outputs: str) -> list[Address]:
    """The partitions that a run published, from the column `outputs` of `runs`."""
    return [(row.pop("table"), PartitionKey(**row)) for row in json.loads(outputs)]


def sources(home: Warehouse, tables: Collection[str], keys: Collection[PartitionKey]) -> list[dict[str, Any]]:
    """A row for each published partition of these tables and keys: table, fields of its key, and key of its run.

    The rows go into a recipe's inputs: unlike a path, a run's key stays the same when a damaged file is made anew.
    """
    run_keys = dict(home.query("SELECT run_id, key FROM runs"))
    wanted = [p for p in home.partitions() if p.table in tables and p.key in keys]
    rows = [{"table": p.table, **p.key.values(), "run": run_keys.get(p.run, p.path)} for p in wanted]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def candidate_sources(home: Warehouse, corpora: Sequence[str]) -> list[dict[str, Any]]:
    """The runs that landed the corpora and drew their candidates: an input of every stage that reads candidates."""
    return sources(home, ("corpora", "candidates"), [PartitionKey(corpus=corpus) for corpus in corpora])
