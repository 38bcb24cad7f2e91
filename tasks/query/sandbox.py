"""The SQL sandbox: read-only queries of the published snapshot."""

from __future__ import annotations

import re
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from ssrem.errors import HomeError, SsremError
from ssrem.files import temporary_folder
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import damage_behind

MEMORY_LIMIT, SPILL_LIMIT = "2GB", "8GB"
ANSWER_BYTES = 512 << 20
"""Most bytes of an answer in Python's memory."""
ROOM = 3 << 30
"""Bytes by which the process may grow during a query: DuckDB's own limit does not count single large values."""
MOST_THREADS = 8
"""Most threads of DuckDB: each reserves a part of ROOM before it uses it."""
_FETCHED_ROWS = 2_048

Answer = tuple[list[str], list[tuple[Any, ...]]]
Result = TypeVar("Result")


def ask(home: Warehouse, query: str) -> Answer:
    """Answer one SELECT over the published tables: column names, made unique, and rows.

    The query sees the tables and nothing else: it cannot write, read other files, load extensions or change settings.
    DuckDB uses up to MEMORY_LIMIT of memory, then up to SPILL_LIMIT of temporary files; Ctrl-C stops the query.
    Raises HomeError if nothing is published, and SsremError, in one line, for anything but a single valid SELECT and
    for an answer of more than ANSWER_BYTES.
    """
    return confined(home, lambda connection: _answer(connection, query))


def confined(home: Warehouse, work: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
    """The result of `work` on a connection that sees only the published tables; raises SsremError, in one line."""
    snapshot, _ = home.readable()
    if not snapshot.number and not snapshot.partitions:
        raise HomeError(
            f"nothing is published in {home.root}; run ssrem run first, or name another folder with --home"
        )
    with (
        _delayed_interrupt() as pressed,
        temporary_folder() as scratch,
        home.reader(snapshot=snapshot) as connection,
        _bounded(ROOM),
    ):
        _confine(connection, [home.root / part.path for part in snapshot.partitions], scratch)
        try:
            return _interruptible(connection, lambda: work(connection), pressed)
        except duckdb.Error as error:
            if damaged := damage_behind(home.root, snapshot.partitions, error):
                raise damaged from None
            raise SsremError(f"SQL: {_one_line(error)}") from None


def only_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """The single SELECT statement in `query`; SsremError for anything else."""
    try:
        # EXPLAIN ANALYZE and MULTI would run whatever they wrap, so only plain queries pass.
        statements = connection.extract_statements(query)
        select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
    except duckdb.Error as error:
        raise SsremError(f"SQL: {_one_line(error)}") from None
    except (ValueError, TypeError):
        select = False  # a statement type unknown to DuckDB's bindings, or text that is not valid Unicode
    if not select:
        raise SsremError("ssrem sql takes one SELECT; it cannot write, and changes no setting")
    return statements[0]


def _answer(connection: duckdb.DuckDBPyConnection, query: str) -> Answer:
    select = only_select(connection, query)
    try:
        cursor = connection.execute(select)
        return distinct([d[0] for d in cursor.description or []]), _fetched(cursor)
    except (MemoryError, duckdb.OutOfMemoryException):
        raise too_large() from None


@contextmanager
def _delayed_interrupt() -> Iterator[list[int]]:
    """Delay KeyboardInterrupt until the block has ended, so that the connection is closed and all limits are reset.

    Yields a list that is not empty once Ctrl-C was pressed. Has no effect outside the main thread.
    """
    pressed: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield pressed
        return
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


def _interruptible(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Result], pressed: Sequence[int]
) -> Result:
    """The result of `work`; raises KeyboardInterrupt as soon as `pressed` is not empty.

    `work` runs in another thread, since DuckDB does not react to Ctrl-C during a query.
    """
    done: Future[Result] = Future()
    begin = threading.Event()

    def run() -> None:
        begin.wait()
        try:
            done.set_result(work())
        except BaseException as error:  # raised again by done.result()
            done.set_exception(error)

    thread = threading.Thread(target=run, name="query", daemon=True)
    thread.start()  # if interrupted here, `work` never begins
    try:
        begin.set()
        # With a timeout, since a signal delivered to another thread does not wake this one.
        while not wait([done], timeout=0.1).done:
            if pressed:
                raise KeyboardInterrupt
        return done.result()
    finally:
        # The process would abort if a query still ran when Python exits.
        while begin.is_set() and thread.is_alive():
            connection.interrupt()  # repeatedly: between two steps of a query it has no effect
            thread.join(0.1)


def _confine(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], scratch: Path) -> None:
    """Restrict the connection, irreversibly, to the published files and the folder `scratch`."""
    ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
    settings = {
        "allowed_paths": f"[{', '.join(map(_literal, files))}]",
        "temp_directory": _literal(scratch),  # the default is .tmp in the working directory
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


@contextmanager
def _bounded(room: int) -> Iterator[None]:
    """Let the process grow by at most `room` bytes; no limit where the system does not report its size."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + room
    lower = limit if soft == resource.RLIM_INFINITY else min(soft, limit)
    resource.setrlimit(resource.RLIMIT_AS, (lower, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _fetched(cursor: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """All rows; SsremError as soon as they exceed ANSWER_BYTES."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    while batch := cursor.fetchmany(_FETCHED_ROWS):
        size += sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in batch)
        if size > ANSWER_BYTES:
            raise too_large()
        rows += batch
    return rows


def too_large() -> SsremError:
    """The error of a query that exceeds the limits on memory."""
    return SsremError(
        "the query or its answer does not fit into memory; ask for less with LIMIT or fewer columns, write it with "
        "--parquet, or open catalog.duckdb with a DuckDB client"
    )


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def distinct(names: list[str]) -> list[str]:
    """The names made unique: a repeated name gets a number."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return unique


def _one_line(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the query and the caret under it."""
    message = re.split(r"\n+LINE \d+:", str(error))[0]
    return " ".join(message.split())
