"""`ssrem score`: scores of the responses in a file, or of one; `ssrem score-corpus`: of a corpus's test split."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Call, Corpora, DryRun, EvaluatorName, StageCall, Verb
from ssrem.errors import counted, printable, say
from ssrem.settings import Columns
from ssrem.tasks.settings import AskingSettings

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator
    from ssrem.responses import ResponseRow, Responses

Words = Parameter(allow_leading_hyphen=True, consume_multiple=False)
"""Makes an option take exactly one word, which may begin with a hyphen."""


@Verb
def score(
    call: Call,
    file: str | None = None,
    *,
    format: Literal["json", "jsonl", "csv", "tsv", "text", "parquet"] | None = None,
    map: Columns | None = None,
    context: Annotated[tuple[str, ...], Words] = (),
    response: Annotated[str | None, Words] = None,
    reference: Annotated[str | None, Words] = None,
    evaluator: EvaluatorName | None = None,
    output_: Path | None = None,
    asking: AskingSettings,
    dry_run: DryRun = False,
) -> int:
    """Print or write a score for each response; a response that cannot be scored has the reason instead.

    The exit status is 1 if that is the only response, given by `--response`.

    file: responses with their contexts; - for standard input (default: the one of --response)
    format: json, a list of objects; jsonl, one a line; csv and tsv with a header; text, a context, a tab and a response
        a line; parquet (default: guessed from the content)
    map: FIELD=COLUMN: which column or key is which field: context response reference id; context=A+B for a turn each;
        separator=TEXT between turns (default: a line break)
    context: a turn before --response; give --context for each, the oldest first
    response: score this response alone
    reference: true response to compare --response with
    evaluator: if it was not trained in this home folder, the packaged one (default: the best that is packaged and
        installed)
    output_: write there instead of to the terminal
    """
    from ssrem.evaluators import packaged

    if output_:
        output.check(output_, file)  # before the scoring, which may take long
    read, source = _read(file, format, map, context, response, reference)
    with scoring(call, evaluator, asking, f"scoring {source} with {{}}") as (name, scorer, line):
        if dry_run:
            samples = [row.sample for row in read.rows if row.sample is not None]
            output.requests(call, [tasks.endpoints.dry_run_row(name, scorer, samples, source)])
            return 0
        best = line
        if evaluator in packaged() and not tasks.versions.versions(call.home, name):
            best = f"the packaged {name}, since none has been trained in {call.home.root}"
        guessed = f"{source}: read as {read.guessed}; --format overrides" if read.guessed else ""
        columns = f"{source}: {read.told}" if read.told else ""
        for note in filter(None, (guessed, columns, best and f"scoring with {best}")):
            say(note)  # only now, so that an error is the only line
        scored = _scored(scorer, read.rows)
    if call.json_:
        text = "".join(json.dumps({**row, "signature": scorer.signature}) + "\n" for row in scored)
    else:
        text = _text(scored, alone=response is not None)
    if output_:
        output.write(output_, text)
    else:
        sys.stdout.write(text)
    if response is None:
        say(_summary(scored, read.rows, f"{source} with {name}"))
    return 1 if response is not None and scored[0]["score"] is None else 0


@contextmanager
def scoring(
    call: Call, evaluator: str | None, asking: AskingSettings, what: str
) -> Iterator[tuple[str, Evaluator, str]]:
    """Yield an evaluator's name, the evaluator, and a line on why it was chosen, to a block that scores responses.

    The line is empty if `evaluator` names it. what: what the block does, for the progress bar, with {} for the name.
    """
    from ssrem.tasks.stage.progress import progress

    name, line = (evaluator, "") if evaluator else tasks.versions.best_line(call.home)
    own, client = tasks.endpoints.split_settings([name], asking)
    with progress(what.replace("{}", name)) as advance:
        made = tasks.versions.created(call.home, name, own.get(name))
        yield name, tasks.endpoints.connected(made, call.home, client, advance), line


def _read(
    file: str | None,
    format: str | None,
    map: dict[str, str] | None,
    context: tuple[str, ...],
    response: str | None,
    reference: str | None,
) -> tuple[Responses, str]:
    """The responses that the options give, and the name of their source in messages."""
    from ssrem.annotated_sets.columns import turns
    from ssrem.responses import ResponseRow, Responses, read_responses
    from ssrem.samples import Sample

    if response is not None:
        if file is not None:
            raise UsageError(
                f"{file} and --response: give a file or one response, not both; a turn is given by --context alone, "
                "once for each"
            )
        if format or map:
            raise UsageError("--format and --map say how a file is read; leave them out beside --response")
        sample = Sample(turns("\n".join(context).split("\n")), response, reference)
        return Responses((ResponseRow("--response", None, sample),), None), "--response"
    if context or reference:
        raise UsageError("--context and --reference belong to --response; give it, too, and no file")
    if file is None:
        raise UsageError("give a file of responses, - for standard input, or one response by --response")
    return read_responses(file, format, map), "standard input" if file == "-" else file


def _scored(evaluator: Evaluator, rows: Sequence[ResponseRow]) -> list[dict[str, Any]]:
    """A row of output for each response: its id, if any has one, the score, its parts, and why there is no score."""
    from ssrem.evaluators import PARTS
    from ssrem.samples import Sample

    scores = evaluator.components([row.sample or Sample((), "") for row in rows])
    columns = {name: getattr(scores, name).tolist() for name in ("score", *PARTS)}
    identified = any(row.id is not None for row in rows)
    scored = []
    for number, row in enumerate(rows):
        parts = {name: None if math.isnan(of[number]) else float(of[number]) for name, of in columns.items()}
        reason = str(scores.reasons[number])
        if parts["score"] is None:
            reason = f"malformed row: {row.fault}" if row.sample is None else reason or "no score"
        id = {"id": row.id} if identified else {}
        cut = bool(scores.truncated[number])
        scored.append({"row": number + 1, **id, **parts, "truncated": cut, "reason": reason or None})
    return scored


def _text(scored: Sequence[dict[str, Any]], *, alone: bool) -> str:
    """The scores as a tab-separated table; if `alone`, only the score of the one response."""

    def cell(value: Any) -> str:
        return "" if value is None else f"{value:.6f}" if isinstance(value, float) else printable(str(value))

    if alone:
        (row,) = scored
        return f"{cell(row['score']) or 'no score: ' + row['reason']}\n"
    hidden = ("truncated",) if any(row["reason"] for row in scored) else ("truncated", "reason")
    names = [name for name in scored[0] if name not in hidden]
    lines = [names, *([cell(row[name]) for name in names] for row in scored)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _summary(scored: Sequence[dict[str, Any]], rows: Sequence[ResponseRow], of: str) -> str:
    """A line on how many responses have a score, and on how many have none for each reason."""
    reasons = Counter(row["reason"].partition(":")[0] for row in scored if row["reason"])
    line = f"scored {len(scored) - reasons.total():,} of {counted(len(scored), 'response')} of {of}"
    if reasons:
        line += f"; without a score: {', '.join(f'{reason} {n:,}' for reason, n in reasons.items())}"
    if cut := sum(row["truncated"] for row in scored):
        line += f"; read in part, as context or response is too long: {cut:,}"
    mixed = sum(row["h"] is not None for row in scored)
    if 0 < mixed < len(scored) - reasons.total():
        line += f"; their score is f, since h needs a reference: {mixed:,} have one"
    malformed = next((row for row in rows if row.sample is None), None)
    return line + (f" (the first: {malformed.where}: {malformed.fault})" if malformed else "")


@Verb
def score_corpus(call: StageCall, *, corpus: Corpora = (), evaluator: tuple[EvaluatorName, ...] = ()) -> None:
    """Score corpora's test splits with evaluators that may have learned from other corpora.

    evaluator: if it was not trained in this home folder, the packaged one (default: all in use)
    """
    new = tasks.score.score_corpora(call.root, corpus or None, evaluator or None, resources=call.resources)
    outcomes = {name: f"scored by {', '.join(by)}" if by else "there already" for name, by in new.items()}
    output.outcome(call, ["identification"], outcomes)
