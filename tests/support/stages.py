"""Runs of a stage for tests: opened with fixed parameters, and a small snapshot to publish."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from support.paths import ROOT
from tasks.stage.ledger import Recipe
from tasks.stage.stage import Output, Stage, open_stage
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

CORPUS = PartitionKey(corpus="a")


def staging(
    home: Warehouse,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> AbstractContextManager[Stage]:
    """`open_stage` with parameters and inputs that do not change."""
    return open_stage(home, name, lambda: Recipe(parameters or {}, inputs or {}), **options)


def publish(
    root: str | Path, number: int, rows: int = 3, *, corpora: bool = True, size: int = 1, **options: Any
) -> str:
    """Publish `rows` conversations of a corpus that has `number` bytes; returns the run's id.

    corpora: whether its row in `corpora` is published with them; size: of each conversation's metadata, in digests.
    """
    with staging(Warehouse.at(root), "ingest", {"number": number}, {"in": "h"}, **options) as stage:
        for table in ("conversations", "corpora"):
            stage.create(table)
        stage.connection.execute(
            "INSERT INTO conversations BY NAME SELECT 'a' AS corpus, $n || '-' || i AS conversation_id, "
            "$n AS conversation_no, $rows AS messages, 1 AS participants, "
            "repeat(md5(i::VARCHAR), $size) AS metadata FROM range($rows) AS r (i)",
            {"n": number, "rows": rows, "size": size},
        )
        stage.connection.execute(
            "INSERT INTO corpora BY NAME SELECT 'a' AS corpus, $n AS bytes, $rows AS conversations",
            {"n": number, "rows": rows},
        )
        tables = ("conversations", "corpora") if corpora else ("conversations",)
        stage.publish([Output(table, CORPUS) for table in tables])
    return stage.run_id


def python(code: str, *arguments: object) -> list[str]:
    """A command that runs the code in a Python of its own, started in ROOT with PYTHONPATH from `ENVIRONMENT`."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the code in a Python of its own that can import the tests' `support`."""
    return subprocess.run(
        python(code, *arguments),
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
