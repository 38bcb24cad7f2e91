"""Flow `ingest`: land a dump, and emit an event if its corpus is new."""

from prefect import flow
from prefect.events import emit_event

from ssrem.flows.artifacts import shown
from ssrem.flows.hooks import flow_options
from ssrem.flows.steps import land
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.warehouse.home import Warehouse


@flow(**flow_options("source"))
def ingest(
    source: str | list[str] = "chitchat",
    home: str = "warehouse",
    dump: DumpSettings = DumpSettings(),
    announce: bool = True,
    resources: Resources = Resources(),
) -> tuple[str, bool]:
    """Land a dump; returns the corpus's name and whether it is new.

    Args:
        source: File, folder, pattern such as logs/*.txt, URL, or several as one corpus; chitchat comes with ssrem
        announce: Emit the event `corpus.landed` if the corpus is new
    """
    with shown(home, "ingest", ["corpora", "quarantine"]):
        corpus, new = land(source, home, dump, resources=resources)
        if new and announce:  # at once: after an error that follows, the corpus is no longer new
            emit_event(
                event="corpus.landed",
                resource={"prefect.resource.id": f"corpus.{corpus}"},
                payload={"name": corpus, "home": str(Warehouse.at(home).root)},
            )
    return corpus, new
