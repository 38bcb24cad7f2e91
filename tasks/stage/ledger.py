"""The ledger: which runs have published what, so that the same work is not done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssrem import __version__
from ssrem.schemas import TABLES
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import Address, PartitionKey


@dataclass(frozen=True)
class Recipe:
    """What determines the outputs of a run: its parameters, and the content hashes of what it reads."""

    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]

    def key(self, stage: str) -> str:
        """Hash of the stage, the recipe and the version of ssrem: a run with the same key need not be repeated."""
        content = json.dumps([__version__, stage, self.parameters, self.inputs], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()


def already_done(home: Warehouse, stage: str, recipe: Recipe) -> bool:
    """Whether a run of this recipe has published and all its partitions are still published and intact."""
    rows = home.query("SELECT run_id, outputs FROM runs WHERE key = ?", [recipe.key(stage)])
    damaged = {damage.partition for damage in home.damage()}
    current = {(p.address, p.run) for p in home.partitions() if p not in damaged}
    return any(
        all((address, run_id) in current for address in read_outputs(outputs) if address[0] in TABLES)
        for run_id, outputs in rows
    )


def write_outputs(outputs: Sequence[Address]) -> str:
    """The column `outputs` of a run: a JSON list of objects, each a table and the fields of a partition's key."""
    return json.dumps([{"table": table, **key.values()} for table, key in outputs])


def read_outputs(outputs: str) -> list[Address]:
    """What `write_outputs` wrote: the partitions that a run published."""
    return [(row.pop("table"), PartitionKey(**row)) for row in json.loads(outputs)]


def sources(home: Warehouse, tables: Collection[str], keys: Collection[PartitionKey]) -> list[dict[str, Any]]:
    """Which runs wrote the partitions of the tables under the keys: table, fields of the key, and the run's key.

    Unlike a path, a run's key stays the same where a damaged partition is built again. Goes into a recipe's inputs.
    """
    run_keys = dict(home.query("SELECT run_id, key FROM runs"))
    rows = [
        {"table": p.table, **p.key.values(), "run": run_keys.get(p.run, p.path)}
        for p in home.partitions()
        if p.table in tables and p.key in keys
    ]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
