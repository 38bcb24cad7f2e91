"""The home folder: where things lie, who may write, and which snapshot is published."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from schemas import TABLES, fingerprint
from schemas.layouts import Shapes, from_json, shapes, to_json
from ssrem.errors import HomeError
from tasks.integrity import Damage, blamed, damage, refusing_select
from tasks.snapshot import (
    KEPT_SNAPSHOTS,
    Part,
    Snapshot,
    drop_manifests,
    last_number,
    newest_manifest,
    sync_path,
    write_manifest,
)
from tasks.waiting import POLL_SECONDS, patience

if TYPE_CHECKING:
    import duckdb

__all__ = ["LAYOUT", "Home", "Part", "alive", "create_views", "landed_corpora", "sync_path", "utc_now"]

LAYOUT = f"1-{fingerprint()}"
"""Version of the home folder's files and of the tables' contracts; another one is refused, never guessed at."""


def utc_now() -> datetime:
    """The time now, UTC, without a zone, as the tables hold it."""
    return datetime.now(UTC).replace(tzinfo=None)


class DamagedCatalogError(HomeError):
    """The catalog cannot be read; the lake may still tell what was published."""


@dataclass(frozen=True)
class Home:
    """A home folder. Nothing is created until something is written."""

    root: Path

    @classmethod
    def at(cls, root: str | Path) -> Home:
        """The home folder at `root`, which need not exist yet."""
        return cls(Path(root).expanduser().resolve())

    @property
    def catalog(self) -> Path:
        """The small file of views that readers open."""
        return self.root / "catalog.duckdb"

    @property
    def lake(self) -> Path:
        """Immutable run folders of Parquet files."""
        return self.root / "lake"

    @property
    def staging(self) -> Path:
        """Scratch of the run in progress."""
        return self.root / "staging"

    @property
    def failures(self) -> Path:
        """What failed gates saw, a folder a run."""
        return self.root / "failures"

    @property
    def models(self) -> Path:
        """Trained evaluators: NAME/VERSION."""
        return self.root / "models"

    @property
    def vectors(self) -> Path:
        """Cached encodings by encoder signature."""
        return self.root / "vectors"

    @property
    def reports(self) -> Path:
        """Rendered reports."""
        return self.root / "reports"

    @contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the home folder for writing. The kernel drops the lock of a process that dies.

        Where another writer has it, wait as long as $SSREM_WAIT says; HomeError, naming the holder, after that.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = (self.root / ".lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise HomeError(
                f"cannot write to {self.root}: {error.strerror}; choose another folder with --home"
            ) from None
        with handle:
            self._acquire(handle)
            handle.truncate(0)
            json.dump(
                {
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "what": what,
                    "since": f"{utc_now():%F %T}",
                },
                handle,
            )
            handle.flush()
            yield

    def _acquire(self, handle: TextIO) -> None:
        limit, told = patience(), False
        deadline = time.monotonic() + limit  # whatever happens to the clock on the wall
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                who = _holder(handle.read())
            if time.monotonic() >= deadline:
                waited = f" after {limit:g} s" if limit else ""
                way_out = "wait longer" if limit else "wait for it to end, or let ssrem do so with --wait 6h"
                raise HomeError(f"{self.root} is{' still' * told} in use by {who}{waited}; {way_out}")
            if not told:
                print(f"ssrem: waiting for {who}, which writes to {self.root}", file=sys.stderr, flush=True)
                told = True
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))

    def writer(self) -> dict[str, Any] | None:
        """Who holds the lock: pid, host, what, since; None where nobody does, whatever the file still says."""
        try:
            handle = (self.root / ".lock").open(encoding="utf-8")
        except OSError:
            return None
        with handle:
            text = handle.read()
            held = _held(text)
            if held and held.get("host") == socket.gethostname() and not alive(held.get("pid")):
                return None  # without trying the lock, which would stand in the way of a run that starts just now
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return held or {}
        return None

    def parts(self) -> list[Part]:
        """Parts of the published snapshot; empty where nothing was published."""
        return self.snapshot().parts

    def snapshot(self) -> Snapshot:
        """The published snapshot; where the catalog is damaged or gone, the newest of which the lake has a manifest.

        Raises HomeError where the home folder is of another layout, or damaged beyond that.
        """
        wrong = None
        if self.catalog.exists():
            try:
                with self._read_catalog() as connection:
                    return _published(connection)
            except DamagedCatalogError as error:
                wrong = str(error)
        found = newest_manifest(self.lake)
        if found is None:
            if wrong:
                raise HomeError(f"{wrong}; restore it from a backup or use another --home")
            return Snapshot(0, [])
        if found.layout != LAYOUT:
            raise _other_layout(self.root, f"layout {found.layout}")
        return Snapshot(found.number, found.parts, wrong or f"{self.catalog} is missing")

    @contextmanager
    def _read_catalog(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        try:
            # Attached: connect() would hand out a database that this process has open, even one replaced since.
            connection = duckdb.connect(":memory:")
            quoted = str(self.catalog).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS catalog (READ_ONLY)")
            connection.execute("USE catalog")
        except duckdb.Error as error:
            raise DamagedCatalogError(f"{self.catalog} cannot be opened ({_first_line(error)})") from None
        with connection:
            try:
                row = connection.execute("SELECT layout FROM ssrem.home").fetchone()
            except duckdb.Error:
                row = None
            if row is None:
                raise DamagedCatalogError(f"{self.catalog} has no layout that ssrem wrote")
            if row[0] != LAYOUT:
                raise _other_layout(self.root, f"layout {row[0]}")
            try:
                yield connection
            except duckdb.Error as error:
                raise DamagedCatalogError(f"{self.catalog} cannot be read ({_first_line(error)})") from None

    def check(self) -> None:
        """Raise HomeError where the home folder is of another layout or damaged beyond what the lake tells."""
        self.snapshot()

    def damage(self, *, deep: bool = False) -> list[Damage]:
        """Published parts that are missing, cut short or changed; `deep` reads every one of them through."""
        return damage(self.root, self.parts(), deep=deep)

    def readable(self) -> tuple[Snapshot, list[Damage]]:
        """The published snapshot and what is damaged of it."""
        snapshot = self.snapshot()
        while damaged := damage(self.root, snapshot.parts):
            now = self.snapshot()
            if now.number == snapshot.number:
                return now, damaged
            snapshot = now  # what is missing was collected, for others have published since
        return snapshot, []

    @contextmanager
    def reader(
        self, *, partial: bool = False, snapshot: Snapshot | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the published snapshot: every table a view. Later publishes do not change what it sees.

        Raises HomeError, naming the part, where a query needs one that is damaged; if `partial`, that is left out.
        snapshot: one that was read already.
        """
        import duckdb

        if snapshot is None:
            snapshot, damaged = self.readable()
        else:
            damaged = damage(self.root, snapshot.parts)
        parts = snapshot.parts
        if partial:
            wrong = {one.part for one in damaged}
            parts, damaged = [part for part in parts if part not in wrong], []
        with duckdb.connect(":memory:") as connection:
            create_views(connection, self.root, parts, damaged=damaged)
            try:
                yield connection
            except duckdb.Error as error:
                raise blamed(self.root, parts, error) or error from None

    def write_catalog(self, parts: list[Part]) -> None:
        """Publish the snapshot made of `parts`: its manifest goes to the lake, then a new catalog replaces the old one
        in one step. Where either cannot be written, the old one stays and nothing of the new one is left."""
        import duckdb

        fresh = self.root / ".catalog.tmp"
        with suppress(FileNotFoundError):
            fresh.unlink()
        before = last_number(self.lake)
        if not before:
            with suppress(HomeError):  # of another layout, which an upgrade replaces
                before = self.snapshot().number
        published_at = utc_now()
        snapshot = Snapshot(before + 1, parts)
        manifest = write_manifest(self.lake, LAYOUT, snapshot, published_at)
        try:
            with duckdb.connect(str(fresh)) as connection:
                connection.execute("CREATE SCHEMA ssrem")
                connection.execute("CREATE TABLE ssrem.contracts (shapes VARCHAR)")
                connection.execute(
                    "INSERT INTO ssrem.contracts VALUES (?)", [to_json(shapes(TABLES.values()))]
                )
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
                create_views(connection, self.root, parts)
            sync_path(fresh)
        except BaseException:
            manifest.unlink(missing_ok=True)
            for draft in (fresh, fresh.with_name(f"{fresh.name}.wal")):
                draft.unlink(missing_ok=True)
            raise
        fresh.replace(self.catalog)
        sync_path(self.root)
        drop_manifests(self.lake, keep=KEPT_SNAPSHOTS)


