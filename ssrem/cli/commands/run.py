"""`ssrem run`: every stage in order."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from ssrem.cli import arguments, output
from ssrem.cli.start import flow
from ssrem.tasks.query.summaries import AFTER_RUN, no_better, summary
from ssrem.tasks.warehouse.home import Warehouse


def run(options: argparse.Namespace, home: Warehouse) -> None:
    """Run the pipeline; print its summaries, the report's path and possible next steps."""
    if options.map:
        from ssrem.annotated_sets.columns import concerns  # imports NumPy
    dump = arguments.dump(options, home, [pair for pair in options.map if not concerns(pair)])
    rating_pairs = [pair for pair in options.map if concerns(pair)]
    annotated_sets = arguments.annotated_sets(options, home, options.annotations, rating_pairs)
    from ssrem.flows.orchestration.options import PipelineOptions  # imports Pydantic

    runner = arguments.runner(options)
    report = flow("pipeline")(
        arguments.source(options, "chitchat"),
        str(home.root),
        dump,
        annotated_sets,
        options.evaluator,
        arguments.filled(PipelineOptions, options, margins=arguments.margins(options)),
        arguments.resources(options),
        runner,
    )
    rows = summary(home, AFTER_RUN)
    if options.json:
        output.as_json({**rows, "no_better": no_better(home), "report": report})
        return
    output.summaries(rows)
    output.sentences(no_better(home))
    print(f"report: {report}")
    usual = options.home == Path(os.environ.get("SSREM_HOME", "warehouse"))
    shown = "" if usual else f" --home {shlex.quote(str(options.home))}"
    if not options.annotations:
        print(f"next:   ssrem correlate{shown} ANNOTATED.json   compares the scores with human scores")
    print(f'next:   ssrem sql{shown} "SELECT * FROM scores ORDER BY f DESC LIMIT 10"')
