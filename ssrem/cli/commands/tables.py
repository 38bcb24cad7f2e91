"""`ssrem tables` and `ssrem negatives`: tables built from landed corpora."""

from __future__ import annotations

import argparse

from ssrem.cli import arguments, output
from ssrem.cli.start import flow
from ssrem.flows.orchestration.options import TableOptions
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse


def tables(options: argparse.Namespace, home: Warehouse) -> None:
    """Build the speaker tables of landed corpora."""
    runner = arguments.runner(options)
    landed_corpora(str(home.root))
    new = flow("tables")(
        str(home.root),
        options.corpus,
        arguments.filled(TableOptions, options),
        arguments.resources(options),
        runner,
    )
    outcomes = {name: "built" if new[name] else "there already" for name in new}
    output.outcome(options, home, ["speaker_sets"], outcomes)


def negatives(options: argparse.Namespace, home: Warehouse) -> None:
    """Make negative responses of landed corpora."""
    landed_corpora(str(home.root))
    new = flow("negatives")(
        options.generator,
        str(home.root),
        options.corpus,
        options.split,
        options.responses,
        options.model,
        options.seed,
        arguments.resources(options),
    )
    outcomes = {name: "made" if new[name] else "there already" for name in new}
    output.outcome(options, home, ["negatives"], outcomes)
