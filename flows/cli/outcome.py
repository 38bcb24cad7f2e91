"""What a person reads after a command: what was done, and the summaries of what there is."""

from __future__ import annotations

import argparse
from typing import Any

from flows.cli import output as show
from tasks.warehouse.home import Warehouse


def after(options: argparse.Namespace, home: Warehouse, names: list[str], done: dict[str, str]) -> None:
    """Print what was done to what, and the summaries named."""
    from tasks.query.summaries import summary

    found = summary(home, names)
    if options.json:
        show.as_json({"done": done, **found})
        return
    for name, what in done.items():
        print(f"{name}: {what}")
    print()
    summaries(found)


def summaries(found: dict[str, list[dict[str, Any]]]) -> None:
    """The summaries as tables; signatures, which no table has room for, below that of the evaluators."""
    from tasks.query.summaries import title

    for name, rows in found.items():
        show.tables({title(name): [{k: v for k, v in row.items() if k != "signature"} for row in rows]})
        if name == "evaluators":
            for row in rows:
                print(f"{row['evaluator']} version {row['version']}: {row['signature']}")
            print()
