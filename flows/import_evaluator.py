"""Flow `import`: an evaluator that was trained elsewhere becomes a version of this home folder."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.failure_hook import tell
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.training.import_evaluator import import_evaluator


@flow(name="import", on_failure=[tell], on_crashed=[tell])
def import_(
    file: str,
    home: str = "warehouse",
    allow: list[str] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> tuple[str, int, bool]:
    """Publish the evaluator in `file`; returns its name, its version here, and whether it is new."""
    repair(home)
    return import_evaluator(file, home, allowed=allow or (), resources=Resources(memory_limit, threads))
