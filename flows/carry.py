"""Flow `import`: an evaluator that was trained elsewhere becomes a version of this home folder."""

from __future__ import annotations

from prefect import flow

from flows.notify import tell
from tasks.carry import import_evaluator
from tasks.stage import Resources


@flow(name="import", on_failure=[tell], on_crashed=[tell])
def import_(
    file: str,
    home: str = "warehouse",
    allow: list[str] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> tuple[str, int, bool]:
    """Publish the evaluator in `file`; returns its name, its version here, and whether it is new."""
    return import_evaluator(file, home, allowed=allow or (), resources=Resources(memory_limit, threads))
