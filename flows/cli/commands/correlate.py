"""`ssrem correlate` and `ssrem reproduce`: agreement of scores with human scores."""

from __future__ import annotations

import argparse

from flows.cli import arguments, learning, output
from flows.cli.start import flow
from tasks.agreement.reproduce import reproduce as compute_again
from tasks.training.versions import promoted, unregistered
from tasks.warehouse.home import Warehouse


def correlate(options: argparse.Namespace, home: Warehouse) -> None:
    """Score annotated sets and correlate the scores with human scores."""
    runner = arguments.runner(options)
    named = options.evaluator or []
    new = unregistered(home, named)
    if not new or len(new) < len(named):
        promoted(home, [name for name in named if name not in new])
    annotated_sets = learning.annotated_sets(options, home, options.file, options.map)
    new_figures = flow("correlate")(
        annotated_sets,
        str(home.root),
        options.evaluator,
        options.keep_ground_truth,
        options.force_systems,
        arguments.resources(options),
        runner,
    )
    outcomes = {name: "correlated" if new else "there already" for name, new in new_figures.items()}
    output.after(options, home, ["agreement", "best"], outcomes)


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
