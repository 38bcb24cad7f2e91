"""Artifacts on Prefect's page of a run: progress, the tables and gate of a stage, and the link of the report."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from ssrem.errors import GateError
from ssrem.tasks.query.summaries import gate_results, summary, title
from ssrem.tasks.stage.progress import Advance, listening
from ssrem.tasks.stage.steps import in_flow_run
from ssrem.tasks.warehouse.home import Warehouse

SHOWN_ROWS = 20
"""Rows shown of each file that a failed gate wrote."""
EVERY = 2.0
"""Seconds between two updates of a progress artifact."""


@contextmanager
def stage_artifacts(home: str, stage: str, summaries: Sequence[str]) -> Iterator[None]:
    """In a flow run, show the progress of the block, then the named summaries and the gate's results, as artifacts."""
    if not in_flow_run():
        yield
        return
    from prefect.artifacts import create_markdown_artifact, create_table_artifact

    try:
        with listening(_progress):
            yield
    except GateError as error:
        create_markdown_artifact(_failed(error), key=f"gate-{stage}", description=str(error))
        raise
    warehouse = Warehouse.at(home)
    for name, rows in summary(warehouse, summaries).items():
        create_table_artifact(_plain(rows), key=name.replace("_", "-"), description=title(name))
    if results := gate_results(warehouse, stage):
        create_table_artifact(
            _plain(results), key=f"gate-{stage}", description=f"results of the gate of {stage}"
        )


def link_report(path: str) -> None:
    """In a flow run, show the report's link."""
    if in_flow_run():
        from prefect.artifacts import create_link_artifact

        create_link_artifact(
            Path(path).resolve().as_uri(), key="report", link_text="report", description=path
        )


def _progress(what: str, total: float | None) -> Advance:
    """A progress artifact, created once a share of the work is done and updated every few seconds."""
    from prefect.artifacts import create_progress_artifact, update_progress_artifact

    artifact: Any = None
    latest = time.monotonic()
    flow_run = copy_context()  # readers report their progress from a thread of their own

    def advance(done: float, new_total: float | None = None, note: str = "") -> None:
        nonlocal artifact, latest
        end = new_total or total
        if not end or time.monotonic() - latest < EVERY:
            return
        latest = time.monotonic()
        share = min(100.0, 100 * done / end)
        if artifact is None:
            create = partial(create_progress_artifact, share, key="progress", description=what)
            artifact = flow_run.copy().run(create)
        else:
            flow_run.copy().run(update_progress_artifact, artifact, share)

    return advance


def _failed(error: GateError) -> str:
    """The gate's message and the first rows that violate it, as Markdown."""
    lines = [str(error), ""]
    for file in sorted(error.folder.glob("[0-9]*.csv")) if error.folder else ():
        with file.open(newline="", encoding="utf-8") as handle:
            rows = [row for row, _ in zip(csv.reader(handle), range(SHOWN_ROWS + 1), strict=False)]
        lines += [f"`{file.name}`", "", _row(rows[0]), _row(["---"] * len(rows[0]))]
        lines += [*map(_row, rows[1:]), ""]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _plain(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the types of JSON."""
    json_rows: list[dict[str, Any]] = json.loads(json.dumps(rows, default=str))
    return json_rows
