"""Flow `agree`: annotated sets are scored and correlated with human scores."""

from __future__ import annotations

from prefect import flow

from tasks.agree import agree as agree_with
from tasks.home import Home
from tasks.stage import Resources
from tasks.versions import promoted


@flow(name="agree")
def agree(
    files: list[str],
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    keep_ground_truth: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> dict[str, bool]:
    """Score each annotated file with the promoted evaluators and correlate; dataset to whether anything was new."""
    versions = promoted(Home.at(home), evaluators or ())
    resources = Resources(memory_limit, threads)
    return dict(
        agree_with(file, versions, home, keep_ground_truth=keep_ground_truth, resources=resources)
        for file in files
    )
