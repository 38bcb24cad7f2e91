"""`ssrem correlate` and `ssrem reproduce`: agreement of scores with human scores."""

from __future__ import annotations

import argparse
from typing import Any

from flows.cli import arguments, learning, output
from flows.cli.start import flow
from ssrem.annotated_sets.columns import parse
from ssrem.evaluators import BASELINES, evaluator_class
from ssrem.samples import Sample
from tasks.agreement.annotated_sets import annotated_file
from tasks.agreement.reproduce import reproduce as compute_again
from tasks.scoring.endpoint_requests import bill_row, request_options_in, split
from tasks.training.versions import best_line, created, ready, to_correlate
from tasks.warehouse.home import Warehouse


def correlate(options: argparse.Namespace, home: Warehouse) -> None:
    """Score annotated sets and correlate the scores with human scores."""
    runner = arguments.runner(options)
    names = to_correlate(home, options.evaluator or ())
    settings = arguments.evaluator_settings(options)
    own, requests = split(names, settings)
    new = ready(home, names, own)
    annotated_sets = learning.annotated_sets(options, home, options.file, options.map)
    if options.dry_run:
        _show_bills(options, home, [name for name in names if evaluator_class(name).asks], own, requests)
        return
    if not options.evaluator and (best := best_line(home))[0] in new:
        output.say(f"correlating {best[1]}")
    if not set(options.evaluator or ()).issuperset(names) and set(names) & set(BASELINES):
        output.say(f"beside the untrained baselines {' and '.join(BASELINES)}")
    from flows.orchestration.options import AgreementOptions  # imports Pydantic

    new_figures = flow("correlate")(
        annotated_sets,
        str(home.root),
        options.evaluator,
        arguments.filled(AgreementOptions, options),
        settings or None,
        arguments.resources(options),
        runner,
    )
    outcomes = {name: "correlated" if new else "there already" for name, new in new_figures.items()}
    output.after(options, home, ["agreement", "best"], outcomes, new_figures)


def _show_bills(
    options: argparse.Namespace,
    home: Warehouse,
    names: list[str],
    own: dict[str, Any],
    requests: dict[str, Any],
) -> None:
    rows = []
    with request_options_in(home, **requests):
        for file in options.file:
            read = annotated_file(home, file, options.layout, parse(options.map))
            samples = [Sample(row.context, row.response, row.reference) for row in read.read.rows]
            for name in names:
                evaluator = created(home, name, own.get(name))
                rows.append(bill_row(name, evaluator, samples, read.name))
    output.bills(rows, options)


def reproduce(options: argparse.Namespace, home: Warehouse) -> int:
    """Compute a figure again from its signature; the exit status is 1 if it differs from the published one."""
    result = compute_again(home, options.signature)
    figure = {key: getattr(result.figure, key) for key in ("statistic", "low", "high", "p", "n", "outcome")}
    if options.json:
        answer = {"reproduced": not result.differs, "differs": result.differs, "noted": result.noted}
        output.as_json({**answer, **figure})
        return 1 if result.differs else 0
    output.tables({"computed again": [figure]}, raw=True)
    for line in (*result.differs, *result.noted):
        print(line)
    if result.differs:
        print("not reproduced")
        return 1
    if result.published:
        print("reproduced")
    else:
        print("computed as the signature says; no published row to compare with")
    return 0
