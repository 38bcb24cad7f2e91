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

from flows import given, show
from ssrem.errors import AnnotationError, SsremError
from ssrem.evaluators import DEFAULT_EVALUATORS
from tasks.home import Home, landed_corpora

if TYPE_CHECKING:
    from ssrem.evaluators.base import Scores


def run(options: argparse.Namespace) -> None:
    """Do what the parsed options ask."""
    home = Home.at(options.home)
    home.check()
    VERBS[options.verb](options, home)


def _run(options: argparse.Namespace, home: Home) -> None:
    given.check_dump(options)
    given.check_evaluators(options.evaluator or ())
    given.check_annotated(options.annotations)
    _prepare(home)
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
        **given.encoder(options),
        **given.room(options),
    )
    from tasks.overview import AFTER_RUN, summary

    found = summary(home, AFTER_RUN)
    if options.json:
        show.as_json({**found, "report": path})
        return
    _print(found)
    print(f"report: {path}")
    usual = options.home == Path(os.environ.get("SSREM_HOME", "warehouse"))
    shown = "" if usual else f" --home {shlex.quote(str(options.home))}"
    if not options.annotations:
        print(f"next:   ssrem agree{shown} ANNOTATED.json   compares the scores with people's")
    print(f'next:   ssrem sql{shown} "SELECT * FROM scores ORDER BY f DESC LIMIT 10"')


def _ingest(options: argparse.Namespace, home: Home) -> None:
    given.check_dump(options)
    _prepare(home)
    from flows.ingest import ingest
    from tasks.overview import summary

    corpus, new = ingest(
        options.source,
        str(home.root),
        format=options.format,
        mapping=given.mapping(options),
        name=options.name,
        speakers=options.speakers,
        replace=options.replace,
        **given.room(options),
    )
    found = summary(home, ["corpora", "quarantine"])
    found = {
        name: mine for name, rows in found.items() if (mine := [r for r in rows if r["corpus"] == corpus])
    }
    if options.json:
        show.as_json(
            {"corpus": corpus, "new": new, **found["corpora"][0], "quarantine": found.get("quarantine", [])}
        )
        return
    form = found["corpora"][0]["format"]
    print(f"landed {corpus}, read as {form}" if new else f"{corpus} has this content already; nothing to do")
    print()
    _print(found)


def _tables(options: argparse.Namespace, home: Home) -> None:
    landed_corpora(str(home.root))
    _prepare(home)
    from flows.tables import tables

    built = tables(
        str(home.root),
        options.corpus,
        seed=options.seed,
        context_turns=options.context_turns,
        **given.encoder(options),
        **given.room(options),
    )
    _after(
        options, home, ["speaker_sets"], {c: "built" if new else "there already" for c, new in built.items()}
    )


