"""Flow `ingest`: land a dump, and emit an event if its corpus is new."""

from __future__ import annotations

from prefect.events import emit_event

from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import flow
from flows.orchestration.options import DumpOptions
from tasks.ingest.land import land
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.warehouse.home import Warehouse


@flow
def ingest(
    source: str = "chitchat",
    home: str = "warehouse",
    dump: DumpOptions = DumpOptions(),
    announce: bool = True,
    resources: Resources = Resources(),
) -> tuple[str, bool]:
    """Land a dump; returns the corpus's name and whether it is new.

    Args:
        source: File or folder; chitchat is the corpus that comes with ssrem
        announce: Emit the event `corpus.landed` if the corpus is new
    """
    repair(home)
    with shown(home, "ingest", ["corpora", "quarantine"]):
        corpus, new = land(source, home, **dump.model_dump(), resources=resources)
    if new and announce:
        # Events can get lost; the ledger in the home folder says what has landed.
        emit_event(
            event="corpus.landed",
            resource={"prefect.resource.id": f"corpus.{corpus}"},
            payload={"name": corpus, "home": str(Warehouse.at(home).root)},
        )
    return corpus, new
