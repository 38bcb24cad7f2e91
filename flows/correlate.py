"""Flow `correlate`: score annotated sets and correlate the scores with human scores."""

from prefect import flow

from ssrem.errors import AnnotationError
from ssrem.flows.artifacts import shown
from ssrem.flows.hooks import flow_options
from ssrem.flows.steps import correlate_set
from ssrem.tasks.annotated import annotated_files
from ssrem.tasks.correlate import correlate_files
from ssrem.tasks.endpoints import split_settings
from ssrem.tasks.settings import AgreementSettings, AnnotatedSets, AskingSettings, Resources
from ssrem.tasks.versions import registered, to_correlate
from ssrem.tasks.warehouse.home import Warehouse


@flow(**flow_options("files", "nothing"))
def correlate(
    files: list[str],
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    sets: AnnotatedSets = AnnotatedSets(),
    agreement: AgreementSettings = AgreementSettings(),
    asking: AskingSettings = AskingSettings(),
    resources: Resources = Resources(),
) -> dict[str, bool]:
    """Score annotated sets with evaluators and correlate; returns for each dataset whether it is new.

    An evaluator that learns nothing or comes with ssrem is registered first. The untrained baselines are compared too.
    A set that cannot be read is an error before anything is computed. If several sets fail later, each is reported in
    a line; the last one is raised.

    Args:
        files: Annotated sets: files or names of pulled sets
        evaluators: Names of evaluators; by default all in use, or the best that is packaged and installed
    """
    if not files:
        raise AnnotationError("no annotated set is named; give files, paths or names of pulled sets")
    # Read here for the errors, before an evaluator is registered.
    annotated_files(Warehouse.at(home), files, sets.layout, sets.map)
    names = to_correlate(Warehouse.at(home), evaluators or ())
    own, client = split_settings(evaluators or names, asking)  # the settings are not for added baselines
    with shown(home, "correlate", ["agreement", "best"]):
        versions = registered(home, names, own, resources=resources)
        return correlate_files(
            files,
            versions,
            home,
            sets,
            agreement,
            client=client,
            resources=resources,
            correlate=correlate_set,
        )
