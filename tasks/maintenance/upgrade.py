"""Upgrade: a home folder of an older layout becomes one of this, where only columns or tables have come or gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from schemas import TABLES, first_layout
from schemas.layouts import Shapes, changed, migrating_select, obstacles
from ssrem import __version__
from ssrem.errors import GateError, HomeError
from tasks.stage.ledger import run_key
from tasks.stage.stage import Stage, open_stage, write_parquet
from tasks.warehouse.catalog import LAYOUT, layout_of, read_parts, read_shapes
from tasks.warehouse.home import Warehouse
from tasks.warehouse.replicas import keep_twice
from tasks.warehouse.snapshot import Partition, sync_path

SHOWN_OBSTACLES = 3


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade did: layouts, tables whose files were written anew, and the copy of the old catalog."""

    old: str
    new: str
    tables: list[str]
    kept: Path


def upgrade(home: Warehouse) -> Upgraded | None:
    """Bring a home folder to this version's layout; None where it has it already, or nothing is published.

    Files of tables whose columns differ are written anew, checked by the gate and published in one step. The old files
    and a copy of the old catalog stay. What has been done counts as done. HomeError, in one line, where the layout is
    unknown or cannot be carried over.
    """
    if not home.catalog.exists():
        return None
    old = layout_of(home.catalog)
    if old == LAYOUT:
        return None
    shapes = _shapes(home, old)
    if found := obstacles(shapes, TABLES):
        more = f" (and {len(found) - SHOWN_OBSTACLES} more)" if len(found) > SHOWN_OBSTACLES else ""
        raise HomeError(
            f"{home.root} has layout {old}, which cannot become {LAYOUT}: {'; '.join(found[:SHOWN_OBSTACLES])}{more}; "
            "read it with the version of ssrem that made it, and land its dumps in another --home with this one"
        )
    tables = changed(shapes, TABLES)
    written: list[Path] = []
    kept = home.root / f"catalog.{old}.duckdb"
    try:
        with open_stage(
            home,
            "upgrade",
            {"from": old, "to": LAYOUT},
            {},
            published=lambda connection: _rewritten(home, connection, shapes, tables, written),
        ) as stage:
            if layout_of(home.catalog) == LAYOUT:
                return None
            _same_keys(stage)
            for table in set(tables) - {"runs", "check_results"}:  # those are staged when it publishes
                stage.connection.execute(f"CREATE VIEW main.{table} AS SELECT * FROM published.{table}")
                stage.staged.append(table)
            stage.gate()
            draft = kept.with_suffix(".tmp")
            shutil.copyfile(home.catalog, draft)
            sync_path(draft)
            draft.replace(kept)
            stage.publish([])
            written.clear()
    finally:
        for folder in written:  # nothing points at them
            shutil.rmtree(folder, ignore_errors=True)
    return Upgraded(old, LAYOUT, tables, kept)


def _shapes(home: Warehouse, layout: str) -> Shapes:
    """Shapes of the published tables."""
    found = read_shapes(home.catalog)
    if found is None and layout == first_layout.NAME:
        found = first_layout.SHAPES
    if found is None:
        raise HomeError(
            f"{home.root} has layout {layout}, which ssrem {__version__} does not know; read it with the version of "
            "ssrem that made it, and land its dumps in another --home with this one"
        )
    return found


def _rewritten(
    home: Warehouse,
    connection: duckdb.DuckDBPyConnection,
    shapes: Shapes,
    tables: list[str],
    written: list[Path],
) -> list[Partition]:
    """The published parts, those of `tables` by their contracts of today, in new folders, which `written` lists."""
    if layout_of(home.catalog) == LAYOUT:  # another upgrade was faster
        return home.parts()
    folders: dict[str, tuple[Path, Path]] = {}
    parts = []
    for part in read_parts(home.catalog):
        if part.table not in TABLES:
            continue  # a table that is gone
        if part.table in tables:
            name = f"run={part.run}.{LAYOUT.replace('.', '-')}"
            draft, _ = folders.setdefault(name, (home.lake / f".{name}.tmp", home.lake / name))
            draft.mkdir(exist_ok=True)
            file = Path(part.path).name
            _rewrite(home, connection, shapes, part, draft / file)
            path = f"lake/{name}/{file}"
            parts.append(Partition.of(home.root, part.table, part.key, path, part.rows, at=draft / file))
            keep_twice(part.table, draft / file)
        else:
            parts.append(part)
    for draft, final in folders.values():
        if final.exists():  # left by an upgrade that was killed before it published
            shutil.rmtree(final)
        sync_path(draft)
        draft.rename(final)
        written.append(final)
    return parts


def _rewrite(
    home: Warehouse, connection: duckdb.DuckDBPyConnection, shapes: Shapes, part: Partition, target: Path
) -> None:
    table = TABLES[part.table]
    source = f"read_parquet('{_quoted(home.root / part.path)}', hive_partitioning = false)"
    select = migrating_select(shapes[part.table], table, source)
    write_parquet(connection, table, select, target)
    found = connection.execute(f"SELECT count(*) FROM read_parquet('{_quoted(target)}')").fetchone()
    if found != (part.rows,):
        raise GateError(f"{part.path} should have {part.rows:,} rows; nothing was upgraded; see ssrem status")


def _same_keys(stage: Stage) -> None:
    """Make the runs of the older version count as done by this one: an upgrade changes no result."""
    stage.connection.execute("CREATE TABLE main.older_runs AS SELECT * FROM published.runs")
    rows = stage.connection.execute(
        "SELECT run_id, stage, key, parameters, inputs FROM older_runs ORDER BY started"
    ).fetchall()
    keys: dict[str, str] = {}
    by_run: dict[str, str] = {}
    for run_id, name, old, asked, read in rows:
        inputs = json.loads(read)
        if isinstance(inputs.get("tables"), list):
            inputs["tables"] = _made_by(stage.parts, inputs["tables"], keys, by_run)
        keys[old] = by_run[run_id] = run_key(name, json.loads(asked), inputs)
        stage.connection.execute(
            "UPDATE older_runs SET key = ?, inputs = ? WHERE run_id = ?",
            [by_run[run_id], json.dumps(inputs, sort_keys=True), run_id],
        )
    stage.connection.execute("CREATE OR REPLACE VIEW published.runs AS SELECT * FROM main.older_runs")


def _made_by(
    parts: Sequence[Partition], tables: Sequence[str], keys: Mapping[str, str], by_run: Mapping[str, str]
) -> list[str]:
    """What a run's speaker tables were made by, as `tasks.stage.stage.made_by` tells it with the keys of today.

    The first layout told the paths of the candidates; those that are not published any more stay as they are.
    """
    found = []
    for told in tables:
        corpus = next((p.key for p in parts if p.table == "candidates" and p.origin == told), None)
        if corpus is None:
            *who, key = told.split(" ")
            found.append(" ".join([*who, keys.get(key, key)]))
            continue
        of_corpus = [p for p in parts if p.key == corpus and p.table in ("candidates", "corpora")]
        found += [f"{p.table} {p.key} {by_run.get(p.run, p.path)}" for p in of_corpus]
    return sorted(found)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
