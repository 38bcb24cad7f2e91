"""Read-only queries of the published tables: the sandbox of `ssrem sql`, and the summaries."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, TextIO, TypeVar

import duckdb

from ssrem.errors import HomeError, SsremError
from ssrem.files import temporary_folder
from ssrem.report import findings
from ssrem.report.text import json_ready, no_formula
from ssrem.sql import queries
from ssrem.tables.builder import quoted
from ssrem.tasks.warehouse.catalog import create_views, damage_behind, new_engine
from ssrem.tasks.warehouse.home import Warehouse, records

MEMORY_LIMIT, SPILL_LIMIT = "2GB", "8GB"
ANSWER_BYTES = 512 << 20
"""Most bytes that an answer of `ask` may take in Python's memory."""
MOST_THREADS = 8

AFTER_RUN = ("everyday_pairs", "identification", "pairs", "agreement", "best", "corpora", "speaker_sets")
"""The summaries that are shown at the end of a run of the whole pipeline."""

_FETCHED_ROWS = 2_048
"""Number of rows that are fetched from DuckDB at once."""

Answer = tuple[list[str], list[tuple[Any, ...]]]
Result = TypeVar("Result")
Cell = Callable[[Any], Any]
"""Turns a plain value into a cell of a CSV file."""


def ask(home: Warehouse, query: str, *, timeout: float | None = None) -> Answer:
    """Answer one SELECT over the published tables: column names, made unique, and rows.

    The query sees the tables and nothing else: it cannot write, read other files, load extensions or change settings.
    DuckDB uses up to MEMORY_LIMIT of memory, then up to SPILL_LIMIT of temporary files. timeout: seconds after which it
    is stopped; None for no limit. Raises HomeError if nothing is published, and SsremError, in one line, for anything
    but a single valid SELECT, for one that takes too long, and for an answer of more than ANSWER_BYTES.
    """
    return confined(home, lambda connection: _answer(connection, query), timeout)


def confined(
    home: Warehouse, work: Callable[[duckdb.DuckDBPyConnection], Result], timeout: float | None = None
) -> Result:
    """The result of `work` on a connection that sees only the published tables; timeout and errors as in `ask`."""
    snapshot = home.snapshot()
    if not snapshot.number and not snapshot.partitions:
        raise HomeError(
            f"nothing is published in {home.root}; run ssrem run first, or name another folder with --home"
        )
    # The query gets its own DuckDB, as the settings below must not affect other readers.
    with temporary_folder() as scratch, new_engine() as connection:
        create_views(connection, home.root, snapshot.partitions, "VIEW ")
        _confine(connection, [home.root / part.path for part in snapshot.partitions], scratch)
        try:
            return _stoppable(connection, lambda: work(connection), timeout)
        except (MemoryError, duckdb.OutOfMemoryException):
            raise SsremError(
                "the query or its answer does not fit into memory; ask for less with LIMIT or fewer columns, take it "
                "as --csv, or open catalog.duckdb with a DuckDB client"
            ) from None
        except duckdb.Error as error:
            if damaged := damage_behind(home.root, snapshot.partitions, error):
                raise damaged from None
            message = re.split(r"\n+LINE \d+:", str(error))[0]  # without the excerpt of the query
            raise SsremError(f"SQL: {' '.join(message.split())}") from None


def _stoppable(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Result], timeout: float | None
) -> Result:
    """The result of `work`, which is stopped after `timeout` seconds, by Ctrl-C and by SIGTERM.

    It runs in another thread, since Python handles no signal while DuckDB computes in this one.
    """
    # Made here, as Ctrl-C may arrive when `submit` has started the thread but not yet returned its future.
    answer: Future[Result] = Future()

    def run() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)

    with ThreadPoolExecutor(1, "query") as pool:
        try:
            pool.submit(run)
            return answer.result(timeout)
        except TimeoutError:
            raise SsremError(
                f"the query took longer than {timeout:g} s; ask for less, or give it more time with --timeout"
            ) from None
        finally:
            while not (answer.cancel() or answer.done()):  # repeated: between two steps an interrupt is lost
                connection.interrupt()
                wait([answer], 0.1)


def _confine(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], scratch: Path) -> None:
    """Restrict the connection, irreversibly, to the published files and the folder `scratch`."""
    ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
    settings = {
        "allowed_paths": "[" + ", ".join(f"'{quoted(file)}'" for file in files) + "]",
        "temp_directory": f"'{quoted(scratch)}'",  # the default is .tmp in the working directory
        "max_temp_directory_size": f"'{SPILL_LIMIT}'",
        "memory_limit": f"'{MEMORY_LIMIT}'",
        "threads": min(threads, MOST_THREADS),
        "python_enable_replacements": False,  # names are never Python variables
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "enable_external_access": False,
        "lock_configuration": True,
    }
    for name, value in settings.items():
        connection.execute(f"SET {name} = {value}")


