"""Flow `promote`: a version comes into use by hand."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.failure_hook import tell
from tasks.agreement.measure import measure_all
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.training.promotion import promote as promote_by_hand


@flow(name="promote", on_failure=[tell], on_crashed=[tell])
def promote(
    evaluator: str,
    version: int | None = None,
    home: str = "warehouse",
    memory_limit: str | None = None,
    threads: int | None = None,
) -> tuple[int, int | None]:
    """Bring `version` into use, or for None the one that was before; returns it and the one that it replaces."""
    resources = Resources(memory_limit, threads)
    repair(home)
    chosen, replaced = promote_by_hand(evaluator, version, home, resources=resources)
    measure_all(home, resources=resources)  # who is compared with whom has changed
    return chosen, replaced
