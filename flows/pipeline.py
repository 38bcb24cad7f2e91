"""Flow `pipeline`: every stage in order; work that is done already is skipped."""

from prefect import flow

from ssrem.errors import AnnotationError, DumpError
from ssrem.evaluators import DEFAULT_EVALUATORS
from ssrem.flows.artifacts import shown
from ssrem.flows.correlate import correlate
from ssrem.flows.hooks import flow_options
from ssrem.flows.ingest import ingest
from ssrem.flows.report import report
from ssrem.flows.retrain import retrain
from ssrem.flows.steps import correlate_landed, score_baselines, study_behaviour
from ssrem.flows.tables import tables
from ssrem.flows.train import train
from ssrem.tasks.annotated import annotated_files
from ssrem.tasks.query import AFTER_RUN
from ssrem.tasks.settings import AnnotatedSets, DumpSettings, PipelineSettings, Resources
from ssrem.tasks.train import checked
from ssrem.tasks.warehouse.home import Warehouse


@flow(**flow_options("source", "landed"))
def pipeline(
    source: str | list[str] | None = "chitchat",
    home: str = "warehouse",
    dump: DumpSettings = DumpSettings(),
    annotations: list[str] | None = None,
    sets: AnnotatedSets = AnnotatedSets(),
    evaluators: list[str] | None = None,
    options: PipelineSettings = PipelineSettings(),
    retrain_outdated: bool = False,
    resources: Resources = Resources(),
) -> str:
    """Land a dump, build its speaker tables, train, score, correlate, study the behaviour and report; returns the
    report's path.

    Evaluators are trained on all corpora that have landed.

    Args:
        source: Dump or dumps, as the flow ingest takes them; chitchat is the corpus that comes with ssrem
        annotations: Annotated sets: files or names of pulled sets
        evaluators: Names of evaluators; by default ssrem and rsrem
        retrain_outdated: Retrain all evaluators in use that have not seen every landed corpus
    """
    # What cannot be used is reported before the first stage, not after the last.
    if dump != DumpSettings() and not source:
        raise DumpError("dump says how to land a source, but none is named; leave it out")
    if sets != AnnotatedSets() and not annotations:
        raise AnnotationError("sets says how to read annotated sets, but annotations names none")
    checked(evaluators or DEFAULT_EVALUATORS, options.training, Warehouse.at(home))
    annotated_files(Warehouse.at(home), annotations or (), sets.layout, sets.map)
    # Not announced: a deployment that listens to the event would train at the same time in the same home folder.
    if source:
        corpus, _ = ingest(source, home, dump, announce=False, resources=resources)
        tables(home, [corpus], options.tables, resources)
    train(evaluators, None, home, options.training, options.margin, resources)
    if retrain_outdated:
        retrain(None, home, options.margin, resources)
    with shown(home, "score", []):
        score_baselines(home, resources=resources)
    if annotations:
        correlate(annotations, home, evaluators, sets, resources=resources)
    with shown(home, "study", AFTER_RUN):
        correlate_landed(home, resources=resources)  # includes sets that landed earlier
        study_behaviour(home, resources=resources)
    return report(home, anew=False)
