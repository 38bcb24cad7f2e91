"""The verb by which dumps land: one at a time, or what a drop folder holds."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from flows.cli import arguments as given
from flows.cli import output as show
from flows.cli.outcome import summaries
from flows.orchestration import settings
from ssrem.errors import SsremError
from tasks.warehouse.home import Warehouse


def ingest(options: argparse.Namespace, home: Warehouse) -> None:
    """Land a dump, or what is in the drop folder, and retrain where that is asked for."""
    if (options.source is None) == (options.inbox is None):
        raise SsremError("ssrem ingest takes a dump or --inbox FOLDER, one of them")
    if options.inbox is None:
        if options.watch is not None:
            raise SsremError("--watch looks into --inbox FOLDER again and again; give it")
        _one(options, home)
    else:
        _inbox(options, home)


def _one(options: argparse.Namespace, home: Warehouse) -> None:
    private = given.pseudonyms(options)
    given.check_dump(options)
    settings.prepare(home.root)
    from flows.ingest import ingest
    from tasks.query.summaries import summary

    corpus, new = ingest(
        options.source,
        str(home.root),
        format=options.format,
        mapping=given.mapping(options),
        name=options.name,
        speakers=options.speakers,
        replace=options.replace,
        **private,
        **given.room(options),
    )
    retrained = _retrained(options, home)
    found = summary(home, ["corpora", "quarantine"])
    found = {
        name: mine for name, rows in found.items() if (mine := [r for r in rows if r["corpus"] == corpus])
    }
    if options.json:
        told = {
            "corpus": corpus,
            "new": new,
            **found["corpora"][0],
            "quarantine": found.get("quarantine", []),
        }
        show.as_json(told | ({"retrained": retrained} if options.retrain else {}))
        return
    form = found["corpora"][0]["format"]
    print(f"landed {corpus}, read as {form}" if new else f"{corpus} has this content already; nothing to do")
    print()
    summaries(found)
    for name, what in retrained.items():
        print(f"{name}: {what}")


def _inbox(options: argparse.Namespace, home: Warehouse) -> None:
    settings.prepare(home.root)
    from flows.drop_folder import inbox
    from tasks.ingest.drop_folder import complete

    landing: dict[str, Any] = {
        "format": options.format,
        "mapping": given.mapping(options),
        "speakers": options.speakers,
        **given.pseudonyms(options),
    }
    while True:
        done: dict[str, str] = {}
        try:
            if complete(Path(options.inbox), settle=0):  # a look that finds nothing starts no flow
                done = inbox(options.inbox, str(home.root), options.settle, **landing, **given.room(options))
                done |= _retrained(options, home)
        except SsremError as error:
            if options.watch is None:
                raise
            print(f"ssrem: {error}", file=sys.stderr)
        _tell(options, done)
        if options.watch is None:
            return
        time.sleep(options.watch)


def _tell(options: argparse.Namespace, done: dict[str, str]) -> None:
    if options.json:
        show.as_json(done)
    elif done or options.watch is None:
        for name, what in (done or {options.inbox: "nothing in it is complete"}).items():
            print(f"{name}: {what}", flush=True)


def _retrained(options: argparse.Namespace, home: Warehouse) -> dict[str, str]:
    if not options.retrain:
        return {}
    from flows.retrain import retrain

    done: dict[str, str] = retrain(str(home.root), margins=given.margins(options), **given.room(options))
    return done
