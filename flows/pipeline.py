"""Flow `pipeline`: every stage in order; work that is done already is skipped."""

from prefect import flow, tags

from ssrem.errors import AnnotationError, DumpError
from ssrem.flows.artifacts import shown
from ssrem.flows.correlate import correlate
from ssrem.flows.drop_folder import drop_folder
from ssrem.flows.hooks import flow_options
from ssrem.flows.ingest import ingest
from ssrem.flows.report import report
from ssrem.flows.retrain import retrain
from ssrem.flows.steps import correlate_landed, score_baselines, study_behaviour
from ssrem.flows.tables import tables
from ssrem.flows.train import train
from ssrem.tasks.annotated import annotated_files
from ssrem.tasks.ingest import RejectedError
from ssrem.tasks.query import AFTER_RUN
from ssrem.tasks.settings import AnnotatedSets, DumpSettings, PipelineSettings, Resources, Runner
from ssrem.tasks.stage.shards import opened
from ssrem.tasks.tables import without_tables
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora


@flow(**flow_options("source", "landed"))
def pipeline(
    source: str | list[str] | None = "chitchat",
    home: str = "warehouse",
    dump: DumpSettings = DumpSettings(),
    inbox: str | None = None,
    annotations: list[str] | None = None,
    sets: AnnotatedSets = AnnotatedSets(),
    evaluators: list[str] | None = None,
    options: PipelineSettings = PipelineSettings(),
    retrain_outdated: bool = False,
    resources: Resources = Resources(),
    runner: Runner = Runner(),
) -> str:
    """Land a dump, build its speaker tables, train, score, correlate, study the behaviour and report; returns the
    report's path.

    Evaluators are trained on all corpora that have landed.

    Args:
        source: Dump or dumps, as the flow ingest takes them; chitchat is the corpus that comes with ssrem
        inbox: Folder whose complete dumps land as well
        annotations: Annotated sets: files, folders or names of pulled sets
        evaluators: Names of evaluators; by default ssrem and rsrem
        retrain_outdated: Retrain all evaluators in use that have not seen every landed corpus
    """
    # What cannot be used is reported before the first stage, not after the last.
    if dump != DumpSettings() and not (source or inbox):
        raise DumpError("dump says how to land what neither source nor inbox names; leave it out")
    if dump.name and inbox:
        raise DumpError(f"the corpora of an inbox are named as their files; leave out the name {dump.name}")
    if sets != AnnotatedSets() and not annotations:
        raise AnnotationError("sets says how to read annotated sets, but annotations names none")
    annotated_files(Warehouse.at(home), annotations or (), sets.layout, sets.map)
    rejected: RejectedError | None = None
    with tags("pipeline"), opened(runner):
        # Not announced: a deployment that listens to the event would train at the same time in the same home folder.
        if source:
            corpus, _ = ingest(source, home, dump, announce=False, resources=resources)
            tables(home, [corpus], options.tables, resources)
        if inbox:
            try:
                drop_folder(inbox, home, dump=dump, announce=False, resources=resources)
            except RejectedError as error:  # a rejected dump does not stop the others from being used
                rejected = error
            if missing := without_tables(home, landed_corpora(home)):
                tables(home, missing, options.tables, resources)
        train(evaluators, None, home, options.training, options.margin, resources)
        if retrain_outdated:
            retrain(None, home, options.margin, resources)
        score_baselines(home, resources=resources)
        if annotations:
            correlate(annotations, home, evaluators, sets, resources=resources)
        with shown(home, "study", AFTER_RUN):
            correlate_landed(home, resources=resources)  # also of sets that landed before
            study_behaviour(home, resources=resources)
        path = report(home, anew=False)
    if rejected:
        raise rejected
    return path
