"""`ssrem ingest`: land a dump, or the dumps of a folder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ssrem.cli import arguments, output
from ssrem.cli.start import flow
from ssrem.errors import SsremError, say
from ssrem.tasks.ingest.drop_folder import RejectedError, complete
from ssrem.tasks.query.summaries import summary
from ssrem.tasks.warehouse.home import Warehouse


def ingest(options: argparse.Namespace, home: Warehouse) -> int:
    """Land a dump or the dumps of --inbox, and retrain if that is wanted; returns 1 if something of --inbox failed."""
    if (not options.source) == (options.inbox is None):
        raise SsremError("ssrem ingest takes a dump or --inbox FOLDER, one of them")
    if options.inbox is None:
        if options.watch is not None:
            raise SsremError("--watch looks into --inbox FOLDER again and again; give it")
        _one(options, home)
        return 0
    return _folder(options, home)


def _one(options: argparse.Namespace, home: Warehouse) -> None:
    dump = arguments.dump(options, home, options.map)
    run = flow("ingest")
    corpus, new = run(arguments.source(options), str(home.root), dump, resources=arguments.resources(options))
    retrained = _retrain(options, home)
    rows = {
        name: [row for row in some if row["corpus"] == corpus]
        for name, some in summary(home, ["corpora", "quarantine"]).items()
    }
    rows = {name: some for name, some in rows.items() if some}
    landed = rows["corpora"][0]
    if options.json:
        answer = {"corpus": corpus, "new": new, **landed, "quarantine": rows.get("quarantine", [])}
        output.as_json(answer | ({"retrained": retrained} if options.retrain else {}))
        return
    form = landed["format"]
    print(f"landed {corpus}, read as {form}" if new else f"{corpus} has this content already; nothing to do")
    print()
    output.summaries(rows)
    for name, what in retrained.items():
        print(f"{name}: {what}")


def _folder(options: argparse.Namespace, home: Warehouse) -> int:
    dump = arguments.dump(options, home, options.map)
    resources = arguments.resources(options)
    while True:
        outcomes: dict[str, str] = {}
        errors: list[SsremError] = []
        try:
            if complete(Path(options.inbox), settle=0):  # an empty folder starts no flow
                run = flow("drop_folder")
                try:
                    outcomes = run(options.inbox, str(home.root), options.settle, dump, resources=resources)
                except RejectedError as error:  # the others have landed
                    errors.append(error)
                    outcomes = error.outcomes
                if outcomes:
                    outcomes |= _retrain(options, home)
        except SsremError as error:
            errors.append(error)
        if outcomes or not errors:
            _print(options, outcomes)
        for failure in errors:
            say(str(failure))
        if options.watch is None:
            return 1 if errors else 0
        time.sleep(options.watch)


def _print(options: argparse.Namespace, outcomes: dict[str, str]) -> None:
    if options.json:
        output.as_json(outcomes)
    elif outcomes or options.watch is None:
        for name, what in (outcomes or {options.inbox: "nothing in it is complete"}).items():
            print(f"{name}: {what}", flush=True)


def _retrain(options: argparse.Namespace, home: Warehouse) -> dict[str, str]:
    if not options.retrain:
        return {}
    margins, resources = arguments.margins(options), arguments.resources(options)
    outcomes: dict[str, str] = flow("retrain")(str(home.root), margins=margins, resources=resources)
    return outcomes
