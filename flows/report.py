"""Flows `report` and `compare`: the published tables on one page, and what differs between two runs."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.artifacts import link_report
from flows.orchestration.failure_hook import tell
from tasks.maintenance.repair import repair
from tasks.report.compare_runs import write_run_comparison
from tasks.report.report import write_figures, write_report


@flow(name="report", on_failure=[tell], on_crashed=[tell])
def report(home: str = "warehouse", figures: str | None = None) -> str:
    """Write the report of a home folder, and its figures and tables into the folder `figures`; the report's path."""
    repair(home)
    path = write_report(home)
    link_report(path)
    if figures is not None:
        write_figures(home, figures)
    return path


@flow(name="compare", on_failure=[tell], on_crashed=[tell])
def compare(first: str, second: str, home: str = "warehouse") -> str:
    """Write what differs between two runs of a home folder; returns the page's path."""
    repair(home)
    path = write_run_comparison(home, first, second)
    link_report(path)
    return path
