"""Flow `compare`: the differences between two runs on one page."""

from __future__ import annotations

from ssrem.flows.orchestration.artifacts import link_report
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.report.compare_runs import write_run_comparison


def compare(first: str, second: str, home: str = "warehouse") -> str:
    """Write a page of the differences between two runs; returns its path."""
    repair(home)
    path = write_run_comparison(home, first, second)
    link_report(path)
    return path
