"""Flow `prune`: delete the files of a home folder that nothing needs any more."""

from prefect import flow

from ssrem.flows import steps
from ssrem.flows.artifacts import table
from ssrem.flows.hooks import flow_options
from ssrem.settings import Count, Natural
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import KEPT_FAILURES, KEPT_RUNS


@flow(**flow_options("home"))
def prune(
    home: str = "warehouse",
    keep_runs: Natural = KEPT_RUNS,
    keep_failures: Natural = KEPT_FAILURES,
    keep_versions: Count | None = None,
) -> dict[str, int]:
    """Delete unused files; returns the numbers of files and folders, bytes, and versions of evaluators deleted.

    Unused are old run folders, saved rows of failed gates, models without a version, and abandoned trainings.

    Args:
        keep_runs: Number of unused runs whose folders are kept
        keep_failures: Number of failed runs whose rows are kept
        keep_versions: Number of versions of each evaluator that are kept beside the one in use, the one in use before
            it, and those that wait for a decision; by default all
    """
    retired = steps.retire(home, keep_versions) if keep_versions else 0
    pruned = steps.prune(Warehouse.at(home), keep_runs, keep_failures)
    counts = {"removed": len(pruned.removed), "bytes": pruned.bytes, "versions": retired}
    table([counts], "pruned", "files and folders deleted, their bytes, and versions of evaluators retired")
    return counts
