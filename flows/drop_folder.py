"""Flow `drop_folder`: land the dumps in a folder, and move them out of it."""

from functools import partial

from prefect import flow

from ssrem.flows.artifacts import table
from ssrem.flows.hooks import flow_options
from ssrem.flows.ingest import ingest
from ssrem.settings import Seconds
from ssrem.tasks.ingest import land_folder
from ssrem.tasks.settings import DumpSettings, Resources


@flow(**flow_options("folder"))
def drop_folder(
    folder: str,
    home: str = "warehouse",
    settle: Seconds = 5.0,
    dump: DumpSettings = DumpSettings(),
    announce: bool = True,
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Land every complete dump of the folder; returns for each file or folder what became of it.

    Dumps that land are moved to `done/`; dumps that cannot land to `rejected/`, with the reason in a file beside them.
    A dump that fails for another reason, such as a full disk, stays where it is.

    Args:
        folder: Folder in which each file or folder is a dump, whose name its corpus takes
        settle: Seconds without a change after which a dump is complete
        announce: Emit the event `corpus.landed` for each new corpus
    """
    land = partial(ingest, announce=announce)
    outcomes = land_folder(folder, home, dump, settle=settle, resources=resources, land=land)
    if rows := [{"dump": name, "outcome": outcome} for name, outcome in outcomes.items()]:
        table(rows, "landed", "dumps that landed")
    return outcomes
