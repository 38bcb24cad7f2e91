"""`ssrem annotate`: neither step writes a table, so neither starts Prefect."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from flows.cli import output as show
from ssrem.errors import AnnotationError
from tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.annotation.items import Batch
    from ssrem.annotation.review import Review


def annotate(options: argparse.Namespace, home: Warehouse) -> None:
    """Do the step that the options name."""
    (_export if options.step == "export" else _import)(options, home)


def _export(options: argparse.Namespace, home: Warehouse) -> None:
    from ssrem.annotation.items import Plan
    from tasks.agreement.annotation_batch import export_batch

    plan = Plan(
        options.contexts,
        options.raters,
        options.redundancy,
        options.checks,
        options.seed,
        options.criterion,
        options.question,
        options.scale,
    )
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
    sheet_sizes = sorted(len(sheet) for sheet in batch.sheets.values())
    found = {
        "batch": batch.id,
        "corpus": batch.corpus,
        "contexts": plan.contexts,
        "items": len(batch.items),
        "checks": sum(item.expected is not None for item in batch.items),
        "raters": len(batch.sheets),
        "largest_sheet": sheet_sizes[-1],
    }
    if options.json:
        show.as_json({**found, "systems": systems, "folder": str(options.folder)})
        return
    show.tables({"batch": [found], "systems": systems})
    print(f"hand out: {options.folder / 'raters'}   page.html, or a table for each rater")
    print(f"keep:     {options.folder / 'key.json'}   which system is which, and the checks")
    print(f"next:     ssrem annotate import ANSWERS.json … --batch {options.folder}")


def _import(options: argparse.Namespace, home: Warehouse) -> None:
    from tasks.agreement.annotation_batch import import_answers

    name = options.batch.resolve().name
    output = options.output or options.batch / f"{name}_eval.json"
    batch, found = import_answers(
        options.batch,
        options.answers,
        output=output,
        least=options.checks_passed,
        kappa=options.kappa,
    )
    if options.json and not options.agree:
        from ssrem.annotation.review import record

        show.as_json({**record(batch, found), "annotated": str(output)})
    elif not options.json:
        _tell(batch, found, output, options.batch)
    if options.agree:
        from flows.cli import dispatch as commands

        options.file, options.evaluator = [str(output)], None
        options.keep_ground_truth, options.force_systems = False, None
        options.layout, options.map = None, []
        commands.VERBS["agree"](options, home)


def _tell(batch: Batch, found: Review, output: Path, folder: Path) -> None:
    rated = sum(item.expected is None for item in batch.items)
    absent = sorted(set(batch.sheets) - set(found.raters))
    left = int((found.ratings == found.ratings).any(axis=0).sum())
    figures = [
        _figure("Krippendorff's alpha, ordinal, all raters", found.before.value, found.before.reason),
        _figure("Krippendorff's alpha, ordinal, kept raters", found.alpha.value, found.alpha.reason),
        _figure("one rater with the mean of the others, Spearman", found.one.statistic, found.one.reason),
        _figure("noise ceiling: attainable by an evaluator", found.halves.attainable, found.halves.reason),
    ]
    show.tables({"agreement among raters": figures})
    if found.dropped:
        show.tables(
            {"left out": [{"rater": one.rater, "reason": one.reason} for one in found.dropped]}, raw=True
        )
    print(f"raters:    {len(found.remaining)} kept of {len(found.raters)} who answered")
    if absent:
        print(f"no answer: {', '.join(absent)}")
    print(f"responses: {left} of {rated} have a score that counts")
    print(f"written:   {output}; {folder / 'ratings.csv'}; {folder / 'import.json'}")


def _figure(name: str, value: float | None, reason: str) -> dict[str, Any]:
    return {"figure": name, "value": value, "note": reason}


def _systems(batch: Batch) -> list[dict[str, Any]]:
    """Each system with how many responses and of what length."""
    words: dict[str, list[int]] = defaultdict(list)
    for item in batch.items:
        for system in item.systems:
            words[system].append(len(item.response.split()))
    return [
        {"system": name, "responses": len(found), "mean_words": float(mean(found))}
        for name, found in sorted(words.items())
    ]


def _responses(pairs: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name.strip() and equals and file):
            raise AnnotationError(f"--responses {pair}: expected NAME=FILE, such as gpt2=responses.jsonl")
        if name in found:
            raise AnnotationError(f"--responses {pair}: {name} is given twice; name each system once")
        found[name] = Path(file)
    return found
