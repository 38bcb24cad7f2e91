"""`ssrem evaluators`: list evaluators, choose their versions, retrain them, and move them between home folders."""

from __future__ import annotations

import argparse

from ssrem.cli import arguments, output
from ssrem.cli.start import flow
from ssrem.tasks.query.summaries import summary
from ssrem.tasks.training.versions import catalogue, known_version
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse


def list_(options: argparse.Namespace, home: Warehouse) -> None:
    """List the available evaluators, and the versions trained here."""
    trained = summary(home, ["evaluators"])
    available = catalogue()
    if options.json:
        output.as_json({"evaluators": available, "versions": trained.get("evaluators", [])})
        return
    output.tables({"available evaluators": available})
    if trained:
        output.summaries(trained)
    else:
        print(f"none trained in {home.root} yet; train one with ssrem train NAME")


def promote(options: argparse.Namespace, home: Warehouse) -> None:
    """Promote a version by hand."""
    _promote(options, home, options.version)


def rollback(options: argparse.Namespace, home: Warehouse) -> None:
    """Promote the version that was in use before."""
    _promote(options, home, None)


def _promote(options: argparse.Namespace, home: Warehouse, version: int | None) -> None:
    if version is not None:
        known_version(home, options.evaluator, version)
    chosen, replaced = flow("promote")(
        options.evaluator, version, str(home.root), arguments.resources(options)
    )
    what = "is in use already" if replaced is None else f"is in use instead of version {replaced}"
    output.outcome(options, home, ["evaluators"], {options.evaluator: f"version {chosen} {what}"})


def retrain(options: argparse.Namespace, home: Warehouse) -> None:
    """Retrain the evaluators that have not seen every landed corpus."""
    runner, margins = arguments.runner(options), arguments.margins(options)
    landed_corpora(str(home.root))
    outcomes = flow("retrain")(
        str(home.root), options.evaluator or None, margins, arguments.resources(options), runner
    )
    nothing = {"nothing to do": "all in use have seen all that landed"}
    output.outcome(options, home, ["evaluators"], outcomes or nothing)


def export(options: argparse.Namespace, home: Warehouse) -> None:
    """Write an evaluator into one file."""
    from ssrem.tasks.training.transfer import export_evaluator  # imports numpy

    file = export_evaluator(home, options.evaluator, options.version, options.output)
    if options.json:
        output.as_json({"file": str(file)})
    else:
        print(file)


def import_(options: argparse.Namespace, home: Warehouse) -> None:
    """Add an evaluator from one file."""
    arguments.check_packed(options.archive)
    name, version, new = flow("import_evaluator")(
        options.archive, str(home.root), options.allow, arguments.resources(options)
    )
    what = "imported" if new else "is there already"
    output.outcome(options, home, ["evaluators"], {name: f"version {version} {what}"})