def _only_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """The single SELECT statement in `query`; SsremError for anything else."""
    try:
        # EXPLAIN ANALYZE would run whatever it wraps, so it does not pass.
        (statement,) = connection.extract_statements(query)
        if statement.type == duckdb.StatementType.SELECT:
            return statement
        # DuckDB splits PIVOT without IN into several statements, CREATE TABLE … AS PIVOT too; only the former can be
        # a subquery.
        if statement.type == duckdb.StatementType.MULTI:
            with suppress(duckdb.ParserException):
                connection.extract_statements(f"FROM ({query.rstrip().rstrip(';')}\n)")
                return statement
    except (ValueError, TypeError):
        pass  # several statements, a type unknown to DuckDB's bindings, or text that is not valid Unicode
    raise SsremError("ssrem sql takes one SELECT; it cannot write, and changes no setting")


def _batches(
    connection: duckdb.DuckDBPyConnection, query: str
) -> tuple[list[str], Iterator[list[tuple[Any, ...]]]]:
    """Column names, made unique, and batches of the rows of the answer to a single SELECT."""
    cursor = connection.execute(_only_select(connection, query))
    names = _distinct([column[0] for column in cursor.description or []])
    return names, iter(lambda: cursor.fetchmany(_FETCHED_ROWS), [])


def _answer(connection: duckdb.DuckDBPyConnection, query: str) -> Answer:
    names, batches = _batches(connection, query)
    rows: list[tuple[Any, ...]] = []
    size = 0
    for batch in batches:
        size += sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in batch)
        if size > ANSWER_BYTES:
            raise MemoryError
        rows += batch
    return names, rows


def print_csv(
    home: Warehouse, query: str, out: TextIO, cell: Cell = no_formula, *, timeout: float | None = None
) -> None:
    """Write the answer as CSV to an open stream; its rows need not fit into memory.

    Lists and structures are written as JSON, bytes as text, null as an empty cell. Raises errors as `ask` does.
    """

    def write(connection: duckdb.DuckDBPyConnection) -> None:
        names, batches = _batches(connection, query)
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(cell, names))
        for rows in batches:
            writer.writerows([cell(_cell(value)) for value in row] for row in rows)

    confined(home, write, timeout)


def _cell(value: Any) -> Any:
    """The value as text, a number or null, for a cell of the CSV file."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(json_ready(value), ensure_ascii=False)
    return json_ready(value) if isinstance(value, date | bytes) else value


def _distinct(names: list[str]) -> list[str]:
    """The names made unique: a repeated name gets a number."""
    unique: list[str] = []
    for name in names:
        candidates = (f"{name}_{number}" if number else name for number in count())
        unique.append(next(candidate for candidate in candidates if candidate not in unique))
    return unique


def title(name: str) -> str:
    """The heading of the summary `name`."""
    return queries("summaries")[name].title


def summary(
    home: Warehouse, names: Sequence[str], *, tolerant: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """Name of a summary → its rows; summaries without rows are left out.

    names: files of sql/summaries. tolerant: also leave out summaries that need a damaged partition.
    """
    summaries, texts = {}, {name: queries("summaries")[name].text for name in names}
    with home.reader(query="\n".join(texts.values())) as connection:
        for name, text in texts.items():
            try:
                rows = records(connection, text)
            except duckdb.Error as error:
                if tolerant and damage_behind(home.root, home.partitions(), error):
                    continue
                raise
            if rows:
                summaries[name] = rows
    return summaries


def no_better(home: Warehouse, datasets: Collection[str] | None = None) -> list[str]:
    """One sentence for each evaluator in use that is no better than chance or than an untrained baseline, and one for
    each correlation with human scores that does not exist, with the reason.

    datasets: annotated sets to consider; None: all annotated sets and corpora.
    """
    wanted = ("identification", "correlations", "comparisons")
    texts = [*(queries("report")[name].text for name in wanted), queries("summaries")["uncorrelated"].text]
    with home.reader(query="\n".join(texts)) as connection:
        identified, correlated, compared, uncorrelated = (
            # Rows of `identification` are of a corpus, not of an annotated set.
            [row for row in records(connection, text) if datasets is None or row.get("dataset") in datasets]
            for text in texts
        )
    return [
        *findings.no_better(identified, correlated, compared, lambda name, _: str(name)),
        *(
            f"{row['scores']}: no Spearman with human scores ({row['dataset']}, {row['criterion']}): {row['reason']}."
            for row in uncorrelated
        ),
    ]


def drawn(home: Warehouse) -> list[str]:
    """A sentence for each slow evaluator in use whose identification rests on a random draw of responses."""
    query = (
        "SELECT DISTINCT e.evaluator, e.test_sample FROM evaluators AS e INNER JOIN identification AS i "
        "ON e.evaluator = i.evaluator AND e.version = i.version AND i.kind = 'GT' AND i.n = e.test_sample "
        "WHERE e.promoted ORDER BY ALL"
    )
    return [
        f"{name} reads slowly: its identification is of {n:,} drawn responses."
        for name, n in home.query(query)
    ]


def gate_results(home: Warehouse, stage: str) -> list[dict[str, Any]]:
    """Results of the gates of a stage, one row per expectation, of the latest run with each parameters; empty if the
    stage never ran."""
    query = queries("report")["quality"].text
    with home.reader(query=query) as connection:
        return [row for row in records(connection, query) if row["stage"] == stage]
