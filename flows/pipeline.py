"""Flow `pipeline`: everything, in order; what is done already is passed over."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.correlate import agree
from flows.drop_folder import inbox as take_in
from flows.ingest import ingest
from flows.orchestration.failure_hook import tell
from flows.orchestration.task_runners import Runner, on_workers
from flows.report import report
from flows.retrain import retrain as retrain_others
from flows.tables import tables
from flows.train import train
from ssrem.annotated_sets.columns import divided
from ssrem.encoders import DEFAULT_ENCODER
from ssrem.errors import DumpError
from tasks.agreement.annotated_sets import annotated_file
from tasks.agreement.measure import measure_all
from tasks.stage.stage import Resources
from tasks.warehouse.home import Warehouse


@flow(name="pipeline", on_failure=[tell], on_crashed=[tell])
@on_workers
def pipeline(
    source: str | None = "chitchat",
    home: str = "warehouse",
    annotations: list[str] | None = None,
    format: str | None = None,
    mapping: dict[str, str] | None = None,
    name: str | None = None,
    speakers: str = "auto",
    pseudonymise: bool = False,
    pseudonym_key_file: str | None = None,
    evaluators: list[str] | None = None,
    encoder: str | None = None,
    seed: int = 0,
    context_turns: int = 5,
    inbox: str | None = None,
    retrain: bool = False,
    margins: dict[str, float] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    runner: Runner | None = None,
    runner_address: str | None = None,
    workers: int = 2,
    layout: str | None = None,
) -> str:
    """Land the dump, build its speaker tables, train, score, correlate and report; returns the report's path.

    Evaluators are trained on all that has landed. inbox: a drop folder whose dumps land, too. retrain: not only the
    evaluators named, but all in use that have not seen all that has landed. mapping: of the dump's fields and the
    annotated sets', whose layout is `layout` where their content does not tell.
    """
    of_dump, of_sets = divided(mapping)
    for file in annotations or ():  # a slip in the last stage's input is told before the first one starts
        annotated_file(Warehouse.at(home), file, layout, of_sets)
    room: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads}
    private: dict[str, Any] = {"pseudonymise": pseudonymise, "pseudonym_key_file": pseudonym_key_file}
    refused: DumpError | None = None
    # Not announced: what listens for landed corpora would train beside us, and one home has one writer.
    if source:
        landing: dict[str, Any] = {"format": format, "mapping": of_dump, "name": name, "speakers": speakers}
        corpus, _ = ingest(source, home, announce=False, **landing, **private, **room)
        built: dict[str, Any] = {
            "seed": seed,
            "context_turns": context_turns,
            "encoder": encoder or DEFAULT_ENCODER,
        }
        tables(home, [corpus], **built, **room)
    if inbox:
        try:
            take_in(inbox, home, announce=False, **private, **room)
        except DumpError as error:  # one bad dump does not keep the others from being used
            refused = error
    train(home, evaluators, encoder=encoder, config={"seed": seed}, margins=margins, **room)
    if retrain:
        retrain_others(home, margins=margins, **room)
    if annotations:
        agree(annotations, home, evaluators, layout=layout, mapping=of_sets, **room)
    measure_all(home, resources=Resources(memory_limit, threads))  # also of sets that landed before
    path = report(home)
    if refused:
        raise refused
    return path
