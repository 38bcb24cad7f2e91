"""Flow `collect`: what a home folder no longer needs goes."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.failure_hook import tell
from tasks.warehouse.garbage import KEPT_FAILURES, KEPT_RUNS, prune
from tasks.warehouse.home import Warehouse


@flow(name="collect", on_failure=[tell], on_crashed=[tell])
def collect(
    home: str = "warehouse", keep_runs: int = KEPT_RUNS, keep_failures: int = KEPT_FAILURES
) -> dict[str, int]:
    """Remove old run folders, what failed gates saw, models of no version and trainings given up; how much went."""
    gone = prune(Warehouse.at(home), keep_runs, keep_failures)
    return {"removed": len(gone.removed), "bytes": gone.bytes}
