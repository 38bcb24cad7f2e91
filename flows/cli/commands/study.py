"""The verb by which evaluators are studied: what a person reads of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.cli import arguments as given
from flows.cli import output as show
from flows.orchestration import settings
from tasks.warehouse.home import Warehouse


def study(options: argparse.Namespace, home: Warehouse) -> None:
    """Study the evaluators in use, and print the figures and two sentences of each."""
    settings.prepare(home.root)
    from flows.study import study as flow
    from tasks.query.summaries import summary
    from tasks.studies.study import read_study

    pages = flow(
        options.study,
        str(home.root),
        options.of,
        options.evaluator,
        options.responses,
        options.seed,
        **given.room(options),
    )
    rows = summary(home, ["studies"]).get("studies", [])
    rows = [row for row in rows if row["study"] == options.study and row["dataset"] in pages]
    if options.json:
        show.as_json({"studies": rows, "pages": pages})
        return
    for dataset, page in pages.items():
        mine = [row for row in rows if row["dataset"] == dataset]
        shown = [{k: v for k, v in row.items() if k not in ("study", "dataset")} for row in mine]
        show.tables({f"{options.study} of {show.printable(dataset)}": shown})
        for evaluator, sentences in read_study(home, options.study, dataset)[1].items():
            print(f"{evaluator}: {' '.join(sentences)}")
        print(f"page: {Path(page)}\n")
