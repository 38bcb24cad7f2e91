"""Runs of a stage for tests: opened with fixed parameters, and a small snapshot to publish."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.stage import Output, Recipe, Stage, open_stage
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT

CORPUS = PartitionKey(corpus="a")


def staging(
    home: Warehouse,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    resources: Resources | None = None,
) -> AbstractContextManager[Stage]:
    """`open_stage` with parameters and inputs that do not change."""
    return open_stage(home, name, lambda: Recipe(parameters or {}, inputs or {}), resources)


def publish(root: str | Path, number: int, rows: int = 3, *, corpora: bool = True, size: int = 1) -> str:
    """Publish `rows` conversations of a corpus that has `number` bytes; returns the run's id.

    corpora: whether its row in `corpora` is published with them; size: of each conversation's metadata, in digests.
    """
    with staging(Warehouse.at(root), "ingest", {"number": number}, {"in": "h"}) as stage:
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


def start_python(
    code: str, *arguments: object, environment: Mapping[str, str] | None = None, **pipes: Any
) -> subprocess.Popen[str]:
    """Start the code in a Python of its own that can import `support`; its stdout is a pipe."""
    return subprocess.Popen(
        [sys.executable, "-c", dedent(code), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        **pipes,
    )


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`start_python`, waited for."""
    with start_python(code, *arguments, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=180)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextmanager
def held(home: Warehouse) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the lock, as for training, until it is killed or a line comes to its stdin."""
    code = """
        import sys
        from ssrem.tasks.warehouse.home import Warehouse
        with Warehouse.at(sys.argv[1]).lock("train"):
            print("held", flush=True)
            sys.stdin.readline()
        """
    with start_python(code, home.root, stdin=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield other
        other.kill()
