"""`ssrem study`: what else than quality the scores of evaluators depend on."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.cli import arguments, output
from flows.cli.start import flow
from ssrem.errors import printable
from tasks.query.summaries import summary
from tasks.training.versions import promoted
from tasks.warehouse.home import Warehouse


def study(options: argparse.Namespace, home: Warehouse) -> None:
    """Study the evaluators in use; print the figures and, for each evaluator, what they say."""
    promoted(home, options.evaluator or ())
    pages = flow("study")(
        options.study,
        str(home.root),
        options.of,
        options.evaluator,
        options.responses,
        options.seed,
        arguments.resources(options),
    )
    rows = summary(home, ["studies"]).get("studies", [])
    rows = [row for row in rows if row["study"] == options.study and row["dataset"] in pages]
    if options.json:
        output.as_json({"studies": rows, "pages": pages})
        return
    from tasks.studies.study import read_study  # imports Prefect

    for dataset, page in pages.items():
        of_dataset = [row for row in rows if row["dataset"] == dataset]
        shown = [{k: v for k, v in row.items() if k not in ("study", "dataset")} for row in of_dataset]
        output.tables({f"{options.study} of {printable(dataset)}": shown})
        for evaluator, sentences in read_study(home, options.study, dataset)[1].items():
            print(f"{evaluator}: {' '.join(sentences)}")
        print(f"page: {Path(page)}\n")
