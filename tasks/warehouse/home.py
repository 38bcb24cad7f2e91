"""The home folder: where things lie, who may write, and which snapshot is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import HomeError
from tasks.warehouse.catalog import (
    LAYOUT,
    DamagedCatalogError,
    create_views,
    draft_catalog,
    other_layout,
    read_catalog,
)
from tasks.warehouse.clock import utc_now
from tasks.warehouse.integrity import Damage, blamed, damage
from tasks.warehouse.lock import holder, locked
from tasks.warehouse.snapshot import (
    KEPT_SNAPSHOTS,
    Partition,
    Snapshot,
    drop_manifests,
    last_number,
    newest_manifest,
    sync_path,
    write_manifest,
)

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Warehouse:
    """A home folder. Nothing is created until something is written."""

    root: Path

    @classmethod
    def at(cls, root: str | Path) -> Warehouse:
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
        with locked(self.root, what):
            yield

    def writer(self) -> dict[str, Any] | None:
        """Who holds the lock: pid, host, what, since; None where nobody does, whatever the file still says."""
        return holder(self.root)

    def parts(self) -> list[Partition]:
        """Parts of the published snapshot; empty where nothing was published."""
        return self.snapshot().parts

    def snapshot(self) -> Snapshot:
        """The published snapshot; where the catalog is damaged or gone, the newest of which the lake has a manifest.

        Raises HomeError where the home folder is of another layout, or damaged beyond that.
        """
        wrong = None
        if self.catalog.exists():
            try:
                return read_catalog(self.catalog)
            except DamagedCatalogError as error:
                wrong = str(error)
        found = newest_manifest(self.lake)
        if found is None:
            if wrong:
                raise HomeError(f"{wrong}; restore it from a backup or use another --home")
            return Snapshot(0, [])
        if found.layout != LAYOUT:
            raise other_layout(self.root, f"layout {found.layout}")
        return Snapshot(found.number, found.parts, wrong or f"{self.catalog} is missing")

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

    def write_catalog(self, parts: list[Partition]) -> None:
        """Publish the snapshot made of `parts`: its manifest goes to the lake, then a new catalog replaces the old one
        in one step. Where either cannot be written, the old one stays and nothing of the new one is left."""
        before = last_number(self.lake)
        if not before:
            with suppress(HomeError):  # of another layout, which an upgrade replaces
                before = self.snapshot().number
        published_at = utc_now()
        snapshot = Snapshot(before + 1, parts)
        manifest = write_manifest(self.lake, LAYOUT, snapshot, published_at)
        try:
            fresh = draft_catalog(self.root, snapshot, published_at)
        except BaseException:
            manifest.unlink(missing_ok=True)
            raise
        fresh.replace(self.catalog)
        sync_path(self.root)
        drop_manifests(self.lake, keep=KEPT_SNAPSHOTS)


def landed_corpora(home: str) -> list[str]:
    """Names of the corpora that have landed, oldest first; HomeError where none has."""
    place = Warehouse.at(home)
    with place.reader() as connection:
        names = [
            name for (name,) in connection.execute("SELECT corpus FROM corpora ORDER BY landed_at").fetchall()
        ]
    if not names:
        raise HomeError(f"no corpus has landed in {place.root}; run ssrem ingest SOURCE first")
    return names
