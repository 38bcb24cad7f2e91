"""Compare two runs on one page, as far as the home folder still holds their data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from ssrem import __version__
from ssrem.errors import HomeError
from ssrem.report.comparison import Comparison, Side
from ssrem.report.page import render_comparison
from ssrem.sql import statement
from ssrem.tasks.report.report import put_page
from ssrem.tasks.stage.ledger import read_outputs
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.catalog import LAYOUT
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.home import Warehouse, records
from ssrem.tasks.warehouse.partition import Address
from ssrem.tasks.warehouse.snapshot import manifests

LATEST = 5
"""Number of runs that an error message lists."""

Version = tuple[str, int]


@step("compare runs")
def write_run_comparison(home: str, first: str, second: str) -> str:
    """Write a comparison of two runs as one HTML file; returns its path.

    first, second: run ids, or prefixes of them. Raises HomeError if a run does not exist or a prefix is ambiguous.
    """
    warehouse = Warehouse.at(home)
    with warehouse.reader() as connection:
        runs = records(connection, "SELECT * FROM runs ORDER BY started")
        sides = [_side(warehouse, connection, find(runs, name, warehouse), runs) for name in (first, second)]
    comparison = Comparison(f"{utc_now():%Y-%m-%d %H:%M} UTC", __version__, str(warehouse.root), *sides)
    names = "-".join(side.run["run_id"] for side in sides)
    return str(put_page(warehouse, f"compare-{names}.html", render_comparison(comparison)))


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
    earlier = [
        p for manifest in manifests(home.lake) if manifest.layout == LAYOUT for p in manifest.partitions
    ]
    partitions = {
        part.address: part
        for part in (*earlier, *home.partitions())
        if part.run == run["run_id"] and (home.root / part.path).exists()
    }
    gates = records(
        connection,
        'SELECT table_name AS "table", expectation, passed, rows_checked FROM check_results WHERE run_id = ? '
        "ORDER BY ALL",
        [run["run_id"]],
    )
    published = {part.address: part.run for part in home.partitions()}
    stages = {row["run_id"]: row["stage"] for row in runs}
    outputs: list[dict[str, Any]] = [
        {
            **{"table": address[0], "key": str(address[1])},
            "rows": partitions[address].rows if address in partitions else None,
            "state": _state(run["run_id"], published.get(address), stages),
        }
        for address in addresses
    ]
    rows_checked = {row["table"]: row["rows_checked"] for row in gates}
    tables = Counter(row["table"] for row in outputs)
    for row in outputs:
        if row["rows"] is None and tables[row["table"]] == 1:  # a gate counts the rows of a whole table
            row["rows"] = rows_checked.get(row["table"])
    versions = sorted(set(_versions(run["parameters"], addresses)))
    evaluators = _of_versions(connection, "evaluators", versions)
    lost = [
        f"version {version} of {name}, which is no longer in the table of evaluators"
        for name, version in versions
        if (name, version) not in {(row["evaluator"], row["version"]) for row in evaluators}
    ]
    keys = [key for table, key in addresses if table == "agreement"]
    if keys:
        existing = [partitions["agreement", key] for key in keys if ("agreement", key) in partitions]
        correlations = _correlations(connection, [str(home.root / part.path) for part in existing])
        gone = [key for key in keys if ("agreement", key) not in partitions]
        lost += [f"its correlations of {key}, which a later run replaced" for key in gone]
    else:  # the run computed none: those of its evaluators
        correlations = _of_versions(connection, "correlations", versions)
    correlations = [row for row in correlations if row["aggregation"] in ("mean", "rating")]
    uncounted = sorted({row["table"] for row in outputs if row["rows"] is None})
    if uncounted:
        lost.append(f"the number of rows that it wrote to {', '.join(uncounted)}")
    return Side(run, evaluators, correlations, outputs, gates, lost)


def _state(run_id: str, published_by: str | None, stages: Mapping[str, str]) -> str:
    """Whether the run's partition is still published, in words; published_by: the run that published the current
    one."""
    if published_by == run_id:
        return "published"
    if published_by is None:
        return "no longer published"
    return f"replaced by {published_by} ({stages.get(published_by, 'a run that is not in the ledger')})"


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


def _correlations(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> list[dict[str, Any]]:
    """The view `correlations` of the figures in these files."""
    agreement = "WITH agreement AS (SELECT * FROM read_parquet(?, hive_partitioning = false))"
    query = f"{agreement} {statement('views/correlations')} ORDER BY ALL"
    return records(connection, query, [paths]) if paths else []


def _of_versions(
    connection: duckdb.DuckDBPyConnection, table: str, versions: Sequence[Version]
) -> list[dict[str, Any]]:
    """The rows of the table that belong to these versions of evaluators."""
    return records(
        connection,
        f"SELECT * FROM {table} "
        "WHERE (evaluator, version) IN (SELECT unnest(?::VARCHAR[]), unnest(?::BIGINT[])) ORDER BY ALL",
        [[name for name, _ in versions], [version for _, version in versions]],
    )
