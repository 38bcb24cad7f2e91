"""The home folder: its paths, its lock, and its published snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ssrem.errors import HomeError
from ssrem.files import resolved
from ssrem.tasks.warehouse.catalog import (
    LAYOUT,
    DamagedCatalogError,
    OtherLayoutError,
    create_views,
    draft_catalog,
    names_in,
    publish_catalog,
    read_catalog,
)
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.files import sync_path
from ssrem.tasks.warehouse.integrity import Damage, damage_behind, find_damage
from ssrem.tasks.warehouse.lock import lock_holder, locked
from ssrem.tasks.warehouse.partition import Partition
from ssrem.tasks.warehouse.snapshot import (
    KEPT_SNAPSHOTS,
    Snapshot,
    drop_manifests,
    last_number,
    manifests,
    write_manifest,
)

if TYPE_CHECKING:
    import duckdb

_PATTERN_SIGNS = "*?[]\\"
"""Signs in a path that make it a pattern for DuckDB, which may match the files of another home folder."""

Values = Sequence[Any] | Mapping[str, Any]
"""Values of a query's parameters, by position or by name."""


@dataclass(frozen=True)
class Warehouse:
    """A home folder. It is created by the first write."""

    root: Path

    @classmethod
    def at(cls, root: str | Path) -> Warehouse:
        """The home folder at `root`, which need not exist yet; HomeError if it is no folder, or DuckDB cannot read such
        a path."""
        path = resolved(root, HomeError)
        text = str(path)
        if unreadable := next(
            (sign for sign in text if sign in _PATTERN_SIGNS or not sign.isprintable()), None
        ):
            shown = text.encode("utf-8", "backslashreplace").decode()
            raise HomeError(
                f"a home folder cannot lie at {shown!r}: DuckDB does not read paths with {unreadable!r}; choose "
                "another --home"
            )
        if path.is_symlink() or (path.exists() and not path.is_dir()):  # a link to itself
            raise HomeError(f"{path} is not a folder; choose another --home")
        return cls(path)

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
        """Rows refused by failed gates, a folder a run."""
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
    def judgments(self) -> Path:
        """Answers of endpoints, a journal for each judge."""
        return self.root / "judgments"

    @property
    def reports(self) -> Path:
        """Rendered reports."""
        return self.root / "reports"

    def lock(self, what: str) -> AbstractContextManager[None]:
        """Hold the home folder for writing; see `ssrem.tasks.warehouse.lock.locked`."""
        return locked(self.root, what)

    def writer(self) -> dict[str, Any] | None:
        """Who holds the lock: pid, host, what, since; None where nobody does."""
        return lock_holder(self.root)

    def partitions(self) -> list[Partition]:
        """Partitions of the published snapshot; empty where nothing was published."""
        return self.snapshot().partitions

    def snapshot(self) -> Snapshot:
        """The published snapshot; if the catalog is damaged or missing, that of the newest manifest in the lake.

        Raises HomeError if the home folder has another layout, or no manifest can replace a damaged catalog.
        """
        damage = None
        if self.catalog.exists():
            try:
                return read_catalog(self.catalog)
            except DamagedCatalogError as error:
                damage = str(error)
        newest = next(manifests(self.lake), None)
        if newest is None:
            if damage:
                raise HomeError(f"{damage}; restore it from a backup or use another --home")
            return Snapshot(0, LAYOUT, [])
        if newest.layout != LAYOUT:
            raise OtherLayoutError(self.root, newest.layout)
        return replace(newest, damage=damage or f"{self.catalog} is missing")

    def damage(self, *, deep: bool = False) -> list[Damage]:
        """Published partitions that are missing, truncated or changed; `deep` reads all of them completely."""
        return find_damage(self.root, self.partitions(), deep=deep)

    def readable(self) -> tuple[Snapshot, list[Damage]]:
        """The published snapshot, and its damaged partitions."""
        snapshot = self.snapshot()
        while damaged := find_damage(self.root, snapshot.partitions):
            now = self.snapshot()
            if now.number == snapshot.number:
                return now, damaged
            snapshot = now  # another run has published since; what is missing was deleted as garbage
        return snapshot, []

    @contextmanager
    def reader(
        self, *, partial: bool = False, snapshot: Snapshot | None = None, query: str | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the published snapshot, with a view for each table. Later publishes do not change what it
        sees.

        Raises HomeError, naming the partition, if a query needs a damaged one. partial: damaged partitions are left out
        instead. snapshot: another snapshot to read, in a database of its own, so that settings of the connection do not
        affect other readers. query: if given, only its views are created.
        """
        import duckdb

        connect = _database if snapshot is None else _Database
        if snapshot is None:
            snapshot, damaged = self.readable()
        else:
            damaged = find_damage(self.root, snapshot.partitions)
        partitions = snapshot.partitions
        if partial:
            left_out = {damage.partition for damage in damaged}
            partitions, damaged = [p for p in partitions if p not in left_out], []
        root = self.root if partitions else Path()  # views of nothing are the same in any home
        with connect(root, tuple(partitions), tuple(damaged)).cursor(query) as connection:
            try:
                yield connection
            except duckdb.Error as error:
                raise damage_behind(self.root, partitions, error) or error from None

    def query(self, query: str, values: Values = (), *, partial: bool = False) -> list[tuple[Any, ...]]:
        """Rows of the answer to a query of the published snapshot; raises, and takes `partial`, as `reader` does."""
        with self.reader(partial=partial, query=query) as connection:
            return connection.execute(query, values).fetchall()

    def write_catalog(self, partitions: list[Partition]) -> None:
        """Publish the snapshot of these partitions: its manifest goes to the lake, then a new catalog replaces the old.

        If either cannot be written, the old catalog stays and the new manifest is deleted.
        """
        before = last_number(self.lake) or self.snapshot().number
        published_at = utc_now()
        snapshot = Snapshot(before + 1, LAYOUT, partitions)
        manifest = write_manifest(self.lake, snapshot, published_at)
        try:
            draft = draft_catalog(self.root, snapshot, published_at)
        except BaseException:
            manifest.unlink(missing_ok=True)
            raise
        publish_catalog(draft, self.catalog, snapshot)
        sync_path(self.root)
        drop_manifests(self.lake, keep=KEPT_SNAPSHOTS)


class _Database:
    """A database in memory with views of a snapshot, which are created when a query first names them."""

    def __init__(self, root: Path, partitions: tuple[Partition, ...], damaged: tuple[Damage, ...]) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:")
        # Otherwise it would keep in memory everything that was read.
        self._connection.execute("SET enable_external_file_cache = false")
        self._of, self._created, self._lock = (root, partitions, damaged), set[str](), Lock()

    def cursor(self, query: str | None) -> duckdb.DuckDBPyConnection:
        """A connection with the views that the query names, or with all."""
        root, partitions, damaged = self._of
        with self._lock:
            names = names_in(query) - self._created
            create_views(self._connection, root, partitions, damaged=damaged, names=names)
            self._created |= names
        return self._connection.cursor()


@lru_cache(maxsize=2)
def _database(root: Path, partitions: tuple[Partition, ...], damaged: tuple[Damage, ...]) -> _Database:
    """The database that readers of the newest snapshot share, and that of readers of no snapshot: a run with nothing to
    do opens dozens of connections, and creating the views takes longer than the queries."""
    return _Database(root, partitions, damaged)


def records(connection: duckdb.DuckDBPyConnection, query: str, values: Values = ()) -> list[dict[str, Any]]:
    """The answer to a query, a mapping of column to value for each row."""
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
