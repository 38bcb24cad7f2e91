"""The home folder: its paths, its write lock, its published tables, and the corpora that have landed in it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from ssrem.errors import HomeError, SsremError, say
from ssrem.files import resolved
from ssrem.registry import did_you_mean
from ssrem.settings import seconds
from ssrem.tasks.warehouse import catalog as catalogs
from ssrem.tasks.warehouse.catalog import Partition, PartitionKey, Snapshot, create_views

if TYPE_CHECKING:
    import duckdb

VARIABLE = "SSREM_WAIT"
"""Environment variable: how long writers in this process and its children wait for the lock, such as 90, 30m or 6h."""


def utc_now() -> datetime:
    """The current time in UTC, without a zone: the form that tables store."""
    return datetime.now(UTC).replace(tzinfo=None)


class Warehouse:
    """A home folder, which the first write creates. made_anew: key of the partitions to make anew (see `anew`)."""

    def __init__(self, root: Path, made_anew: PartitionKey = PartitionKey()) -> None:
        self.root, self.made_anew = root, made_anew
        self.catalog = root / "catalog.duckdb"  # the small file that lists what is published
        self.lake = root / "lake"  # immutable run folders of Parquet files
        self.staging = root / "staging"  # scratch of the run in progress
        self.failures = root / "failures"  # rows refused by failed gates, a folder a run
        self.models = root / "models"  # trained evaluators: NAME/VERSION
        self.vectors = root / "vectors"  # cached encodings by encoder signature
        self.judgments = root / "judgments"  # answers of endpoints, a journal for each judge
        self.reports = root / "reports"  # rendered reports

    @classmethod
    def at(cls, root: str | Path) -> Warehouse:
        """The home folder at `root`, which need not exist yet; HomeError if it is no folder, or DuckDB cannot read such
        a path."""
        path = resolved(root, HomeError)
        signs = [sign for sign in str(path) if sign in "*?[]\\" or not sign.isprintable()]
        if signs:
            shown = str(path).encode("utf-8", "backslashreplace").decode()
            raise HomeError(
                f"a home folder cannot lie at {shown!r}: DuckDB does not read paths with {signs[0]!r}; choose another "
                "--home"
            )
        if path.is_symlink() or (path.exists() and not path.is_dir()):  # a link to itself
            raise HomeError(f"{path} is not a folder; choose another --home")
        return cls(path)

    def anew(self, **key: Any) -> Warehouse:
        """The home folder for a stage that makes the partitions with these key fields: any of them whose file is
        missing or has another size counts as not published, so that the stage makes it anew."""
        return Warehouse(self.root, PartitionKey(**key))

    @contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the write lock of the home folder. A new one is created for its owner alone: it holds people's words.

        what: name of the work, shown to processes that want the lock. Waits up to $SSREM_WAIT for another writer, then
        raises HomeError naming it.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = (self.root / ".lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise self._cannot_write(error.strerror) from None
        with handle:  # the kernel releases the lock of a process that dies
            self._acquire(handle)
            about = {"pid": os.getpid(), "host": socket.gethostname(), "what": what}
            about["since"] = f"{datetime.now(UTC):%F %T}"
            with suppress(OSError):  # it only tells others who writes, and on a full disk `prune` must run
                handle.truncate(0)
                os.write(handle.fileno(), json.dumps(about).encode())
            try:
                yield
            finally:
                handle.truncate(0)  # the next holder may be another program, which would not write its name

    def _acquire(self, handle: TextIO) -> None:
        try:
            limit = cast(float, seconds(os.environ.get(VARIABLE) or "0"))
        except ValueError as error:
            raise HomeError(f"${VARIABLE}: {error}") from None
        waiting, deadline = False, time.monotonic() + limit
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _holder(handle)
            who = "process {pid} on {host} ({what} since {since} UTC)" if holder else "another process"
            who = who.format_map(holder)
            if time.monotonic() >= deadline:
                still, waited = (" still", f" after {limit:g} s") if limit else ("", "")
                way_out = "wait longer" if limit else "wait for it to end, or let ssrem do so with --wait 6h"
                raise HomeError(f"{self.root} is{still} in use by {who}{waited}; {way_out}")
            if not waiting:
                say(f"waiting for {who}, which writes to {self.root}")
                waiting = True
            time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))

    def writer(self) -> dict[str, Any] | None:
        """The ssrem process that holds the lock: pid, host, what, since; None if none does, whatever the file says."""
        with suppress(OSError), (self.root / ".lock").open(encoding="utf-8") as handle:
            if holder := _holder(handle):
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return holder
        return None

    def check_writable(self) -> None:
        """Raise HomeError if an existing home folder cannot be written to; called before work that would be lost."""
        if self.root.exists() and not os.access(self.root, os.W_OK | os.X_OK):
            raise self._cannot_write("it is read-only")

    def _cannot_write(self, why: object) -> HomeError:
        return HomeError(f"cannot write to {self.root}: {why}; choose another folder with --home")

    def partitions(self) -> list[Partition]:
        """Partitions of the published snapshot; empty if nothing was published."""
        return self.snapshot().partitions

    def snapshot(self) -> Snapshot:
        """The published snapshot; HomeError if its catalog is missing, cannot be read or has another layout."""
        if os.path.lexists(self.catalog):
            snapshot = catalogs.read_catalog(self.catalog)
            wanted = self.made_anew.values().items()
            own = [p for p in snapshot.partitions if wanted and wanted <= p.key.values().items()]
            damaged = catalogs.find_damage(self.root, own)
            return replace(snapshot, partitions=[p for p in snapshot.partitions if p not in damaged])
        interrupted = {f"run={scratch.name}" for scratch in self.staging.glob("*")}
        if {folder.name.split(".")[0] for folder in self.lake.glob("run=*")} - interrupted:
            raise HomeError(
                f"{self.catalog} is missing, which says what the files in {self.lake} are; {catalogs.OTHERWISE}"
            )
        return Snapshot(0, [])

    @contextmanager
    def reader(self, *, query: str | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the published snapshot, which later publishes do not change, with a view for each table.

        query: create only the views that it names. Raises HomeError naming the file if a query needs a damaged file.
        """
        import duckdb

        with catalogs.engine().cursor() as connection:
            partitions = self.partitions()
            create_views(connection, self.root, partitions, "TEMP VIEW ", query)
            try:
                yield connection
            except duckdb.Error as error:
                raise catalogs.damage_behind(self.root, partitions, error) or error from None

    def query(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows that a query of the published snapshot returns; raises HomeError as `reader` does."""
        with self.reader(query=query) as connection:
            return connection.execute(query, values).fetchall()

    def in_use(self) -> list[tuple[str, int]]:
        """(name, version) of the evaluators in use; raises HomeError as `reader` does."""
        return self.query("SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL")

    def write_catalog(self, partitions: list[Partition]) -> None:
        """Publish the snapshot of these partitions by replacing the catalog in one step; call it under the lock.

        Folders of the lake that fall out of use are touched: `prune` reads from their time how long they are unused.
        """
        before = self.snapshot()
        used = {partition.folder for partition in partitions}
        for folder in {partition.folder for partition in before.partitions} - used:
            if (self.lake / folder).is_dir():
                os.utime(self.lake / folder)
        catalogs.write_catalog(self.catalog, Snapshot(before.number + 1, partitions), utc_now())


def records(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> list[dict[str, Any]]:
    """The rows that a query returns, each as a mapping of column to value."""
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def landed_corpora(
    home: str | Path, chosen: Sequence[str] | None = None, *, even_none: bool = False
) -> list[str]:
    """Names of the chosen corpora, by default of all, oldest first.

    Raises HomeError if a chosen corpus has not landed or, unless `even_none`, if none has.
    """
    return [
        name
        for name in _landed(Warehouse.at(home), chosen or (), even_none=even_none)
        if not chosen or name in chosen
    ]


def landed_corpus(home: Warehouse, corpus: str) -> tuple[str, str]:
    """Content hash and speaker scope of a corpus; HomeError, which lists the landed ones, if it has not landed."""
    return _landed(home, [corpus])[corpus]


def _landed(home: Warehouse, chosen: Sequence[str], *, even_none: bool = True) -> dict[str, tuple[str, str]]:
    """Name of each corpus, oldest first → its content hash and speaker scope; HomeError as in `landed_corpora`."""
    rows = home.query("SELECT corpus, sha256, speaker_scope FROM corpora ORDER BY landed_at")
    corpora = {name: (digest, scope) for name, digest, scope in rows}
    if not corpora and not even_none:
        raise HomeError(f"no corpus has landed in {home.root}; run ssrem ingest SOURCE first")
    for name in chosen:
        if name not in corpora:
            raise HomeError(
                f"no corpus {name!r} has landed in {home.root} (landed: {', '.join(corpora) or 'none yet'})"
                f"{did_you_mean(name, corpora) or '; run ssrem ingest first'}"
            )
    return corpora


def _holder(handle: TextIO) -> dict[str, Any]:
    """What the lock file says; empty unless a process of ssrem wrote it."""
    handle.seek(0)
    try:
        holder = json.loads(handle.read())
        return {key: holder[key] for key in ("pid", "host", "what", "since")}
    except (ValueError, TypeError, KeyError):
        return {}


def checked_name(
    name: str, what: str, way_out: str, error: type[SsremError], reserved: Collection[str] = ()
) -> str:
    """Return `name` if it is valid: one line of printable text that is not a path, and none of `reserved`.

    Otherwise raises `error` that says why `what` cannot have this name, followed by `way_out`.
    """
    longest = 200
    faults = {
        "is empty": not name.strip(),
        f"has more than {longest} characters": len(name) > longest,
        "begins or ends with a blank": name != name.strip(),
        "holds a character that cannot be printed": not name.isprintable(),
        "is one that ssrem uses itself": name in reserved,
        "is a path": "/" in name or "\\" in name or name in (".", ".."),
    }
    if wrong := next((wrong for wrong, found in faults.items() if found), None):
        raise error(f"{what} cannot be called {name[:longest]!r}: the name {wrong}; {way_out}")
    return name
