"""`ssrem study`: what the scores of evaluators depend on besides quality."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ssrem.cli import arguments, bills, output
from ssrem.cli.start import flow
from ssrem.errors import AnnotationError, printable
from ssrem.registry import did_you_mean
from ssrem.studies import EVERYDAY_PAIRS
from ssrem.tasks.query.summaries import summary
from ssrem.tasks.scoring.endpoint_requests import split_settings
from ssrem.tasks.studies.source import StudySettings
from ssrem.tasks.studies.study import datasets_of, read_study, samples_of
from ssrem.tasks.training.versions import to_register, to_study
from ssrem.tasks.warehouse.home import Warehouse


def study(options: argparse.Namespace, home: Warehouse) -> None:
    """Study the evaluators in use; print the figures and, for each evaluator, two sentences about them."""
    _check_datasets(home, options.of or ())
    names = to_study(home, options.evaluator or ())
    settings = arguments.evaluator_settings(options)
    own, requests = split_settings(names, settings)
    to_register(home, names, own)  # EvaluatorError for one that cannot be used yet
    if options.dry_run:
        of_study = StudySettings(options.study, options.responses, options.seed)
        datasets = options.of or datasets_of(str(home.root), options.study)
        sets = ((dataset, samples_of(home, dataset, of_study)) for dataset in datasets)
        bills.show(options, home, names, (own, requests), sets)
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
    for dataset, page in pages.items():
        of_dataset = [row for row in rows if row["dataset"] == dataset]
        shown = [{k: v for k, v in row.items() if k not in ("study", "dataset")} for row in of_dataset]
        output.tables({f"{options.study} of {printable(dataset)}": shown})
        for evaluator, sentences in read_study(home, options.study, dataset)[1].items():
            print(f"{evaluator}: {' '.join(sentences)}")
        print(f"page: {Path(page)}\n")


def _check_datasets(home: Warehouse, names: Sequence[str]) -> None:
    """Raise AnnotationError for a name that is neither a corpus nor an annotated set."""
    known = {name for p in home.partitions() for name in (p.key.corpus, p.key.dataset) if name}
    for name in names:
        if name not in known and name != EVERYDAY_PAIRS:
            raise AnnotationError(
                f"no corpus or annotated set {name!r} in {home.root} (there are: {', '.join(sorted(known))})"
                f"{did_you_mean(name, known)}"
            )
