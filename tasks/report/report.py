"""Report: the published tables on one page."""

from __future__ import annotations

import json
import os
from pathlib import Path

from prefect import task

from sql import queries
from ssrem import __version__
from ssrem.errors import SsremError
from ssrem.report import ReportData, render
from ssrem.report.cases import chosen
from tasks.stage.progress import progress
from tasks.warehouse.clock import utc_now
from tasks.warehouse.error_translation import out_of_room
from tasks.warehouse.home import Warehouse
from tasks.warehouse.lock import alive
from tasks.warehouse.records import records


@task(name="write report")
def write_report(home: str) -> str:
    """Render the published snapshot as one HTML file; returns its path. The file is replaced in one step."""
    place = Warehouse.at(home)
    with progress("writing the report"):
        page = render(report_data(place))
    return str(put_page(place, "report.html", page))


@task(name="write figures")
def write_figures(home: str, folder: str) -> list[str]:
    """Write every figure and table of the report into a folder, as papers take them; returns the files.

    Raises SsremError where the folder cannot be written to.
    """
    from ssrem.report.export import export

    place = Warehouse.at(home)
    with progress("writing figures and tables"):
        data = report_data(place)
        try:
            return [str(path) for path in export(data, Path(folder))]
        except OSError as error:
            reason = error.strerror or str(error)
            raise SsremError(f"cannot write figures into {folder}: {reason}; name another folder") from None


def put_page(place: Warehouse, name: str, page: str) -> Path:
    """Write a page into the home folder's reports, whole or not at all; returns its path."""
    path = place.reports / name
    draft = Path(f"{path}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{path.name}.*.tmp"):  # by who was killed; no lock is held here
            if not alive(left.suffixes[-2].removeprefix(".")):
                left.unlink(missing_ok=True)
        draft.write_text(page, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise out_of_room(place, error) or error from None
    finally:
        draft.unlink(missing_ok=True)
    return path


def report_data(place: Warehouse) -> ReportData:
    """What the published snapshot says, as the report has it."""
    with place.reader() as connection:
        texts = {query.name: query.text for query in queries("report").values()}
        responses = texts.pop("responses")
        rows = {name: records(connection, text) for name, text in texts.items()}
        cases = chosen(rows["points"])
        values = {"datasets": [c.dataset for c in cases], "responses": [c.response_id for c in cases]}
        rows["responses"] = records(connection, responses, values) if cases else []
    for row in rows["evaluators"]:
        keys = ("train_responses", "valid_responses", "test_responses", "valid_loss", "best_epoch", "seconds")
        row["figures"] = {key: row[key] for key in keys}
    for row in rows["runs"]:
        row["parameters"] = json.loads(row["parameters"])
    return ReportData(
        generated_at=f"{utc_now():%Y-%m-%d %H:%M} UTC",
        ssrem_version=__version__,
        home=str(place.root),
        **rows,
    )
