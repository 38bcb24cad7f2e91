"""Flow `tables`: build the speaker tables of landed corpora."""

from __future__ import annotations

from ssrem.encoders import DEFAULT_ENCODER
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.flows.orchestration.options import RunnerOptions, TableOptions
from ssrem.flows.orchestration.workers import on_workers
from ssrem.tables.speaker_sets import TableSettings
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.speaker_tables.build import build
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.warehouse.corpora import landed_corpora


@on_workers
def tables(
    home: str = "warehouse",
    corpora: list[str] | None = None,
    table: TableOptions = TableOptions(),
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> dict[str, bool]:
    """Build the speaker tables of corpora; returns for each corpus whether they are new.

    Args:
        corpora: Names of corpora; by default all that have landed
    """
    settings = TableSettings(**{**table.model_dump(), "encoder": table.encoder or DEFAULT_ENCODER})
    repair(home)
    with stage_artifacts(home, "tables", ["speaker_sets"]):
        return {
            corpus: build(corpus, home, settings=settings, resources=resources)
            for corpus in corpora or landed_corpora(home)
        }
