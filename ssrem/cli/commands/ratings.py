"""`ssrem ratings`: collect human ratings, and fetch public annotated sets."""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import asdict, fields
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from ssrem.annotated_sets.known import known_sets
from ssrem.annotated_sets.pull import pull as pull_set
from ssrem.annotation.items import Batch, Plan
from ssrem.cli import output
from ssrem.errors import AnnotationError
from ssrem.registry import did_you_mean
from ssrem.tasks.agreement.annotated_sets import pulled
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.annotation.review import Review


def list_(options: argparse.Namespace, home: Warehouse) -> None:
    """List the known public annotated sets."""
    sets = known_sets().values()
    present = {known.name: known.file(pulled(home)).exists() for known in sets}
    if options.json:
        output.as_json([{**asdict(known), "pulled": present[known.name]} for known in sets])
        return
    rows = [
        {
            "name": known.name,
            "responses": known.responses,
            "layout": known.layout,
            "pulled": "yes" if present[known.name] else "no" if known.sha256 else "by hand",
            "licence": known.licence,
        }
        for known in sets
    ]
    output.tables({"public annotated sets": rows})
    print("next: ssrem ratings pull NAME")


def pull(options: argparse.Namespace, home: Warehouse) -> None:
    """Fetch public annotated sets and check them."""
    sets = known_sets()
    names = list(dict.fromkeys(options.name))
    if unknown := [name for name in names if name not in sets]:
        near = did_you_mean(unknown[0], sets)
        raise AnnotationError(f"there is no set {unknown[0]!r}{near}; the sets are {', '.join(sets)}")
    rows = []
    for name in names:
        known = sets[name]
        path, new = pull_set(known, options.to or pulled(home))
        rows.append({**asdict(known), "file": str(path), "new": new})
        if not options.json:
            print(f"{name}: {'fetched' if new else 'there already'}, {path}")
            print(f"  licence:  {known.licence}")
            print(f"  citation: {known.citation}")
            print(f"  sha256:   {known.sha256 or 'none is known; not checked'}")
    if options.json:
        output.as_json(rows)
    elif options.to is None:
        print(f"next: ssrem correlate {' '.join(names)}")
    else:
        print(
            "next: ssrem correlate FILE, with the layout that ssrem ratings list shows where it has a colon"
        )


def collect(options: argparse.Namespace, home: Warehouse) -> None:
    """Draw a batch of responses and write the files that raters fill in."""
    from ssrem.tasks.agreement.annotation_batch import export_batch  # imports DuckDB

    plan = Plan(**{field.name: getattr(options, field.name) for field in fields(Plan)})
    batch = export_batch(
        home,
        options.folder,
        plan,
        corpus=options.corpus,
        split=options.split,
        responses=_responses(options.responses),
        bm25=not options.without_bm25,
    )
    systems = _systems(batch)
    summary = {
        "batch": batch.id,
        "corpus": batch.corpus,
        "contexts": plan.contexts,
        "items": len(batch.items),
        "checks": sum(item.expected is not None for item in batch.items),
        "raters": len(batch.sheets),
        "largest_sheet": max(len(sheet) for sheet in batch.sheets.values()),
    }
    if options.json:
        output.as_json({**summary, "systems": systems, "folder": str(options.folder)})
        return
    output.tables({"batch": [summary], "systems": systems})
    print(f"hand out: {options.folder / 'raters'}   page.html, or a table for each rater")
    print(f"keep:     {options.folder / 'key.json'}   which system is which, and the checks")
    print(f"next:     ssrem ratings import ANSWERS.json … --batch {options.folder}")


def import_(options: argparse.Namespace, home: Warehouse) -> None:
    """Read raters' answers, leave out careless raters, and write an annotated set."""
    from ssrem.tasks.agreement.annotation_batch import import_answers  # imports DuckDB

    file = options.output or options.batch / f"{options.batch.resolve().name}_eval.json"
    batch, review = import_answers(
        options.batch, options.answers, output=file, least=options.checks_passed, kappa=options.kappa
    )
    if options.json and not options.correlate:
        from ssrem.annotation.review import record  # imports SciPy

        output.as_json({**record(batch, review), "annotated": str(file)})
    elif not options.json:
        _print(batch, review, file, options.batch)
    if options.correlate:
        from ssrem.cli.commands.correlate import correlate
        from ssrem.cli.parser import parse

        defaults = parse(["correlate", "--replace", "--", str(file)])  # of fewer answers, if it has landed
        correlate(argparse.Namespace(**{**vars(defaults), **vars(options)}), home)


def _print(batch: Batch, review: Review, file: Path, folder: Path) -> None:
    rated = sum(item.expected is None for item in batch.items)
    absent = sorted(set(batch.sheets) - set(review.raters))
    counted = int((review.ratings == review.ratings).any(axis=0).sum())
    figures = [
        _figure("Krippendorff's alpha, ordinal, all raters", review.before.value, review.before.reason),
        _figure("Krippendorff's alpha, ordinal, kept raters", review.alpha.value, review.alpha.reason),
        _figure("one rater with the mean of the others, Spearman", review.one.statistic, review.one.reason),
        _figure("noise ceiling: attainable by an evaluator", review.halves.attainable, review.halves.reason),
    ]
    output.tables({"agreement among raters": figures})
    if review.dropped:
        rows = [{"rater": one.rater, "reason": one.reason} for one in review.dropped]
        output.tables({"left out": rows}, raw=True)
    print(f"raters:    {len(review.remaining)} kept of {len(review.raters)} who answered")
    if absent:
        print(f"no answer: {', '.join(absent)}")
    print(f"responses: {counted} of {rated} have a score that counts")
    print(f"written:   {file}; {folder / 'ratings.csv'}; {folder / 'import.json'}")


def _figure(name: str, value: float | None, reason: str) -> dict[str, Any]:
    return {"figure": name, "value": value, "note": reason}


def _systems(batch: Batch) -> list[dict[str, Any]]:
    """Each system with the number of its responses and their mean length."""
    words: dict[str, list[int]] = defaultdict(list)
    for item in batch.items:
        for system in item.systems:
            words[system].append(len(item.response.split()))
    return [
        {"system": name, "responses": len(lengths), "mean_words": float(mean(lengths))}
        for name, lengths in sorted(words.items())
    ]


def _responses(pairs: list[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name.strip() and equals and file):
            raise AnnotationError(f"--responses {pair}: expected NAME=FILE, such as gpt2=responses.jsonl")
        if name in files:
            raise AnnotationError(f"--responses {pair}: {name} occurs twice; name each system once")
        files[name] = Path(file)
    return files
