"""Flow `ingest`: a dump lands; an event says so."""

from __future__ import annotations

from prefect import flow
from prefect.events import emit_event

from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import tell
from tasks.ingest.land import land
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.warehouse.home import Warehouse


@flow(name="ingest", on_failure=[tell], on_crashed=[tell])
def ingest(
    source: str = "chitchat",
    home: str = "warehouse",
    format: str | None = None,
    mapping: dict[str, str] | None = None,
    name: str | None = None,
    speakers: str = "auto",
    replace: bool = False,
    pseudonymise: bool = False,
    pseudonym_key_file: str | None = None,
    announce: bool = True,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> tuple[str, bool]:
    """Land a dump; returns the corpus's name and whether it is new. A new one emits `corpus.landed`, if `announce`.

    pseudonym_key_file: never the key itself, as Prefect keeps what flows are called with.
    """
    repair(home)
    with shown(home, "ingest", ["corpora", "quarantine"]):
        corpus, new = land(
            source,
            home,
            format=format,
            mapping=mapping,
            name=name,
            speakers=speakers,
            replace=replace,
            pseudonymise=pseudonymise,
            pseudonym_key_file=pseudonym_key_file,
            resources=Resources(memory_limit, threads),
        )
    if new and announce:
        # Best effort: the ledger, not the event, is the truth about what has landed.
        emit_event(
            event="corpus.landed",
            resource={"prefect.resource.id": f"corpus.{corpus}"},
            payload={"name": corpus, "home": str(Warehouse.at(home).root)},
        )
    return corpus, new
