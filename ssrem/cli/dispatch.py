"""Maps a verb to its command, and runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from ssrem.cli import names
from ssrem.files import delete_abandoned
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.stage.progress import lines_without_terminal
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse

Command = Callable[[argparse.Namespace, Warehouse], int | None]

MODULES = {"negatives": "tables", "reproduce": "correlate", "score-corpus": "score"}
"""Verb → module of ssrem.cli.commands, where that is not named after the verb or its group."""

WRITING = {
    *("run", "ingest", "tables", "negatives", "train", "score-corpus", "correlate"),
    *("study", "report", "forget"),
    *("evaluators promote", "evaluators rollback", "evaluators import", "evaluators retrain"),
}
"""Verbs that first repair damage, because their checks may read damaged tables."""


def run(options: argparse.Namespace) -> int:
    """Run the verb of the parsed options; returns the exit status."""
    names.check(options)
    delete_abandoned()
    with lines_without_terminal():
        return _run(options, Warehouse.at(options.home))


def _run(options: argparse.Namespace, home: Warehouse) -> int:
    if options.verb != "home restore":
        home.snapshot()  # refuses a home folder of another layout
    if options.verb in WRITING and (home.snapshot().damage or home.damage()):
        repair(str(home.root))
    if corpora := names.listed(options, "corpus"):
        landed_corpora(str(home.root), corpora)
    return command(options.verb)(options, home) or 0


def command(verb: str) -> Command:
    """The function of a verb: `evaluators import` is `import_` in commands/evaluators.py, `score-corpus` is
    `score_corpus` in commands/score.py."""
    group, _, name = verb.rpartition(" ")
    module = import_module(f"ssrem.cli.commands.{group or MODULES.get(verb, verb)}")
    function: Command = getattr(module, f"{name}_" if name in ("import", "list") else name.replace("-", "_"))
    return function
