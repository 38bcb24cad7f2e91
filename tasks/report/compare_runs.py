"""Compare two runs on one page, as far as the home folder still holds their data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from sql import statement
from ssrem import __version__
from ssrem.errors import HomeError
from ssrem.report.comparison import Comparison, Side
from ssrem.report.page import render_comparison
from tasks.report.report import put_page
from tasks.stage.ledger import read_outputs
from tasks.stage.steps import step
from tasks.warehouse.catalog import LAYOUT
from tasks.warehouse.clock import utc_now
from tasks.warehouse.home import Warehouse, records
from tasks.warehouse.partition import Address, Partition, PartitionKey
from tasks.warehouse.snapshot import manifests

LATEST = 5
"""Number of runs that an error message lists."""

Version = tuple[str, int]


@step("compare runs")
def write_run_comparison(home: str, first: str, second: str) -> str:
    """Write a comparison of two runs as one HTML file; returns its path.

    first, second: run ids, or prefixes of them. Raises HomeError if a run does not exist or a prefix is ambiguous.
    """
    place = Warehouse.at(home)
    with place.reader() as connection:
        runs = records(connection, "SELECT * FROM runs ORDER BY started")
        sides = [_side(place, connection, find(runs, name, place), runs) for name in (first, second)]
    comparison = Comparison(f"{utc_now():%Y-%m-%d %H:%M} UTC", __version__, str(place.root), *sides)
    names = "-".join(side.run["run_id"] for side in sides)
    return str(put_page(place, f"compare-{names}.html", render_comparison(comparison)))


def find(runs: Sequence[Mapping[str, Any]], name: str, home: Warehouse) -> Mapping[str, Any]:
    """The run of that id, or the only run whose id starts with `name`; HomeError if none or several match."""
    matches = [run for run in runs if run["run_id"] == name] or [
        run for run in runs if name and run["run_id"].startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(f"{run['run_id']} ({run['stage']})" for run in (matches or runs)[-LATEST:][::-1])
    if matches:
        raise HomeError(f"{len(matches)} runs begin with {name!r}; the latest are {listed}")
    if not runs:
        raise HomeError(f"no run has published in {home.root}; ssrem run does")
    raise HomeError(f"no run {name!r} in {home.root}; the latest are {listed}")


def _side(
    home: Warehouse,
    connection: duckdb.DuckDBPyConnection,
    run: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
) -> Side:
    run = {**run, "parameters": json.loads(run["parameters"]), "inputs": json.loads(run["inputs"])}
    addresses = read_outputs(run["outputs"])
    gates = records(
        connection,
        'SELECT table_name AS "table", expectation, passed, rows_checked FROM check_results WHERE run_id = ? '
        "ORDER BY ALL",
        [run["run_id"]],
    )
    partitions = _partitions(home, run["run_id"])
    outputs = list(_outputs(home, addresses, partitions, gates, {r["run_id"]: r["stage"] for r in runs}))
    versions = sorted(set(_versions(run["parameters"], addresses)))
    evaluators = _of_versions(connection, "evaluators", versions)
    lost = [
        f"version {version} of {name}, which is no longer in the table of evaluators"
        for name, version in versions
        if (name, version) not in {(row["evaluator"], row["version"]) for row in evaluators}
    ]
    correlations, gone = _correlations(home, connection, addresses, partitions, versions)
    lost += [f"its correlations of {key}, which a later run replaced" for key in gone]
    uncounted = sorted({row["table"] for row in outputs if row["rows"] is None})
    if uncounted:
        lost.append(f"the number of rows that it wrote to {', '.join(uncounted)}")
    return Side(run, evaluators, correlations, outputs, gates, lost)


def _partitions(home: Warehouse, run_id: str) -> dict[Address, tuple[Partition, bool]]:
    """The partitions of the run whose files still exist, and whether they are published (or of an earlier snapshot)."""
    existing = {}
    earlier = [
        part for manifest in manifests(home.lake) if manifest.layout == LAYOUT for part in manifest.partitions
    ]
    published = home.partitions()
    for part, now in [*((part, False) for part in earlier), *((part, True) for part in published)]:
        if part.run == run_id and (home.root / part.path).exists():
            existing[part.address] = (part, now)
    return existing


def _outputs(
    home: Warehouse,
    addresses: Sequence[Address],
    partitions: Mapping[Address, tuple[Partition, bool]],
    gates: Sequence[Mapping[str, Any]],
    stages: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Table, key, rows and state of each partition that the run wrote.

    Rows come from the partition; if its file is gone, from the gate, which counts the rows of a whole table.
    """
    successors = {part.address: part.run for part in home.partitions()}
    checked = {row["table"]: row["rows_checked"] for row in gates if row["rows_checked"] is not None}
    tables = [table for table, _ in addresses]
    for table, key in addresses:
        part, published = partitions.get((table, key), (None, False))
        later = successors.get((table, key))
        if published:
            state = "published"
        elif later:
            state = f"replaced by {later} ({stages.get(later, 'a run that is not in the ledger')})"
        else:
            state = "no longer published"
        rows = part.rows if part else checked.get(table) if tables.count(table) == 1 else None
        yield {"table": table, "key": str(key), "rows": rows, "state": state}


def _versions(parameters: Mapping[str, Any], addresses: Sequence[Address]) -> Iterator[Version]:
    """Versions of evaluators that the run trained, scored with or compared."""
    for parameter in ("evaluators", "in_use"):
        for name, version in parameters.get(parameter) or []:
            yield str(name), int(version)
    if "evaluator" in parameters and parameters.get("version") is not None:
        yield str(parameters["evaluator"]), int(parameters["version"])
    for table, key in addresses:
        if table == "evaluators" and key.evaluator and key.version:
            yield key.evaluator, key.version


def _correlations(
    home: Warehouse,
    connection: duckdb.DuckDBPyConnection,
    addresses: Sequence[Address],
    partitions: Mapping[Address, tuple[Partition, bool]],
    versions: Sequence[Version],
) -> tuple[list[dict[str, Any]], list[PartitionKey]]:
    """The run's correlations, and the keys of partitions that no longer exist.

    For a run that computed no correlations, those of its evaluators. Human scores are means or single ratings only.
    """
    keys = [key for table, key in addresses if table == "agreement"]
    if not keys:
        rows = _of_versions(connection, "correlations", versions)
    else:
        existing = [partitions["agreement", key][0] for key in keys if ("agreement", key) in partitions]
        paths = [str(home.root / part.path) for part in existing]
        agreement = "WITH agreement AS (SELECT * FROM read_parquet(?, hive_partitioning = false))"
        query = f"{agreement} {statement('views/correlations')} ORDER BY ALL"
        rows = records(connection, query, [paths]) if paths else []
    gone = [key for key in keys if ("agreement", key) not in partitions]
    return [row for row in rows if row["aggregation"] in ("mean", "rating")], gone


def _of_versions(
    connection: duckdb.DuckDBPyConnection, table: str, versions: Sequence[Version]
) -> list[dict[str, Any]]:
    if not versions:
        return []
    names, numbers = (list(column) for column in zip(*versions, strict=True))
    return records(
        connection,
        f"SELECT t.* FROM {table} AS t INNER JOIN (SELECT unnest(?) AS evaluator, unnest(?) AS version) AS v "
        "ON t.evaluator = v.evaluator AND t.version = v.version ORDER BY ALL",
        [names, numbers],
    )
