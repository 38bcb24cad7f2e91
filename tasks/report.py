"""The report: the published tables as one HTML page, or as figures and tables for papers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ssrem import __version__
from ssrem.errors import HomeError, SsremError
from ssrem.files import temporary_folder
from ssrem.report.cases import chosen
from ssrem.report.data import ReportData
from ssrem.report.export import export
from ssrem.report.page import render
from ssrem.sql import queries
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.warehouse.files import out_of_room
from ssrem.tasks.warehouse.home import Warehouse, records, utc_now


def write_report(home: str, *, anew: bool = True) -> str:
    """Render the published snapshot as one HTML file; returns its path. The file is replaced atomically.

    anew: render even if the file shows this snapshot already. HomeError if nothing is published, or the disk is full.
    """
    warehouse = Warehouse.at(home)
    partitions = warehouse.partitions()
    if not partitions:
        raise HomeError(
            f"{warehouse.root} is empty; fill it with ssrem run, which takes the corpus that comes with ssrem, or with "
            "ssrem run DUMP, which takes yours"
        )
    shown = hashlib.sha256(f"{__version__} {warehouse.root} {partitions}".encode()).hexdigest()
    mark, path = f"<!-- of snapshot {shown} -->\n", warehouse.reports / "report.html"
    if not anew and path.is_file() and path.read_bytes().endswith(mark.encode()):
        return str(path)
    warehouse.check_writable()
    with progress("writing the report"):
        page = render(report_data(warehouse))
    try:
        warehouse.reports.mkdir(parents=True, exist_ok=True)
        # No lock is held: each process has a draft of its own, and drafts of killed ones are deleted.
        with temporary_folder(warehouse.reports) as folder:
            draft = folder / path.name
            draft.write_text(page + mark, encoding="utf-8")
            draft.replace(path)
    except OSError as error:
        raise out_of_room(warehouse.root, error) or error from None
    return str(path)


def write_figures(home: str, folder: str, *, raw: bool = False) -> list[str]:
    """Write every figure and table of the report into a folder, in formats for papers; returns the files.

    raw: in CSV, text as it is, even where a spreadsheet would take it for a formula. Raises SsremError if the folder
    cannot be written to.
    """
    warehouse = Warehouse.at(home)
    with progress("writing figures and tables"):
        data = report_data(warehouse)
        try:
            return [str(path) for path in export(data, Path(folder), raw=raw)]
        except OSError as error:
            reason = error.strerror or str(error)
            raise SsremError(f"cannot write figures into {folder}: {reason}; name another folder") from None


def report_data(warehouse: Warehouse) -> ReportData:
    """The rows of the published snapshot that the report shows."""
    with warehouse.reader() as connection:
        texts = {name: query.text for name, query in queries("report").items()}
        texts |= {name: queries("summaries")[name].text for name in ("quarantine", "pairs")}
        responses = texts.pop("responses")
        rows = {name: records(connection, text) for name, text in texts.items()}
        cases = chosen(rows["points"])
        values = {"datasets": [c.dataset for c in cases], "responses": [c.response_id for c in cases]}
        rows["responses"] = records(connection, responses, values) if cases else []
    for row in rows["runs"]:
        row["parameters"] = json.loads(row["parameters"])
    return ReportData(
        generated_at=f"{utc_now():%Y-%m-%d %H:%M} UTC",
        ssrem_version=__version__,
        home=str(warehouse.root),
        **rows,
    )
