"""`ssrem status`: the content of a home folder, and its problems."""

from __future__ import annotations

import argparse

from ssrem.cli import output
from ssrem.tasks.maintenance.health import health
from ssrem.tasks.query.summaries import summary
from ssrem.tasks.warehouse.home import Warehouse


def status(options: argparse.Namespace, home: Warehouse) -> None:
    """Show what has landed, how far each corpus is, and what went wrong."""
    names = ["corpora", "progress", "addressees", "quarantine", "annotated", "evaluators"]
    rows = summary(home, names, tolerant=True)
    notes = health(home, deep=options.deep)
    if options.json:
        output.as_json({"home": str(home.root), **rows, "remarks": notes})
        return
    print(f"home: {home.root}\n")
    output.summaries(rows)
    if not home.partitions():
        print("nothing has landed yet; ssrem run lands the corpus that comes with the install")
    for note in notes:
        print(f"note: {note}")