def _negatives(options: argparse.Namespace, home: Home) -> None:
    landed_corpora(str(home.root))
    _prepare(home)
    from flows.negatives import negatives

    made = negatives(
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
    _after(options, home, ["negatives"], done)


def _train(options: argparse.Namespace, home: Home) -> None:
    names = options.evaluator or list(DEFAULT_EVALUATORS)
    config = given.learning(options)
    if given.learners(names, config):
        landed_corpora(str(home.root))
    given.check_labels(names, options)
    if options.dry_run:
        from tasks.plan import plan

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
    _prepare(home)
    from flows.train import train

    trained = train(
        str(home.root),
        options.evaluator or None,
        options.corpus,
        config=config,
        labels=options.labels,
        criterion=options.criterion,
        labels_only=options.labels_only,
        **given.encoder(options),
        **given.room(options),
    )
    done = {
        name: f"version {v} {'trained' if new else 'is there already'}" for name, (v, new) in trained.items()
    }
    _after(options, home, ["evaluators", "identification"], done)


def _agree(options: argparse.Namespace, home: Home) -> None:
    from tasks.versions import promoted, unregistered

    named = options.evaluator or []
    new = unregistered(home, named)
    if not new or len(new) < len(named):
        promoted(home, [name for name in named if name not in new])
    given.check_annotated(options.file)
    _prepare(home)
    from flows.agree import agree

    done = agree(
        options.file, str(home.root), options.evaluator, options.keep_ground_truth, **given.room(options)
    )
    correlated = {name: "correlated" if new else "there already" for name, new in done.items()}
    _after(options, home, ["agreement"], correlated)


def _score(options: argparse.Namespace, home: Home) -> None:
    from ssrem.agreement.annotated import read_samples
    from ssrem.evaluators import packaged
    from tasks.progress import progress
    from tasks.versions import in_use, versions

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


def _sql(options: argparse.Namespace, home: Home) -> None:
    from tasks.query import ask

    columns, rows = ask(home, options.query)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    if options.json:
        show.as_json(found)
    elif found:
        show.tables({show.count(len(found), "row"): found}, raw=True)
    else:
        print(f"no rows ({', '.join(columns)})")


def _export(options: argparse.Namespace, home: Home) -> None:
    from tasks.export import export_evaluator

    file = export_evaluator(home, options.evaluator, options.version, options.output)
    if options.json:
        show.as_json({"file": str(file)})
    else:
        print(file)


def _import(options: argparse.Namespace, home: Home) -> None:
    given.check_packed(options.file)
    _prepare(home)
    from flows.carry import import_

    name, version, new = import_(options.file, str(home.root), **given.room(options))
    _after(
        options,
        home,
        ["evaluators"],
        {name: f"version {version} {'taken in' if new else 'is there already'}"},
    )


def _evaluators(options: argparse.Namespace, home: Home) -> None:
    from tasks.overview import summary
    from tasks.versions import catalogue

    found = summary(home, ["evaluators"])
    known = catalogue()
    if options.json:
        show.as_json({"evaluators": known, "versions": found.get("evaluators", [])})
        return
    show.tables({"evaluators that there are": known})
    if found:
        _print(found)
    else:
        print(f"none trained in {home.root} yet; train one with ssrem train NAME")


def _status(options: argparse.Namespace, home: Home) -> None:
    from tasks.overview import remarks, summary

    found: dict[str, Any] = summary(home, ["corpora", "progress", "quarantine", "annotated", "evaluators"])
    notes = remarks(home)
    if options.json:
        show.as_json({"home": str(home.root), **found, "remarks": notes})
        return
    print(f"home: {home.root}\n")
    _print(found)
    if not found:
        print("nothing has landed yet; ssrem run lands the corpus that comes with the install")
    for note in notes:
        print(f"note: {note}")


def _report(options: argparse.Namespace, home: Home) -> None:
    _prepare(home)
    from flows.report import report

    path = report(str(home.root))
    if options.json:
        show.as_json({"report": path})
    else:
        print(path)


VERBS: dict[str, Callable[[argparse.Namespace, Home], None]] = {
    "run": _run,
    "ingest": _ingest,
    "tables": _tables,
    "negatives": _negatives,
    "train": _train,
    "agree": _agree,
    "score": _score,
    "sql": _sql,
    "export": _export,
    "import": _import,
    "evaluators": _evaluators,
    "status": _status,
    "report": _report,
}


def _prepare(home: Home) -> None:
    from flows.settings import prepare

    prepare(home.root)


def _after(options: argparse.Namespace, home: Home, names: list[str], done: dict[str, str]) -> None:
    from tasks.overview import summary

    found = summary(home, names)
    if options.json:
        show.as_json({"done": done, **found})
        return
    for name, what in done.items():
        print(f"{name}: {what}")
    print()
    _print(found)


def _print(found: dict[str, list[dict[str, Any]]]) -> None:
    """The summaries as tables; signatures, which no table has room for, below that of the evaluators."""
    from tasks.overview import TITLES

    for name, rows in found.items():
        show.tables({TITLES[name]: [{k: v for k, v in row.items() if k != "signature"} for row in rows]})
        if name == "evaluators":
            for row in rows:
                print(f"{row['evaluator']} version {row['version']}: {row['signature']}")
            print()


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
