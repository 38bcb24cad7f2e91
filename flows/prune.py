"""Flow `prune`: delete the files of a home folder that nothing needs any more."""

from __future__ import annotations

from ssrem.tasks.warehouse.garbage import KEPT_FAILURES, KEPT_RUNS
from ssrem.tasks.warehouse.garbage import prune as delete_unused
from ssrem.tasks.warehouse.home import Warehouse


def prune(
    home: str = "warehouse", keep_runs: int = KEPT_RUNS, keep_failures: int = KEPT_FAILURES
) -> dict[str, int]:
    """Delete unused files; returns how many files and folders and how many bytes were deleted.

    Unused are old run folders, rows kept of failed gates, models without a version, and abandoned trainings.

    Args:
        keep_runs: Unused run folders to keep
        keep_failures: Failed runs whose rows to keep
    """
    pruned = delete_unused(Warehouse.at(home), keep_runs, keep_failures)
    return {"removed": len(pruned.removed), "bytes": pruned.bytes}
