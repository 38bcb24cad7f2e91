"""Flow `report`: the published tables on one page."""

from prefect import flow

from ssrem.flows.artifacts import link
from ssrem.flows.hooks import flow_options
from ssrem.flows.steps import write_figures, write_report


@flow(**flow_options("home"))
def report(home: str = "warehouse", figures: str | None = None, raw: bool = False, anew: bool = True) -> str:
    """Write the report of a home folder; returns its path.

    Args:
        figures: Folder to write the figures and tables into as well
        raw: In CSV, write text as it is, even where a spreadsheet would take it for a formula
        anew: Write it even if it is up to date
    """
    path = write_report(home, anew=anew)
    if figures is not None:
        write_figures(home, figures, raw=raw)
    link(path, "report")
    return path
