"""Flow `promote`: put a version of an evaluator into use by hand."""

from __future__ import annotations

from ssrem.tasks.agreement.correlate import correlate_all
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.promotion import promote as promote_version


def promote(
    evaluator: str,
    version: int | None = None,
    home: str = "warehouse",
    resources: Resources = Resources(),
) -> tuple[int, int | None]:
    """Promote a version; returns it and the version that it replaces, None if it was in use already.

    Args:
        evaluator: Name of the evaluator
        version: Its version; by default the one that was in use before the current one
    """
    repair(home)
    chosen, replaced = promote_version(evaluator, version, home, resources=resources)
    correlate_all(home, resources=resources)  # the versions that are compared have changed
    return chosen, replaced
