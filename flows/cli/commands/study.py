"""`ssrem study`: what the scores of evaluators depend on besides quality."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.cli import arguments, output
from flows.cli.start import flow
from ssrem.errors import AnnotationError, printable
from ssrem.evaluators import evaluator_class
from ssrem.registry import did_you_mean
from ssrem.studies import EVERYDAY_PAIRS
from tasks.query.summaries import summary
from tasks.scoring.endpoint_requests import bill_row, request_options_in, split
from tasks.training.versions import created, ready, to_study
from tasks.warehouse.home import Warehouse


def study(options: argparse.Namespace, home: Warehouse) -> None:
    """Study the evaluators in use; print the figures and, for each evaluator, two sentences about them."""
    _check_datasets(home, options.of or ())
    names = to_study(home, options.evaluator or ())
    settings = arguments.evaluator_settings(options)
    own, requests = split(names, settings)
    ready(home, names, own)
    if options.dry_run:
        _show_bills(options, home, [name for name in names if evaluator_class(name).asks], own, requests)
        return
    pages = flow("study")(
        options.study,
        str(home.root),
        options.of,
        options.evaluator,
        options.responses,
        options.seed,
        settings or None,
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


def _show_bills(
    options: argparse.Namespace,
    home: Warehouse,
    names: list[str],
    own: dict[str, Any],
    requests: dict[str, Any],
) -> None:
    from tasks.studies.source import StudySettings  # imports Prefect
    from tasks.studies.study import datasets_of, samples_of

    settings = StudySettings(options.study, options.responses, options.seed)
    with request_options_in(home, **requests):
        evaluators = {name: created(home, name, own.get(name)) for name in names}
        rows = [
            bill_row(name, evaluator, samples, dataset)
            for dataset in options.of or datasets_of(str(home.root), options.study)
            for samples in [samples_of(home, dataset, settings)]
            for name, evaluator in evaluators.items()
        ]
    output.bills(rows, options)


def _check_datasets(home: Warehouse, names: Sequence[str]) -> None:
    """Raise AnnotationError for a name that is neither a corpus nor an annotated set."""
    known = {name for p in home.partitions() for name in (p.key.corpus, p.key.dataset) if name}
    for name in names:
        if name not in known and name != EVERYDAY_PAIRS:
            raise AnnotationError(
                f"no corpus or annotated set {name!r} in {home.root} (there are: {', '.join(sorted(known))})"
                f"{did_you_mean(name, known)}"
            )
