"""The ledger: what has run already, and what was made by which run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from schemas import TABLES
from ssrem import __version__
from tasks.warehouse.home import Warehouse


def run_key(stage: str, parameters: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Hash of what determines a run's outputs: the same stage, parameters, inputs and version run once."""
    content = json.dumps([__version__, stage, parameters, inputs], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def already_done(
    home: Warehouse, stage: str, parameters: Mapping[str, Any], inputs: Mapping[str, Any]
) -> bool:
    """Whether a run with this key has published and all its parts are still the current ones."""
    with home.reader() as connection:
        rows = connection.execute(
            "SELECT run_id, outputs FROM runs WHERE key = ?", [run_key(stage, parameters, inputs)]
        ).fetchall()
    current = {(p.table, p.key, p.run) for p in home.parts()}
    current -= {(d.part.table, d.part.key, d.part.run) for d in home.damage()}
    return any(
        all((table, key, run_id) in current for table, key in json.loads(outputs) if table in TABLES)
        for run_id, outputs in rows
    )


def made_by(home: Warehouse, table: str, corpora: Sequence[str]) -> list[str]:
    """What the corpora's parts of `table`, made from what landed, are made of: the keys of the runs that made both.

    Unlike their paths they stay the same where a damaged part is made again.
    """
    parts = [p for p in home.parts() if p.table in (table, "corpora") and p.key in corpora]
    with home.reader() as connection:
        keys = dict(connection.execute("SELECT run_id, key FROM runs").fetchall())
    return sorted(f"{p.table} {p.key} {keys.get(p.run, p.path)}" for p in parts)
