"""Flow `pipeline`: every stage in order; work that is done already is skipped."""

from __future__ import annotations

from ssrem.errors import DumpError
from ssrem.flows.correlate import correlate
from ssrem.flows.drop_folder import drop_folder
from ssrem.flows.ingest import ingest
from ssrem.flows.orchestration.options import (
    AnnotatedSetOptions,
    DumpOptions,
    PipelineOptions,
    RunnerOptions,
    TableOptions,
    TrainingOptions,
)
from ssrem.flows.orchestration.workers import on_workers
from ssrem.flows.report import report
from ssrem.flows.retrain import retrain
from ssrem.flows.tables import tables
from ssrem.flows.train import train
from ssrem.tasks.agreement.annotated_sets import annotated_file
from ssrem.tasks.agreement.correlate import correlate_all
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.studies.study import study_behaviour
from ssrem.tasks.warehouse.home import Warehouse


@on_workers
def pipeline(
    source: str | list[str] | None = "chitchat",
    home: str = "warehouse",
    dump: DumpOptions = DumpOptions(),
    annotated_sets: AnnotatedSetOptions = AnnotatedSetOptions(),
    evaluators: list[str] | None = None,
    options: PipelineOptions = PipelineOptions(),
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> str:
    """Land a dump, build its speaker tables, train, score, correlate, study the behaviour and report; returns the
    report's path.

    Evaluators are trained on all corpora that have landed.

    Args:
        source: Dump or dumps, as the flow ingest takes them; chitchat is the corpus that comes with ssrem
        evaluators: Names of evaluators; by default ssrem and rsrem
    """
    for file in annotated_sets.files:  # an unreadable file is reported before the first stage, not the last
        annotated_file(Warehouse.at(home), file, annotated_sets.layout, annotated_sets.mapping)
    rejected: DumpError | None = None
    # Not announced: a deployment that listens to the event would train at the same time in the same home folder.
    if source:
        corpus, _ = ingest(source, home, dump, announce=False, resources=resources)
        table = TableOptions(**options.model_dump(include=set(TableOptions.model_fields)))
        tables(home, [corpus], table, resources)
    if options.drop_folder:
        try:
            unnamed = DumpOptions(
                **dump.model_dump(
                    include={"max_quarantine", "not_people", "pseudonymise", "pseudonym_key_file"}
                )
            )
            drop_folder(options.drop_folder, home, dump=unnamed, announce=False, resources=resources)
        except DumpError as error:  # a rejected dump does not stop the others from being used
            rejected = error
    training = TrainingOptions(encoder=options.encoder, config={"seed": options.seed})
    train(home, evaluators, training=training, margins=options.margins, resources=resources)
    if options.retrain:
        retrain(home, margins=options.margins, resources=resources)
    if annotated_sets.files:
        correlate(annotated_sets, home, evaluators, resources=resources)
    correlate_all(home, resources=resources)  # also for annotated sets that landed before
    study_behaviour(home, resources=resources)
    path = report(home, anew=False)
    if rejected:
        raise rejected
    return path
