"""Warehouse folders as earlier versions left them, from what `tests/homes` keeps of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb

from tasks.warehouse.home import Warehouse

KEPT = Path(__file__).parents[1] / "homes"
LAYOUTS = sorted(p.name for p in KEPT.iterdir() if p.is_dir())

FUTURE = """
import sys
from dataclasses import replace
import schemas
from schemas.contract import Column
old = schemas.TABLES["evaluators"]
new = Column("looked_at", "TIMESTAMP", "", nullable=True, default="CASE WHEN promoted THEN trained_at END")
more = Column("colour", "VARCHAR", "", nullable=True)
schemas.TABLES["evaluators"] = replace(old, columns=(old.columns[0], new, *old.columns[1:], more))
old = schemas.TABLES["runs"]
schemas.TABLES["runs"] = replace(old, columns=old.columns[::-1])
old = schemas.TABLES["corpora"]
new = Column("host", "VARCHAR", "", nullable=True, default="format || ' here'")
schemas.TABLES["corpora"] = replace(old, columns=(*old.columns, new))
schemas.TABLES["moods"] = replace(schemas.TABLES["set_similarity"], name="moods")
del schemas.TABLES["learning_curves"]
"""
"""Code that makes a version of tomorrow of this one: columns and a table come, a table goes, one has another order."""


def old_home(layout: str, root: Path) -> Warehouse:
    """The kept home folder of that layout in `root`, with a catalog as that version wrote it."""
    shutil.copytree(KEPT / layout / "lake", root / "lake")
    kept = json.loads((KEPT / layout / "home.json").read_text())
    with duckdb.connect(str(root / "catalog.duckdb")) as connection:
        connection.execute("CREATE SCHEMA ssrem")
        connection.execute("CREATE TABLE ssrem.home (layout VARCHAR, published_at TIMESTAMP)")
        connection.execute("INSERT INTO ssrem.home VALUES (?, now()::TIMESTAMP)", [kept["layout"]])
        connection.execute(
            "CREATE TABLE ssrem.parts (table_name VARCHAR, key VARCHAR, path VARCHAR, rows BIGINT)"
        )
        connection.executemany("INSERT INTO ssrem.parts VALUES (?, ?, ?, ?)", kept["parts"])
    return Warehouse.at(root)
