"""What each verb does. Verbs that write call flows; verbs that only read start no Prefect."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli import arguments as given
from flows.cli import output as show
from flows.cli.commands import evaluators as learning
from flows.cli.commands import forget as privacy
from flows.cli.commands import home as upkeep
from flows.cli.commands import ingest as landing
from flows.cli.commands import public_sets
from flows.cli.commands import ratings as annotate
from flows.cli.commands import report as reporting
from flows.cli.commands import study as studies
from flows.cli.outcome import after, summaries
from flows.orchestration import settings
from ssrem.errors import AnnotationError, SsremError
from tasks.warehouse.home import Warehouse, landed_corpora

if TYPE_CHECKING:
    from ssrem.evaluators.base import Scores


def run(options: argparse.Namespace) -> int:
    """Do what the parsed options ask; the exit status."""
    home = Warehouse.at(options.home)
    if options.verb != "restore":
        home.check()
    if options.verb in WRITING and (home.snapshot().damage or home.damage()):
        settings.prepare(home.root)  # a stage that is run again is a task of Prefect's
        from tasks.maintenance.repair import repair

        repair.fn(str(home.root))
    return VERBS[options.verb](options, home) or 0


def _run(options: argparse.Namespace, home: Warehouse) -> None:
    private = given.pseudonyms(options)
    given.check_runner(options.runner, options.runner_address)
    given.check_dump(options)
    given.check_evaluators(options.evaluator or ())
    given.check_annotated(options.annotations, options)
    given.margins(options)
    settings.prepare(home.root)
    from flows.pipeline import pipeline

    path = pipeline(
        options.source,
        str(home.root),
        options.annotations,
        format=options.format,
        mapping=given.mapping(options),
        name=options.name,
        speakers=options.speakers,
        evaluators=options.evaluator,
        seed=options.seed,
        context_turns=options.context_turns,
        margins=given.margins(options),
        layout=options.layout,
        **private,
        **given.encoder(options),
        **given.room(options),
        **given.runner(options),
    )
    from tasks.query.summaries import AFTER_RUN, summary

    found = summary(home, AFTER_RUN)
    if options.json:
        show.as_json({**found, "report": path})
        return
    summaries(found)
    print(f"report: {path}")
    usual = options.home == Path(os.environ.get("SSREM_HOME", "warehouse"))
    shown = "" if usual else f" --home {shlex.quote(str(options.home))}"
    if not options.annotations:
        print(f"next:   ssrem agree{shown} ANNOTATED.json   compares the scores with people's")
    print(f'next:   ssrem sql{shown} "SELECT * FROM scores ORDER BY f DESC LIMIT 10"')


def _tables(options: argparse.Namespace, home: Warehouse) -> None:
    given.check_runner(options.runner, options.runner_address)
    landed_corpora(str(home.root))
    settings.prepare(home.root)
    from flows.tables import tables

    built = tables(
        str(home.root),
        options.corpus,
        seed=options.seed,
        context_turns=options.context_turns,
        **given.encoder(options),
        **given.room(options),
        **given.runner(options),
    )
    after(
        options, home, ["speaker_sets"], {c: "built" if new else "there already" for c, new in built.items()}
    )


def _agree(options: argparse.Namespace, home: Warehouse) -> None:
    from tasks.training.versions import promoted, unregistered

    given.check_runner(options.runner, options.runner_address)
    named = options.evaluator or []
    new = unregistered(home, named)
    if not new or len(new) < len(named):
        promoted(home, [name for name in named if name not in new])
    given.check_annotated(options.file, options)
    settings.prepare(home.root)
    from flows.correlate import agree

    done = agree(
        options.file,
        str(home.root),
        options.evaluator,
        options.keep_ground_truth,
        options.force_systems,
        layout=options.layout,
        mapping=given.mapping(options),
        **given.room(options),
        **given.runner(options),
    )
    correlated = {name: "correlated" if new else "there already" for name, new in done.items()}
    after(options, home, ["agreement", "best"], correlated)


def _score(options: argparse.Namespace, home: Warehouse) -> None:
    from ssrem.agreement.annotated import read_samples
    from ssrem.evaluators import packaged
    from tasks.stage.progress import progress
    from tasks.training.versions import in_use, versions

    samples = read_samples(Path(options.file))
    if not samples:
        raise AnnotationError(f"{options.file} is an empty list; there is nothing to score")
    if options.evaluator in packaged() and not versions(home, options.evaluator):
        print(
            f"{options.evaluator}: none trained in {home.root}, so the one that comes with ssrem",
            file=sys.stderr,
        )
    with progress(f"scoring {options.file} with {options.evaluator}"):
        evaluator = in_use(home, options.evaluator)
        parts = evaluator.components(samples)
    scores = _one_score(parts)
    lines = [] if options.json else ["row\tscore\tf\tg\th"]
    for number, score in enumerate(scores):
        # Rows count from 1, as in the messages about a file's rows.
        values: dict[str, Any] = {"row": number + 1, "score": _or_none(score)}
        values |= {part: _or_none(getattr(parts, part)[number]) for part in ("f", "g", "h")}
        line = json.dumps({**values, "signature": evaluator.signature}) if options.json else _tabbed(values)
        lines.append(line)
    text = "\n".join(lines) + "\n"
    if options.output:
        _write(Path(options.output), text)
    else:
        sys.stdout.write(text)


def _sql(options: argparse.Namespace, home: Warehouse) -> None:
    from flows.cli.commands.sql import sql

    sql(options, home)


def _reproduce(options: argparse.Namespace, home: Warehouse) -> int:
    from tasks.agreement.reproduce import reproduce

    done = reproduce(home, options.signature)
    figure = {key: getattr(done.found, key) for key in ("statistic", "low", "high", "p", "n", "outcome")}
    if options.json:
        show.as_json({"reproduced": not done.differs, "differs": done.differs, "noted": done.noted, **figure})
        return 1 if done.differs else 0
    show.tables({"computed again": [figure]}, raw=True)
    for line in (*done.differs, *done.noted):
        print(line)
    if done.differs:
        print("not reproduced")
        return 1
    print(
        "reproduced" if done.published else "computed as the signature says; no published row to compare with"
    )
    return 0


def _status(options: argparse.Namespace, home: Warehouse) -> None:
    from tasks.maintenance.health import remarks
    from tasks.query.summaries import summary

    shown = ["corpora", "progress", "quarantine", "annotated", "evaluators"]
    found: dict[str, Any] = summary(home, shown, tolerant=True)
    notes = remarks(home, deep=options.deep)
    if options.json:
        show.as_json({"home": str(home.root), **found, "remarks": notes})
        return
    print(f"home: {home.root}\n")
    summaries(found)
    if not home.partitions():
        print("nothing has landed yet; ssrem run lands the corpus that comes with the install")
    for note in notes:
        print(f"note: {note}")


VERBS: dict[str, Callable[[argparse.Namespace, Warehouse], int | None]] = {
    "run": _run,
    "ingest": landing.ingest,
    "tables": _tables,
    "negatives": learning.negatives,
    "train": learning.train,
    "retrain": learning.retrain,
    "promote": learning.promote,
    "rollback": learning.rollback,
    "agree": _agree,
    "study": studies.study,
    "annotate": annotate.annotate,
    "annotations": public_sets.public_sets,
    "score": _score,
    "sql": _sql,
    "reproduce": _reproduce,
    "export": learning.export,
    "import": learning.import_,
    "evaluators": learning.evaluators,
    "collect": upkeep.collect,
    "status": _status,
    "report": reporting.report,
    "forget": privacy.forget,
    "backup": upkeep.backup,
    "restore": upkeep.restore,
}


WRITING = (
    *("run", "ingest", "tables", "negatives", "train", "retrain", "promote", "rollback"),
    *("agree", "study", "import", "report", "forget"),
)
"""Verbs that first make good what is damaged, since already their checks may need it."""


def _one_score(parts: Scores) -> list[float]:
    """What `score` of an evaluator gives: h where every sample has a reference, else f; g of one that has g alone."""
    h, f, g = ([float(value) for value in part] for part in (parts.h, parts.f, parts.g))
    if not any(math.isnan(value) for value in h):
        return h
    return g if all(math.isnan(value) for value in f) else f


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _tabbed(values: dict[str, Any]) -> str:
    cells = ("" if v is None else f"{v:.6f}" if isinstance(v, float) else str(v) for v in values.values())
    return "\t".join(cells)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SsremError(f"cannot write {path}: {error.strerror}; choose another --output") from None
