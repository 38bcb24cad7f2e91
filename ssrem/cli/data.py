"""`ssrem run`, `ingest`, `tables`, `negatives` and `forget`: land dumps, build tables of them, forget a person."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Corpora, EvaluatorName, SetFile, StageCall, Verb, checked_by
from ssrem.errors import counted
from ssrem.settings import TableSettings
from ssrem.tasks.settings import (
    AnnotatedSets,
    DumpSettings,
    Margin,
    Margins,
    NegativeSettings,
    PipelineSettings,
)

Source = Annotated[
    tuple[str, ...],
    AfterValidator(lambda sources: tuple(dict.fromkeys(sources))),
    Field(
        description="dump of conversations: a file, folder, archive, pattern of files such as 'logs/*.txt', URL, or - "
        "for what is piped in; several are one corpus; chitchat comes with the install"
    ),
]


@Verb
def run(
    call: StageCall,
    source: Source = (),
    *,
    dump: DumpSettings,
    annotations: tuple[SetFile, ...] = (),
    sets: AnnotatedSets,
    evaluator: tuple[EvaluatorName, ...] = (),
    settings: PipelineSettings,
) -> None:
    """Run every stage in order; print what came out, the report's path and possible next steps.

    annotations: annotated sets: files or names of pulled sets
    evaluator: evaluators to train (default: ssrem rsrem)
    """
    from ssrem.annotated_sets.columns import divided
    from ssrem.evaluators import DEFAULT_EVALUATORS
    from ssrem.readers.fields import checked_mapping

    of_dump, of_sets = divided(dump.map)
    dump, sets = dump.model_copy(update={"map": of_dump}), sets.model_copy(update={"map": of_sets})
    if of_sets and not annotations:
        raise UsageError(
            f"--map {next(iter(of_sets))}=… is about annotated sets; give one with --annotations"
        )
    # Wrong options of later stages are reported before the first stage runs.
    checked_mapping(of_dump)
    tasks.train.checked(evaluator or DEFAULT_EVALUATORS, settings.training, call.home)
    tasks.annotated.annotated_files(call.home, annotations, sets.layout, sets.map)
    home, resources = call.root, call.resources
    corpus, _ = tasks.ingest.land(source or "chitchat", home, dump, resources=resources)
    tasks.tables.build(corpus, home, settings.tables, resources=resources)
    tasks.train.train_all(evaluator, None, home, settings.training, settings.margin, resources=resources)
    tasks.score.score_baselines(home, resources=resources)
    if annotations:
        names = tasks.versions.to_correlate(call.home, evaluator)
        chosen = tasks.versions.registered(home, names, {}, resources=resources)
        tasks.correlate.correlate_files(annotations, chosen, home, sets, resources=resources)
    tasks.correlate.correlate_all(home, resources=resources)  # also the annotated sets that landed before
    tasks.study.study_behaviour(home, resources=resources)
    page = tasks.report.write_report(home, anew=False)
    rows, findings = tasks.query.summary(call.home, tasks.query.AFTER_RUN), tasks.query.no_better(call.home)
    if output.answered(call, {**rows, "no_better": findings, "report": page}):
        return
    output.summaries(rows)
    output.sentences([*findings, *tasks.query.drawn(call.home)])
    print(f"report: {page}")
    if "agreement" in rows:
        print(f'next:   ssrem sql{call.shown} "SELECT * FROM scores ORDER BY f DESC LIMIT 10"')
    else:
        print(
            f"next:   ssrem ratings pull conture{call.shown}   fetches responses that people rated; or take your own"
        )
        print(f"next:   ssrem correlate conture{call.shown}   tells which evaluator agrees with these people")


@Verb
def ingest(
    call: StageCall, source: Source, *, dump: DumpSettings, retrain: bool = False, margin: Margin = Margins()
) -> None:
    """Land a dump, and retrain if that is wanted.

    retrain: then retrain the evaluators that have not seen every landed corpus
    """
    if margin != Margins() and not retrain:
        raise UsageError("--margin is about a retraining; add --retrain, or leave it out")
    corpus, new = tasks.ingest.land(source, call.root, dump, resources=call.resources)
    again = tasks.train.retrain(call.root, None, margin, resources=call.resources) if retrain else {}
    every = tasks.query.summary(call.home, ["corpora", "quarantine"])
    own = {name: [row for row in rows if row["corpus"] == corpus] for name, rows in every.items()}
    (landed,), quarantine = own["corpora"], own.get("quarantine", [])
    answer = {"corpus": corpus, "new": new, **landed, "quarantine": quarantine}
    if not output.answered(call, answer | ({"retrained": again} if retrain else {})):
        what = f"landed {corpus}, read as {landed['format']}"
        print(what if new else f"{corpus} has this content already; nothing to do", end="\n\n")
        output.summaries({name: rows for name, rows in own.items() if rows})
        output.listed(again)


@Verb
def tables(call: StageCall, *, corpus: Corpora = (), table: TableSettings) -> None:
    """Build the speaker tables of landed corpora."""
    from ssrem.tasks.warehouse.home import landed_corpora

    chosen = landed_corpora(call.root, corpus)
    new = {name: tasks.tables.build(name, call.root, table, resources=call.resources) for name in chosen}
    output.outcome(call, ["speaker_sets"], output.done(new, "built"))


@Verb
def negatives(
    call: StageCall,
    generator: Annotated[str, checked_by("ssrem.negatives:needs_model")],
    *,
    corpus: Corpora = (),
    settings: NegativeSettings,
) -> None:
    """Make negative responses of landed corpora.

    generator: random-2, sc, sp, ss, mask-and-fill, drop-golden, shuffle-golden, …; A+B for several
    """
    from ssrem.tasks.warehouse.home import landed_corpora

    chosen = landed_corpora(call.root, corpus)
    tasks.tables.build_missing(call.root, chosen, resources=call.resources)
    new = {
        name: tasks.tables.make_negatives(name, call.root, generator, settings, resources=call.resources)
        for name in chosen
    }
    output.outcome(call, ["negatives"], output.done(new, "made"))


@Verb
def forget(
    call: StageCall,
    speaker: str,
    *,
    pseudonym_key: Annotated[str | None, DumpSettings.model_fields["pseudonym_key"]] = None,
    corpus: Corpora = (),
) -> None:
    """Forget a person: land the corpora anew without them, and delete what was made from their words.

    speaker: the person's id, as in the dump or in the tables
    """
    deleted = tasks.privacy.forget(
        speaker, call.root, corpus or None, pseudonym_key=pseudonym_key, resources=call.resources
    )
    if output.answered(call, deleted):
        return
    for name, of in deleted["corpora"].items():
        said = [counted(of[f"{what}s"], what) for what in ("utterance", "conversation")]
        print(f"{name}: {' and '.join(said)} removed")
    if not deleted["corpora"]:
        print("forgotten before; nothing of them was left")
    if deleted["evaluators"]:
        output.tables({"evaluators that learned from these corpora, deleted": deleted["evaluators"]})
    if deleted["corpora"] or deleted["evaluators"]:
        again = (f"ssrem {verb}{call.shown}" for verb in ("tables", "train", "report"))
        print(f"next:   {'; '.join(again)}   make the tables, models and page again")
