"""`ssrem correlate` and `ssrem reproduce`: agreement of scores with human scores."""

from __future__ import annotations

import argparse

from ssrem.annotated_sets.columns import parse
from ssrem.cli import arguments, bills, output
from ssrem.cli.start import flow
from ssrem.errors import say
from ssrem.evaluators import BASELINES
from ssrem.tasks.agreement.annotated_sets import annotated_file
from ssrem.tasks.agreement.reproduce import reproduce as compute_again
from ssrem.tasks.scoring.endpoint_requests import split_settings
from ssrem.tasks.training.versions import best_line, to_correlate, to_register
from ssrem.tasks.warehouse.home import Warehouse


def correlate(options: argparse.Namespace, home: Warehouse) -> None:
    """Score annotated sets and correlate the scores with human scores."""
    runner = arguments.runner(options)
    names = to_correlate(home, options.evaluator or ())
    settings = arguments.evaluator_settings(options)
    own, requests = split_settings(names, settings)
    new = to_register(home, names, own)
    annotated_sets = arguments.annotated_sets(options, home, options.file, options.map)
    if options.dry_run:
        mapping = parse(options.map)
        files = (annotated_file(home, file, options.layout, mapping) for file in options.file)
        sets = ((file.name, [row.sample for row in file.read.rows]) for file in files)
        bills.show(options, home, names, (own, requests), sets)
        return
    if not options.evaluator and (best := best_line(home))[0] in new:
        say(f"correlating {best[1]}")
    if not set(options.evaluator or ()).issuperset(names) and set(names) & set(BASELINES):
        say(f"beside the untrained baselines {' and '.join(BASELINES)}")
    from ssrem.flows.orchestration.options import AgreementOptions  # imports Pydantic

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
    output.outcome(options, home, ["agreement", "best"], outcomes, new_figures)


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
