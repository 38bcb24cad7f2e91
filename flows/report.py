"""Flow `report`: the published tables on one page."""

from __future__ import annotations

from prefect import flow

from flows.artifacts import link_report
from flows.notify import tell
from tasks.report import write_report


@flow(name="report", on_failure=[tell], on_crashed=[tell])
def report(home: str = "warehouse") -> str:
    """Write the report of a home folder; returns its path."""
    path = write_report(home)
    link_report(path)
    return path
