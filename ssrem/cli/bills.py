"""`--dry-run` of evaluators that ask an endpoint: prints what a run would send there."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ssrem.cli import output
from ssrem.evaluators import evaluator_class
from ssrem.samples import Sample
from ssrem.tasks.scoring.endpoint_requests import bill_row, request_options_in
from ssrem.tasks.training.versions import created
from ssrem.tasks.warehouse.home import Warehouse


def show(
    options: argparse.Namespace,
    home: Warehouse,
    names: Sequence[str],
    settings: tuple[Mapping[str, Any], Mapping[str, Any]],
    sets: Iterable[tuple[str, Sequence[Sample]]],
) -> None:
    """Print what those of the evaluators that may ask an endpoint would ask about each set; nothing is sent.

    settings: as `split_settings` returns them. sets: names and samples.
    """
    own, requests = settings
    with request_options_in(home, **requests):
        asking = {name: created(home, name, own.get(name)) for name in names if evaluator_class(name).asks}
        rows = [
            bill_row(name, evaluator, samples, dataset)
            for dataset, samples in sets
            for name, evaluator in asking.items()
        ]
    show_rows(rows, options)


def show_rows(rows: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> None:
    """Print rows of `bill_row`, without those that ask nothing."""
    rows = [row for row in rows if row["requests"] or row["answered_before"]]
    if options.json:
        output.as_json(rows)
    elif rows:
        output.tables(
            {"what would be asked; prompt tokens are estimated, completion tokens are the most": rows}
        )
    else:
        print("nothing would be asked of an endpoint")
