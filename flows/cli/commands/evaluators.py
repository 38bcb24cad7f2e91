"""The verbs by which evaluators are trained, listed and carried: options in, what a person reads out."""

from __future__ import annotations

import argparse

from flows.cli import arguments as given
from flows.cli import output as show
from flows.cli.outcome import after, summaries
from flows.orchestration import settings
from ssrem.evaluators import DEFAULT_EVALUATORS
from tasks.warehouse.home import Warehouse, landed_corpora


def negatives(options: argparse.Namespace, home: Warehouse) -> None:
    """Make negatives of landed corpora, as a table."""
    landed_corpora(str(home.root))
    settings.prepare(home.root)
    from flows.negatives import negatives as flow

    made = flow(
        options.generator,
        str(home.root),
        options.corpus,
        options.split,
        options.responses,
        options.model,
        options.seed,
        **given.room(options),
    )
    done = {corpus: "made" if new else "there already" for corpus, new in made.items()}
    after(options, home, ["negatives"], done)


def train(options: argparse.Namespace, home: Warehouse) -> None:
    """Train evaluators, or say what would be trained."""
    given.check_runner(options.runner, options.runner_address)
    names = options.evaluator or list(DEFAULT_EVALUATORS)
    config = given.learning(options)
    if given.learners(names, config):
        landed_corpora(str(home.root))
    given.check_labels(names, options)
    if options.dry_run:
        from tasks.training.dry_run import plan

        encoder = given.encoder(options).get("encoder")
        rows = plan(home, names, options.corpus, config, encoder, options.labels)
        if options.json:
            show.as_json(rows)
            return
        short = [{key: value for key, value in row.items() if key != "settings"} for row in rows]
        show.tables({"what would be trained, on what": short})
        for row in rows:
            print(
                f"{row['evaluator']}: {' '.join(f'{k}={v}' for k, v in row['settings'].items()) or 'no settings'}"
            )
        return
    settings.prepare(home.root)
    from flows.train import train as flow

    trained = flow(
        str(home.root),
        options.evaluator or None,
        options.corpus,
        config=config,
        labels=options.labels,
        criterion=options.criterion,
        labels_only=options.labels_only,
        margins=given.margins(options),
        **given.encoder(options),
        **given.room(options),
        **given.runner(options),
    )
    from tasks.training.versions import standing

    done = {
        name: f"{'trained' if new else 'nothing new to train'}; {standing(home, name, version)}"
        for name, (version, new) in trained.items()
    }
    after(options, home, ["evaluators", "identification"], done)


def retrain(options: argparse.Namespace, home: Warehouse) -> None:
    """Retrain what has not seen all that landed."""
    given.check_evaluators(options.evaluator)
    given.check_runner(options.runner, options.runner_address)
    given.margins(options)
    landed_corpora(str(home.root))
    settings.prepare(home.root)
    from flows.retrain import retrain as flow

    done = flow(
        str(home.root),
        options.evaluator or None,
        margins=given.margins(options),
        **given.room(options),
        **given.runner(options),
    )
    after(options, home, ["evaluators"], done or {"nothing to do": "all in use have seen all that landed"})


def promote(options: argparse.Namespace, home: Warehouse) -> None:
    """Bring a version into use by hand."""
    _promote(options, home, options.version)


def rollback(options: argparse.Namespace, home: Warehouse) -> None:
    """Bring the version that was in use before into use again."""
    _promote(options, home, None)


def _promote(options: argparse.Namespace, home: Warehouse, version: int | None) -> None:
    given.check_evaluators([options.evaluator])
    settings.prepare(home.root)
    from flows.promote import promote as flow

    chosen, replaced = flow(options.evaluator, version, str(home.root), **given.room(options))
    what = "is in use already" if replaced is None else f"is in use instead of version {replaced}"
    after(options, home, ["evaluators"], {options.evaluator: f"version {chosen} {what}"})


def export(options: argparse.Namespace, home: Warehouse) -> None:
    """Write an evaluator into one file."""
    from tasks.training.export import export_evaluator

    file = export_evaluator(home, options.evaluator, options.version, options.output)
    if options.json:
        show.as_json({"file": str(file)})
    else:
        print(file)


def import_(options: argparse.Namespace, home: Warehouse) -> None:
    """Take in an evaluator from one file."""
    given.check_packed(options.file)
    settings.prepare(home.root)
    from flows.import_evaluator import import_ as flow

    name, version, new = flow(options.file, str(home.root), options.allow, **given.room(options))
    after(
        options,
        home,
        ["evaluators"],
        {name: f"version {version} {'taken in' if new else 'is there already'}"},
    )


def evaluators(options: argparse.Namespace, home: Warehouse) -> None:
    """List the evaluators that there are, and the versions trained here."""
    from tasks.query.summaries import summary
    from tasks.training.versions import catalogue

    found = summary(home, ["evaluators"])
    known = catalogue()
    if options.json:
        show.as_json({"evaluators": known, "versions": found.get("evaluators", [])})
        return
    show.tables({"evaluators that there are": known})
    if found:
        summaries(found)
    else:
        print(f"none trained in {home.root} yet; train one with ssrem train NAME")
