"""The numbers behind the figures as CSV, whole, not rounded for reading; and what their files and names are called."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ssrem.report.data import Rows


def csv_text(rows: Rows, columns: Sequence[str]) -> str:
    """The columns of the rows, a header first; what is missing is empty."""
    with io.StringIO(newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row[column]) for column in columns] for row in rows)
        return stream.getvalue()


def csv_link(rows: Rows, columns: Sequence[str]) -> str:
    """The same as the address of a link: the page itself holds the file."""
    return "data:text/csv;charset=utf-8," + quote(csv_text(rows, columns), safe=",:;/ ").replace(" ", "%20")


def file_name(*parts: Any) -> str:
    """A name for a file about `parts`, of letters, digits, dots, dashes and underscores."""
    kept = ("".join(c if c.isalnum() or c in "._-" else "_" for c in str(part)) for part in parts)
    return "-".join(kept).strip(".")[:120] or "figure"


def markdown_text(text: str) -> str:
    """Text without what Markdown would read."""
    return "".join(f"\\{c}" if c in "\\|*_`[]<>#~$" else c for c in " ".join(str(text).split()))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.9g}"
    if isinstance(value, datetime):
        return f"{value:%F %T}"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}={_cell(item)}" for key, item in value.items())
    return "" if value is None else value
