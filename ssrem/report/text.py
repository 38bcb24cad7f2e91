"""Numbers as text, and tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

Row = Mapping[str, Any]
Rows = Sequence[Row]
MISSING, MINUS = "–", "−"
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
    MINUS: "$-$",
    MISSING: "--",
    "\N{EM DASH}": "---",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "α": r"$\alpha$",
    "κ": r"$\kappa$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "≥": r"$\geq$",
    "†": r"\textdagger{}",
}


def json_ready(value: Any) -> Any:
    """The value in the types of JSON: objects, lists, text, numbers, and null, also in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(one) for one in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date):  # datetime is one
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)


def is_figure(value: object) -> bool:
    """Whether `value` is a finite number (and no bool)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def fixed(value: float) -> str:
    """A number with two decimals, however small it is."""
    return f"{value:z.2f}".replace("-", MINUS)


def real(value: Any, digits: int = 3) -> str:
    """A number with `digits` decimals; a small one keeps two significant digits rather than read as zero."""
    if not is_figure(value):
        return MISSING
    text = f"{value:.{digits}f}"
    if value != 0 and float(text) == 0:
        text = f"{value:.1e}"
    return text.replace("-", MINUS)


def count(value: Any) -> str:
    """A number without decimals, with commas between thousands."""
    return f"{value:,.0f}" if is_figure(value) else MISSING


def count_range(values: Iterable[Any]) -> str:
    """A number as `count` writes it or, if there are several, the lowest and the highest."""
    known = sorted(set(values))
    return "–".join(dict.fromkeys((count(known[0]), count(known[-1])))) if known else MISSING


def percent(value: Any) -> str:
    """A share from 0 to 1 in whole per cent; 0% and 100% only if exact."""
    if not is_figure(value):
        return MISSING
    if 0 < value <= 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= value < 1 else f"{value:.0%}"


def signed(value: Any, digits: int = 0) -> str:
    """A difference with its sign and `digits` decimals."""
    return f"{value:+.{digits}f}".replace("-", MINUS) if is_figure(value) else MISSING


def p_value(value: Any) -> str:
    """The p-value as "p = 0.012", or "p < 0.001" if it is smaller, with no-break spaces."""
    if not is_figure(value):
        return "p unknown"
    return ("p < 0.001" if value < 0.001 else f"p = {value:.3f}").replace(" ", _NO_BREAK)


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """The interval in brackets; empty if there is none."""
    return f"[{real(low, digits)}, {real(high, digits)}]" if is_figure(low) and is_figure(high) else ""


def plain(value: Any) -> str:
    """Any value, as the text of a table cell; a time to the second."""
    match value:
        case None | "":
            text = MISSING
        case bool():
            text = "yes" if value else "no"
        case int():
            text = count(value)
        case float():
            text = real(value)
        case datetime():
            text = f"{value:%Y-%m-%d %H:%M:%S}"
        case Mapping():
            text = ", ".join(f"{key} {plain(item)}" for key, item in value.items()) or MISSING
        case list() | tuple():
            text = json.dumps(value, default=str, ensure_ascii=False)
        case _:
            text = str(value)
    return text


def no_formula(value: Any) -> Any:
    """The value of a CSV cell; text that a spreadsheet would take for a formula gets an apostrophe in front."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value


def csv_text(rows: Rows, columns: Sequence[str] | None = None, *, raw: bool = False) -> str:
    """The rows as CSV with a header: `columns` or all, numbers to nine significant digits, missing values empty.

    raw: text as it is, even where a spreadsheet would take it for a formula
    """

    def cell(value: Any) -> Any:
        if isinstance(value, float):
            return "" if math.isnan(value) else f"{value:.9g}"
        if isinstance(value, datetime):
            return f"{value:%F %T}"
        if isinstance(value, Mapping):
            value = "; ".join(f"{key}={cell(item)}" for key, item in value.items())
        return "" if value is None else value if raw else no_formula(value)

    columns = columns or (list(rows[0]) if rows else [])
    with io.StringIO(newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(row[column]) for column in columns] for row in rows)
        return stream.getvalue()


def csv_link(rows: Rows, columns: Sequence[str] | None = None) -> str:
    """The rows as a CSV file in a data URL, so that the page itself holds the file."""
    return "data:text/csv;charset=utf-8," + quote(csv_text(rows, columns), safe=",:;/ ").replace(" ", "%20")


def file_name(*parts: Any) -> str:
    """A file name from `parts`: letters, digits, dots, dashes and underscores, at most 120 bytes."""
    words = ("".join(c if c.isalnum() or c in "._-" else "_" for c in str(part)) for part in parts)
    return "-".join(words).strip(".").encode()[:120].decode(errors="ignore") or "figure"


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


def markdown_text(text: str) -> str:
    """Text on one line, with the characters escaped that Markdown would interpret."""
    return "".join(f"\\{c}" if c in "\\|*_`[]<>#~$" else c for c in " ".join(str(text).split()))


def markdown(table: Table) -> str:
    """The caption and the table in Markdown."""
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

    def row(cells: Sequence[str]) -> str:
        texts = [f"\\textbf{{{latex_text(c)}}}" if isinstance(c, Strong) else latex_text(c) for c in cells]
        # After the end of a row, \\, LaTeX reads a bracket or a star as an option.
        if texts and texts[0][:1] in ("[", "*"):
            texts[0] = f"{{}}{texts[0]}"
        return f"    {' & '.join(texts)} \\\\"

    label = re.sub(r"[^\w:.-]|_", "-", table.name)
    columns = "l" * table.left + "r" * (len(table.headings) - table.left)
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(table.caption)}}}",
        f"  \\label{{tab:{label}}}",
        f"  \\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        row(table.headings),
        r"    \midrule",
        *map(row, table.body),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
