"""Flow `report`: the published tables on one page."""

from __future__ import annotations

from prefect import flow

from tasks.report import write_report


@flow(name="report")
def report(home: str = "warehouse") -> str:
    """Write the report of a home folder; returns its path."""
    return write_report(home)
