"""Flow `report`: the published tables on one page."""

from __future__ import annotations

from ssrem.flows.orchestration.artifacts import link_report
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.report.report import write_figures, write_report


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
