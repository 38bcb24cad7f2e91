"""`ssrem ratings`: collect human ratings, and fetch public annotated sets."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ssrem import tasks
from ssrem.annotation.batch import BatchPlan
from ssrem.cli import output
from ssrem.cli.options import Call, Verb
from ssrem.errors import AnnotationError, say
from ssrem.registry import did_you_mean
from ssrem.settings import Share, by_key

files = partial(by_key, form="NAME=FILE, such as gpt2=responses.jsonl", once="name each system once")
"""`NAME=FILE` texts as a mapping."""


@Verb
def list_(call: Call) -> None:
    """List the known public annotated sets."""
    from ssrem.annotated_sets.known import known_sets

    rows = [
        {**asdict(one), "pulled": one.file(tasks.annotated.pulled(call.home)).exists()}
        for one in known_sets().values()
    ]
    if output.answered(call, rows):
        return
    for row in rows:
        row["pulled"] = "by hand" if not (row["pulled"] or row["sha256"]) else row["pulled"]
    shown = ("name", "responses", "layout", "pulled", "licence")
    output.tables({"public annotated sets": [{name: row[name] for name in shown} for row in rows]})
    print(f"next: ssrem ratings pull NAME{call.shown}")


@Verb
def pull(call: Call, name: tuple[str, ...], *, to: Path | None = None) -> None:
    """Fetch public annotated sets and check them.

    name: sets that ssrem ratings list shows
    to: folder for the files (default: annotated-sets in the home folder, where names are looked up)
    """
    from ssrem.annotated_sets.known import known_sets
    from ssrem.annotated_sets.known import pull as pull_set

    sets, names = known_sets(), list(dict.fromkeys(name))
    if unknown := [one for one in names if one not in sets]:
        near = did_you_mean(unknown[0], sets)
        raise AnnotationError(f"there is no set {unknown[0]!r}{near}; the sets are {', '.join(sets)}")
    rows = []
    for one in names:
        known = sets[one]
        path, new = pull_set(known, to or tasks.annotated.pulled(call.home))
        rows.append({**asdict(known), "file": str(path), "new": new})
        if not call.json_:
            print(f"{one}: {'fetched' if new else 'there already'}, {path}")
            print(f"  licence:  {known.licence}")
            print(f"  citation: {known.citation}")
            print(f"  sha256:   {known.sha256 or 'none is known; not checked'}")
    if not output.answered(call, rows):
        file = "FILE, with the layout that ssrem ratings list shows where it has a colon"
        print(f"next: ssrem correlate {file if to else ' '.join(names)}{call.shown}")


@Verb
def collect(
    call: Call,
    folder: Path,
    *,
    corpus: str | None = None,
    split: Literal["valid", "test"] = "test",
    responses: Annotated[dict[str, Path], BeforeValidator(files)] = {},  # noqa: B006
    without_bm25: bool = False,
    plan: BatchPlan,
) -> None:
    """Draw a batch of responses and write the files that raters fill in.

    folder: new folder of the batch
    corpus: which corpus (default: the only one that has landed)
    split: split of the contexts; bm25 answers them from the training split
    responses: NAME=FILE: a system and its responses, a JSON list or one object a line with context and response;
        contexts are drawn from those that every file answers
    without_bm25: no retrieved responses
    """
    drawn = tasks.annotate.export_batch(
        call.home, folder, plan, corpus=corpus, split=split, responses=responses, bm25=not without_bm25
    )
    summary = {
        "batch": drawn.id,
        "corpus": drawn.corpus,
        "contexts": plan.contexts,
        "systems": ", ".join(sorted({system for item in drawn.items for system in item.systems})),
        "items": len(drawn.items),
        "checks": sum(item.expected is not None for item in drawn.items),
        "raters": len(drawn.sheets),
        "largest_sheet": max(len(sheet) for sheet in drawn.sheets.values()),
    }
    if output.answered(call, {**summary, "folder": str(folder)}):
        return
    output.tables({"batch": [summary]})
    print(f"hand out: {folder / 'raters'}   page.html, or a table for each rater")
    print(f"keep:     {folder / 'key.json'}   which system is which, and the checks")
    print(f"next:     ssrem ratings import ANSWERS.json … --batch {folder}{call.shown}")


@Verb
def import_(
    call: Call,
    answers: tuple[Path, ...],
    *,
    batch: Path,
    checks_passed: Share = 1.0,
    kappa: Annotated[float, Field(ge=-1, le=1)] | Literal["none"] = 0.2,
    output_: Path | None = None,
) -> None:
    """Read raters' answers, leave out careless raters, and write an annotated set.

    answers: files that raters saved, JSON or CSV
    batch: folder that ssrem ratings collect wrote
    checks_passed: leave out raters who passed a smaller share of their attention checks
    kappa: leave out raters whose mean quadratic kappa with the others is below, -1 to 1, or none
    output_: annotated set to write (default: FOLDER/BATCH_eval.json)
    """
    file = output_ or batch / f"{batch.resolve().name}_eval.json"
    output.check(file, *answers, batch / "key.json")
    bound = None if kappa == "none" else kappa
    drawn, review = tasks.annotate.import_answers(
        batch, answers, output=file, least=checks_passed, kappa=bound
    )
    from numpy import isnan

    from ssrem.annotation.review import record  # imports SciPy

    noted = record(drawn, review)
    if output.answered(call, {**noted, "annotated": str(file)}):
        return
    counted = int((~isnan(review.ratings)).any(axis=0).sum())
    figures = {
        "Krippendorff's alpha, ordinal, all raters": (review.before.value, review.before.reason),
        "Krippendorff's alpha, ordinal, kept raters": (review.alpha.value, review.alpha.reason),
        "noise ceiling: one rater with the mean of the others, Spearman": (
            review.one.value,
            review.one.reason,
        ),
        "attainable by an evaluator, Spearman": (review.halves.value, review.halves.reason),
    }
    rows = [{"figure": name, "value": value, "note": reason} for name, (value, reason) in figures.items()]
    output.tables({"agreement among raters": rows})
    for name, raters in noted["unjudged"].items():
        if raters:
            say(f"not judged by {name}, for lack of checks or of shared responses: {', '.join(raters)}")
    if review.dropped:
        output.tables({"left out": [asdict(one) for one in review.dropped]}, raw=True)
    print(f"raters:    {len(review.remaining)} kept of {len(review.raters)} who answered")
    if absent := sorted(set(drawn.sheets) - set(review.raters)):
        print(f"no answer about a response: {', '.join(absent)}")
    rated = sum(item.expected is None for item in drawn.items)
    print(f"responses: {counted} of {rated} have a score that counts")
    print(f"written:   {file}; {batch / 'ratings.csv'}; {batch / 'import.json'}")
    print(f"next:      ssrem correlate {file}{call.shown}   with --replace, if answers came before")
