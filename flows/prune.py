"""Flow `prune`: delete the files of a home folder that nothing needs any more."""

from prefect import flow

from ssrem.flows import steps
from ssrem.flows.artifacts import table
from ssrem.flows.hooks import flow_options
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import KEPT_FAILURES, KEPT_RUNS


@flow(**flow_options("home"))
def prune(
    home: str = "warehouse", keep_runs: int = KEPT_RUNS, keep_failures: int = KEPT_FAILURES
) -> dict[str, int]:
    """Delete unused files; returns how many files and folders and how many bytes were deleted.

    Unused are old run folders, saved rows of failed gates, models without a version, and abandoned trainings.

    Args:
        keep_runs: Number of unused runs whose folders are kept
        keep_failures: Number of failed runs whose rows are kept
    """
    pruned = steps.prune(Warehouse.at(home), keep_runs, keep_failures)
    counts = {"removed": len(pruned.removed), "bytes": pruned.bytes}
    table([counts], "pruned", "files and folders deleted, and their bytes")
    return counts