def layout_of(catalog: Path) -> str:
    """Layout that a catalog is of; HomeError where it cannot be read or says none."""
    rows = _ask(catalog, "SELECT layout FROM ssrem.home")
    if not rows:
        raise HomeError(f"{catalog} has no layout; restore it from a backup or use another --home")
    return str(rows[0][0])


def read_parts(catalog: Path) -> list[Part]:
    """Parts that a catalog lists, of whatever layout; HomeError where it cannot be read."""
    known = _ask(catalog, "SELECT column_name FROM duckdb_columns() WHERE table_name = 'parts'")
    digests = ", bytes, sha256" if ("sha256",) in known else ""
    return [
        Part(*row)
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


def landed_corpora(home: str) -> list[str]:
    """Names of the corpora that have landed, oldest first; HomeError where none has."""
    place = Home.at(home)
    with place.reader() as connection:
        names = [
            name for (name,) in connection.execute("SELECT corpus FROM corpora ORDER BY landed_at").fetchall()
        ]
    if not names:
        raise HomeError(f"no corpus has landed in {place.root}; run ssrem ingest SOURCE first")
    return names


def create_views(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    parts: list[Part],
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


def _published(connection: duckdb.DuckDBPyConnection) -> Snapshot:
    cursor = connection.execute("SELECT * FROM ssrem.parts ORDER BY ALL")
    names = ["table" if d[0] == "table_name" else d[0] for d in cursor.description or []]
    parts = [Part(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
    cursor = connection.execute("SELECT * FROM ssrem.home")
    row = dict(zip([d[0] for d in cursor.description or []], cursor.fetchone() or (), strict=True))
    return Snapshot(row.get("snapshot", 0), parts)  # the catalogs of older versions count nothing


def _other_layout(root: Path, found: str) -> HomeError:
    return HomeError(
        f"{root} has {found}, this version of ssrem reads layout {LAYOUT}; run ssrem upgrade, or use another --home"
    )


def _holder(text: str) -> str:
    try:
        held = json.loads(text)
        return f"process {held['pid']} on {held['host']} ({held['what']} since {held['since']} UTC)"
    except (ValueError, KeyError):
        return "another process"


def _held(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(text)
        return found if isinstance(found, dict) else {}
    return {}


def alive(pid: object) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]
