"""Writes tables as CSV, Markdown and LaTeX (with booktabs), and makes names for their files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ssrem.report.data import Rows

_NO_BREAK, _WORD_JOINER = "\N{NO-BREAK SPACE}", "\N{WORD JOINER}"
_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    _NO_BREAK: "~",
    _WORD_JOINER: "{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "≥": r"$\geq$",
    "†": r"\textdagger{}",
}


class Strong(str):
    """Text of a cell that is set in bold."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """A table: a name for its file, a caption, headings, cells as text, and the numbers behind it.

    left: how many columns, from the first, are names and not numbers.
    """

    name: str
    caption: str
    left: int
    headings: Sequence[str]
    body: Sequence[Sequence[str]]
    rows: Rows
    columns: Sequence[str]


def no_formula(value: Any) -> Any:
    """The value of a CSV cell; text that a spreadsheet would take for a formula gets an apostrophe in front."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def csv_text(rows: Rows, columns: Sequence[str], *, raw: bool = False) -> str:
    """The columns of the rows with a header, numbers to nine significant digits; a missing value is empty.

    raw: text as it is, even where a spreadsheet would take it for a formula
    """
    with io.StringIO(newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_csv_cell(row[column], raw) for column in columns] for row in rows)
        return stream.getvalue()


def csv_link(rows: Rows, columns: Sequence[str]) -> str:
    """The CSV as a data URL, so that the page itself holds the file."""
    return "data:text/csv;charset=utf-8," + quote(csv_text(rows, columns), safe=",:;/ ").replace(" ", "%20")


def _csv_cell(value: Any, raw: bool) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.9g}"
    if isinstance(value, datetime):
        return f"{value:%F %T}"
    if isinstance(value, Mapping):
        value = "; ".join(f"{key}={_csv_cell(item, raw)}" for key, item in value.items())
    return "" if value is None else value if raw else no_formula(value)


def file_name(*parts: Any) -> str:
    """A file name from `parts`: letters, digits, dots, dashes and underscores, at most 120 characters."""
    words = ("".join(c if c.isalnum() or c in "._-" else "_" for c in str(part)) for part in parts)
    return "-".join(words).strip(".")[:120] or "figure"


def markdown_text(text: str) -> str:
    """Text on one line, with the characters escaped that Markdown would interpret."""
    return "".join(f"\\{c}" if c in "\\|*_`[]<>#~$" else c for c in " ".join(str(text).split()))


def markdown(table: Table) -> str:
    """The caption and the table."""
    right = len(table.headings) - table.left
    lines = [
        *(markdown_text(table.caption), ""),
        f"| {' | '.join(map(markdown_text, table.headings))} |",
        f"|{'---|' * table.left}{'---:|' * right}",
    ]
    for row in table.body:
        cells = (f"**{markdown_text(c)}**" if isinstance(c, Strong) else markdown_text(c) for c in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text escaped for LaTeX; letters of other scripts stay as they are, for LuaLaTeX and XeLaTeX."""
    plain = "".join(c if c.isprintable() or c == _NO_BREAK else " " for c in re.sub(r"[ \t\r\n]+", " ", text))
    # LaTeX would join two hyphens into a dash.
    return "".join(_LATEX.get(c, c) for c in re.sub("-(?=-)", f"-{_WORD_JOINER}", plain))


def latex(table: Table) -> str:
    """The table in a `table` environment with caption and label; needs the package booktabs."""
    columns = "l" * table.left + "r" * (len(table.headings) - table.left)
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(table.caption)}}}",
        f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9:.-]', '-', table.name)}}}",
        f"  \\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {_latex_row(table.headings)}",
        r"    \midrule",
        *(f"    {_latex_row(cells)}" for cells in table.body),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: Sequence[str]) -> str:
    cells = [f"\\textbf{{{latex_text(c)}}}" if isinstance(c, Strong) else latex_text(c) for c in row]
    # After the end of a row, \\, LaTeX reads a bracket or a star as an option.
    if cells and cells[0][:1] in ("[", "*"):
        cells[0] = f"{{}}{cells[0]}"
    return " & ".join(cells) + r" \\"
