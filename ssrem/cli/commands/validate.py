"""`ssrem validate`: how far an evaluator can be trusted, by labels that people gave."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ssrem.cli import arguments, bills, output
from ssrem.errors import AnnotationError, say
from ssrem.evaluators import BASELINES, evaluator_class
from ssrem.report.numbers import interval, real
from ssrem.responses import read_responses
from ssrem.tasks.agreement.annotated_sets import AnnotatedFile
from ssrem.tasks.scoring.endpoint_requests import bill_row, request_options_in, split_settings, why_marked
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.training.versions import best_line, created
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.files import check_target, whole_file
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.validation.bias import changed, preferences
from ssrem.validation.labels import LabelledSet, labelled_set
from ssrem.validation.page import render
from ssrem.validation.rates import Estimate
from ssrem.validation.validation import Judged, Settings, Validation
from ssrem.validation.validation import validate as validation_of
from ssrem.validation.verdict import unmet, verdict


def validate(options: argparse.Namespace, home: Warehouse) -> int:
    """Validate an evaluator, write the page, print a summary; the exit status is 1 if a requirement is not met."""
    source, data = _labelled(options, home)
    others = read_responses(options.unlabelled).rows if options.unlabelled else ()
    unlabelled = [row.sample for row in others if row.sample is not None]
    target = options.output or Path(f"{source.name}-validation.html")
    with output.writing(target):
        check_target(target)  # scoring may take long
    name, line = best_line(home) if options.evaluator is None else (options.evaluator, "")
    own, requests = split_settings([name], arguments.evaluator_settings(options))
    private = why_marked(source.path, options.file)
    with (
        progress(f"validating {name} on {options.file}") as advance,
        request_options_in(home, advance=advance, private=private, **requests),
    ):
        evaluator = created(home, name, own.get(name))
        if options.dry_run:
            samples = [*data.samples, *unlabelled, *changed(data, options.responses)]
            bills.show_rows([bill_row(name, evaluator, samples, source.name)], options)
            return 0
        if line:
            say(f"validating {line}")
        judged = Judged(
            evaluator.name,
            evaluator.signature,
            evaluator.score(data.samples),
            evaluator.score if "f" in evaluator.parts else None,
            evaluator.score(unlabelled) if unlabelled else None,
            preferences(evaluator, data.samples),
        )
        baselines = {
            one: judged.scores if one == name else evaluator_class(one)().score(data.samples)
            for one in BASELINES
        }
        settings = Settings(options.precision, options.own or (), options.responses)
        result = validation_of(data, judged, baselines, settings)
    required = dict(options.require)
    page = render(
        result,
        dataset=source.name,
        data=data,
        scores=judged.scores,
        required=required,
        generated_at=f"{utc_now():%Y-%m-%d %H:%M} UTC",
    )
    with output.writing(target), whole_file(target) as draft:
        draft.write_text(page, encoding="utf-8")
    missed = unmet(result, required)
    if options.json:
        answer = {"verdict": verdict(result), **asdict(result), "not_met": missed, "page": str(target)}
        output.as_json(answer)
    else:
        _print(result, target)
    if missed:
        say(f"not met: {'; '.join(missed)}")
    return 1 if missed else 0


def _labelled(options: argparse.Namespace, home: Warehouse) -> tuple[AnnotatedFile, LabelledSet]:
    """The labelled responses, and their file; AnnotationError if an option does not fit them."""
    (source,), _ = arguments.mapped_sets(home, [options.file], options.map, "FILE", options.layout)
    data = labelled_set(source.read.rows, options.criterion, options.passed_from)
    if options.precision and data.passed is None:
        raise AnnotationError(f"--precision needs labels that pass and fail responses: {data.one_class}")
    if unknown := sorted(set(options.own or ()) - set(data.systems)):
        known = ", ".join(sorted(filter(None, set(data.systems)))) or "none"
        raise AnnotationError(f"--own {unknown[0]}: {options.file} has no such system; it has {known}")
    source.say_how_read()
    return source, data


def _print(result: Validation, page: Path) -> None:
    rows = [
        {"evaluator": name, **{measure: _shown(one) for measure, one in of.items()}}
        for name, of in result.agreement.items()
    ]
    rater = {"evaluator": "one rater with the others", "spearman": real(result.rater.statistic)}
    titled: dict[str, Any] = {"agreement with people": [*rows, dict.fromkeys(rows[0]) | rater]}
    if result.passing.thresholds:
        titled["thresholds, chosen on one half of the contexts and tested on the other"] = [
            {"aim": one.aim, "passes from": one.score}
            | {name: _shown(getattr(one, name)) for name in ("tpr", "fpr", "precision")}
            for one in result.passing.thresholds
        ]
    if result.passing.shares:
        titled["share that passes"] = [
            {"of": one.of, "evaluator": _shown(one.evaluator), "corrected": _shown(one.corrected)}
            | {"people": _shown(one.people)}
            for one in result.passing.shares
        ]
    output.tables(titled)
    reasons = [result.passing.reason, *(one.reason for one in result.passing.thresholds)]
    output.sentences([f"no threshold: {reason}" for reason in reasons if reason])
    uncorrected = [one for one in result.passing.shares if one.corrected.value is None]
    output.sentences([f"no corrected share of {one.of}: {one.corrected.reason}" for one in uncorrected])
    output.sentences([f"{one.name}: {one.reason or ' '.join(one.sentences).strip()}" for one in result.bias])
    if result.more_labels:
        print(f"{result.more_labels:,} more labels would halve the interval of spearman")
    output.sentences([verdict(result)])
    print(f"page: {page}")


def _shown(estimate: Estimate) -> str:
    return f"{real(estimate.value)} {interval(estimate.low, estimate.high)}".strip()
