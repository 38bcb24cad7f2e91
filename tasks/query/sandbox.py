"""Read-only questions to the published snapshot."""

from __future__ import annotations

import re
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from ssrem.errors import HomeError, SsremError
from tasks.warehouse.home import Warehouse
from tasks.warehouse.integrity import damage_behind

MEMORY_LIMIT, SPILL_LIMIT = "2GB", "8GB"
ANSWER_BYTES = 512 << 20
"""Most bytes of an answer in Python's memory."""
ROOM = 3 << 30
"""Bytes by which a query may let the process grow, whatever allocates them: single values escape DuckDB's limit."""
MOST_THREADS = 8
"""More would each reserve a part of ROOM before they use it."""
_FETCHED_ROWS = 2_048


Answer = tuple[list[str], list[tuple[Any, ...]]]
Told = TypeVar("Told")


def ask(home: Warehouse, query: str) -> Answer:
    """Answer one SELECT over the published tables: column names, each of its own, and rows.

    The query sees the tables and nothing else: it cannot write, read other files, load extensions or change settings.
    DuckDB takes MEMORY_LIMIT, then spills into a folder for temporary files, SPILL_LIMIT at most; Ctrl-C stops it.
    Raises HomeError where nothing is published, SsremError, in one line, for anything but a single valid SELECT, and
    for an answer of more than ANSWER_BYTES.
    """
    return confined(home, lambda connection: _answer(connection, query))


def confined(home: Warehouse, work: Callable[[duckdb.DuckDBPyConnection], Told]) -> Told:
    """What `work` makes of a connection that sees the published tables and nothing else; its errors in one line."""
    snapshot, _ = home.readable()
    if not snapshot.number and not snapshot.partitions:
        raise HomeError(
            f"nothing is published in {home.root}; run ssrem run first, or name another folder with --home"
        )
    with (
        _held_back() as pressed,
        tempfile.TemporaryDirectory(prefix="ssrem-sql-") as scratch,
        home.reader(snapshot=snapshot) as connection,
        _bounded(ROOM),
    ):
        _confine(connection, [home.root / part.path for part in snapshot.partitions], Path(scratch))
        try:
            return _interruptible(connection, lambda: work(connection), pressed)
        except duckdb.Error as error:
            if damaged := damage_behind(home.root, snapshot.partitions, error):
                raise damaged from None
            raise SsremError(f"SQL: {_one_line(error)}") from None


def only_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """The one SELECT that `query` is; SsremError for anything else."""
    try:
        # EXPLAIN ANALYZE and MULTI would run whatever they wrap, so only plain queries pass.
        statements = connection.extract_statements(query)
        select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
    except duckdb.Error as error:
        raise SsremError(f"SQL: {_one_line(error)}") from None
    except (ValueError, TypeError):  # kinds that DuckDB's bindings have no name for; what is no text
        select = False
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
def _held_back() -> Iterator[list[int]]:
    """Inside, Ctrl-C is noted, and is a KeyboardInterrupt only after all is cleaned up: however often it is pressed, no
    connection is left in use and no limit in force. Elsewhere than in the main thread nothing changes."""
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield pressed
        return
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)
    if pressed:
        raise KeyboardInterrupt


def _interruptible(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Told], pressed: Sequence[int]
) -> Told:
    """What `work` gives; KeyboardInterrupt as soon as `pressed` says so.

    It runs in a thread of its own: DuckDB does not look out for Ctrl-C while it computes.
    """
    done: Future[Told] = Future()
    begin = threading.Event()

    def run() -> None:
        begin.wait()
        try:
            done.set_result(work())
        except BaseException as error:  # raised again where it is awaited
            done.set_exception(error)

    thread = threading.Thread(target=run, name="query", daemon=True)
    thread.start()  # what is interrupted here has not begun
    try:
        begin.set()
        # With a timeout, since a signal that another thread receives does not wake this one.
        while not wait([done], timeout=0.1).done:
            if pressed:
                raise KeyboardInterrupt
        return done.result()
    finally:
        # Nothing may still compute when Python ends: the process would abort.
        while begin.is_set() and thread.is_alive():
            connection.interrupt()  # once is not enough: between two steps there is nothing to interrupt
            thread.join(0.1)


def _confine(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], scratch: Path) -> None:
    """Leave the connection nothing but the published files and its own scratch, for good."""
    paths = ", ".join(map(_literal, files))
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute(f"SET temp_directory = {_literal(scratch)}")  # else .tmp, wherever one stands
    connection.execute(f"SET max_temp_directory_size = '{SPILL_LIMIT}'")
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    connection.execute(f"SET threads = {min(_threads(connection), MOST_THREADS)}")
    for setting in (
        "python_enable_replacements",  # names are tables, not our variables
        "autoinstall_known_extensions",
        "autoload_known_extensions",
        "allow_community_extensions",
        "allow_persistent_secrets",
        "enable_external_access",
    ):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def _bounded(room: int) -> Iterator[None]:
    """Inside, the process may grow by `room` bytes; where the system does not tell its size, by any."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + room
    lower = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    resource.setrlimit(resource.RLIMIT_AS, (lower, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _fetched(cursor: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """All rows; SsremError as soon as they are more than ANSWER_BYTES."""
    rows: list[tuple[Any, ...]] = []
    held = 0
    while some := cursor.fetchmany(_FETCHED_ROWS):
        held += sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in some)
        if held > ANSWER_BYTES:
            raise too_large()
        rows += some
    return rows


def too_large() -> SsremError:
    """The error of a query that needs more memory than it is given."""
    return SsremError(
        "the query or its answer does not fit into memory; ask for less with LIMIT or fewer columns, write it with "
        "--parquet, or open catalog.duckdb with a DuckDB client"
    )


def _threads(connection: duckdb.DuckDBPyConnection) -> int:
    found = connection.execute("SELECT current_setting('threads')").fetchone()
    return int(found[0]) if found else 1


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def distinct(names: list[str]) -> list[str]:
    """The names, each of its own: one that is taken gets a number."""
    found: list[str] = []
    for name in names:
        taken, number = name, 1
        while taken in found:
            taken, number = f"{name}_{number}", number + 1
        found.append(taken)
    return found


def _one_line(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the query and the caret under it."""
    message = re.split(r"\n+LINE \d+:", str(error))[0]
    return " ".join(message.split())
