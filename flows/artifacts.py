"""What Prefect's page shows of a run besides its state: tables and gates of its stage, and links."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import artifacts

from ssrem.errors import GateError, say
from ssrem.tasks.query import gate_results, summary, title
from ssrem.tasks.stage.gate import evaluated_by
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.flows.expectations import Gates

SHOWN_ROWS = 20
"""Most rows that are shown of those that broke a rule of a gate."""


@contextmanager
def shown(home: str, stage: str, summaries: Sequence[str]) -> Iterator[None]:
    """Show on Prefect's page the results of the gates in the block, or the rows that broke a rule, and the summaries.

    Great Expectations evaluates these gates and writes its pages into `reports/expectations/STAGE`.
    """
    warehouse = Warehouse.at(home)
    pages = warehouse.reports / "expectations" / stage
    gates: Gates | None = None

    def evaluate(connection: Any, rules: Any) -> list[int]:
        from ssrem.flows.expectations import Gates  # takes seconds to import

        nonlocal gates
        gates = gates or Gates(pages)
        return gates.broken_rows(connection, rules)

    try:
        with evaluated_by(evaluate):
            yield
    except GateError as error:
        for file in sorted(error.folder.glob("[0-9]*.csv")) if error.folder else ():
            with file.open(newline="", encoding="utf-8") as lines:
                rows = list(islice(csv.DictReader(lines), SHOWN_ROWS))
            table(rows, f"gate-{stage}-{file.stem.replace('_', '-')}", str(error))
        raise
    finally:
        if gates:
            try:
                link(gates.write(), f"expectations-{stage}")
            except OSError as error:  # the stage has published its tables, or raises an error of its own
                say(f"{pages}: the pages about gates were not written: {error.strerror or error}")
    for name, rows in summary(warehouse, summaries).items():
        table(rows, name.replace("_", "-"), title(name))
    if results := gate_results(warehouse, stage):
        table(results, f"gate-{stage}", f"results of the gate of {stage}")


def table(rows: Sequence[dict[str, Any]], key: str, description: str) -> None:
    """Show a table; values of types that JSON does not have are shown as text."""
    artifacts.create_table_artifact(json.loads(json.dumps(rows, default=str)), key, description)


def link(path: str | Path, key: str) -> None:
    """Show a link to a file."""
    artifacts.create_link_artifact(Path(path).resolve().as_uri(), key, key=key, description=str(path))
