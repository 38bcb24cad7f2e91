"""Flow `ingest`: land a dump, and emit an event if its corpus is new."""

from __future__ import annotations

from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.flows.orchestration.options import DumpOptions
from ssrem.tasks.ingest.land import land
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.stage.steps import in_flow_run
from ssrem.tasks.warehouse.home import Warehouse


def ingest(
    source: str | list[str] = "chitchat",
    home: str = "warehouse",
    dump: DumpOptions = DumpOptions(),
    announce: bool = True,
    resources: Resources = Resources(),
) -> tuple[str, bool]:
    """Land a dump; returns the corpus's name and whether it is new.

    Args:
        source: File, folder, pattern such as logs/*.txt, URL, or several as one corpus; chitchat comes with ssrem
        announce: In a flow run, emit the event `corpus.landed` if the corpus is new
    """
    repair(home)
    with stage_artifacts(home, "ingest", ["corpora", "quarantine"]):
        corpus, new = land(source, home, **dump.model_dump(), resources=resources)
    if new and announce and in_flow_run():
        from prefect.events import emit_event

        # Events can get lost; the ledger in the home folder says what has landed.
        emit_event(
            event="corpus.landed",
            resource={"prefect.resource.id": f"corpus.{corpus}"},
            payload={"name": corpus, "home": str(Warehouse.at(home).root)},
        )
    return corpus, new
