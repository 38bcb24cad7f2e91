"""`ssrem score`: scores of the responses in a file, or of one; `ssrem score-corpus`: of a corpus's test split."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.annotated_sets.base import turns
from ssrem.annotated_sets.columns import parse
from ssrem.cli import arguments, bills, output
from ssrem.cli.start import flow
from ssrem.errors import SsremError, printable, say
from ssrem.evaluators import packaged
from ssrem.evaluators.parts import PARTS
from ssrem.responses import FIELDS, Row, read_responses
from ssrem.samples import Sample
from ssrem.tasks.scoring.endpoint_requests import bill_row, request_options_in, split_settings, why_marked
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.training.versions import best_line, created, versions
from ssrem.tasks.warehouse.files import check_target, whole_file
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator

MALFORMED = "malformed row"


def score(options: argparse.Namespace, home: Warehouse) -> int:
    """Print or write a score for each response; a response that cannot be scored has the reason instead.

    The exit status is 1 if that is the only response, given by `--response`.
    """
    target = Path(options.output) if options.output else None
    with output.writing(target):
        if target:
            check_target(target)  # scoring may take long
    rows, source, notes = _rows(options)
    name, line = best_line(home) if options.evaluator is None else (options.evaluator, "")
    if options.evaluator in packaged() and not versions(home, name):
        line = f"{name}, as none is trained in {home.root} the one that comes with ssrem"
    own, requests = split_settings([name], arguments.evaluator_settings(options))
    private = why_marked(source, source)
    with (
        progress(f"scoring {source} with {name}") as advance,
        request_options_in(home, advance=advance, private=private, **requests),
    ):
        evaluator = created(home, name, own.get(name))
        if options.dry_run:
            samples = [row.sample for row in rows if row.sample is not None]
            bills.show_rows([bill_row(name, evaluator, samples, source)], options)
            return 0
        notes += [f"scoring with {line}"] if line else []
        for note in notes:  # only now: an error prints one line alone
            say(note)
        scored = _scored(evaluator, rows)
    text = _text(scored, evaluator.signature, options)
    if target is None:
        sys.stdout.write(text)
    else:
        with output.writing(target), whole_file(target) as draft:
            draft.write_text(text, encoding="utf-8")
    if options.response is None:
        say(_summary(scored, rows, f"{source} with {name}"))
        return 0
    return 1 if scored[0]["score"] is None else 0


def score_corpus(options: argparse.Namespace, home: Warehouse) -> None:
    """Score corpora's test splits with evaluators that may have learned from other corpora."""
    runner = arguments.runner(options)
    new = flow("score_corpus")(
        str(home.root), options.corpus, options.evaluator, arguments.resources(options), runner
    )
    outcomes = {
        corpus: f"scored by {', '.join(names)}" if names else "there already" for corpus, names in new.items()
    }
    output.outcome(options, home, ["identification"], outcomes)


def _rows(options: argparse.Namespace) -> tuple[Sequence[Row], str, list[str]]:
    """The rows to score, the name of their source in messages, and notes about it."""
    if options.response is not None:
        if options.file is not None:
            raise SsremError(f"{options.file} and --response: give a file, or one response, not both")
        context = turns("\n".join(options.context or ()))
        sample = Sample(context, options.response, options.reference)
        return [Row("--response", None, sample)], "--response", []
    if options.context or options.reference:
        way_out = "give it, too" if options.file is None else "a file has its own"
        raise SsremError(f"--context and --reference belong to --response; {way_out}")
    if options.file is None:
        raise SsremError("give a file of responses, - for standard input, or one response by --response")
    responses = read_responses(options.file, options.format, parse(options.map, FIELDS))
    source = "standard input" if options.file == "-" else options.file
    notes = [f"{source}: read as {responses.guessed}; --format overrides"] if responses.guessed else []
    return responses.rows, source, notes


def _scored(evaluator: Evaluator, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A row of output for each: the input's id if it has one, the score, its parts, and the reason if it has none."""
    samples = [row.sample or Sample((), "") for row in rows]
    scores = evaluator.components(samples)
    columns = {name: getattr(scores, name).tolist() for name in ("score", *PARTS)}
    identified = any(row.id is not None for row in rows)
    scored = []
    for number, row in enumerate(rows):
        reason = str(scores.reasons[number])
        parts = {name: _or_none(values[number]) for name, values in columns.items()}
        if parts["score"] is None:
            reason = f"{MALFORMED}: {row.fault}" if row.sample is None else reason or "no score"
        scored.append(
            {"row": number + 1, **({"id": row.id} if identified else {}), **parts, "reason": reason or None}
        )
    return scored


def _text(scored: Sequence[dict[str, Any]], signature: str, options: argparse.Namespace) -> str:
    if options.json:
        lines = [json.dumps({**row, "signature": signature}) for row in scored]
    elif options.response is not None:
        (row,) = scored
        lines = [f"no score: {row['reason']}" if row["score"] is None else f"{row['score']:.6f}"]
    else:
        lacking = any(row["reason"] for row in scored)
        rows = scored if lacking else [{k: v for k, v in row.items() if k != "reason"} for row in scored]
        lines = ["\t".join(rows[0]), *map(_tabbed, rows)]
    return "\n".join(lines) + "\n"


def _summary(scored: Sequence[dict[str, Any]], rows: Sequence[Row], of: str) -> str:
    """How many responses have a score, and how many have none for which reason."""
    reasons = Counter(row["reason"].partition(":")[0] for row in scored if row["reason"])
    line = f"scored {len(scored) - reasons.total():,} of {output.count(len(scored), 'response')} of {of}"
    if reasons:
        line += f"; without a score: {', '.join(f'{reason} {n:,}' for reason, n in reasons.items())}"
    malformed = next((row for row in rows if row.sample is None), None)
    return line + (f" (the first: {malformed.where}: {malformed.fault})" if malformed else "")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _tabbed(values: dict[str, Any]) -> str:
    cells = (
        "" if v is None else f"{v:.6f}" if isinstance(v, float) else printable(str(v))
        for v in values.values()
    )
    return "\t".join(cells)
