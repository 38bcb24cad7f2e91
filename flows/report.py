"""Flows `report` and `compare`: the published tables on one page, and the differences between two runs."""

from __future__ import annotations

from flows.orchestration.artifacts import link_report
from tasks.maintenance.repair import repair
from tasks.report.compare_runs import write_run_comparison
from tasks.report.report import write_figures, write_report


def report(home: str = "warehouse", figures: str | None = None, raw: bool = False, anew: bool = True) -> str:
    """Write the report of a home folder; returns its path.

    Args:
        figures: Folder to write the figures and tables into as well
        raw: In CSV, write text as it is, even where a spreadsheet would take it for a formula
        anew: Write it even if it is up to date
    """
    repair(home)
    path = write_report(home, anew=anew)
    link_report(path)
    if figures is not None:
        write_figures(home, figures, raw=raw)
    return path


def compare(first: str, second: str, home: str = "warehouse") -> str:
    """Write a page of the differences between two runs; returns its path."""
    repair(home)
    path = write_run_comparison(home, first, second)
    link_report(path)
    return path
