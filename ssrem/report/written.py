"""A table as LaTeX (with booktabs) and as Markdown: names are text, whatever characters they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ssrem.report.paper import Strong, Table
from ssrem.report.tables import markdown_text

_NO_BREAK, _APART = "\N{NO-BREAK SPACE}", "\N{WORD JOINER}"
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
    _APART: "{}",
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


def latex_text(text: str) -> str:
    """Text as LaTeX prints it; letters of scripts beyond its own stay as they are, for LuaLaTeX and XeLaTeX."""
    plain = "".join(c if c.isprintable() or c == _NO_BREAK else " " for c in re.sub(r"[ \t\r\n]+", " ", text))
    # Two hyphens are no dash.
    return "".join(_LATEX.get(c, c) for c in re.sub("-(?=-)", f"-{_APART}", plain))


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
        f"    {_row(table.headings)}",
        r"    \midrule",
        *(f"    {_row(cells)}" for cells in table.body),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def markdown(table: Table) -> str:
    """The caption and the table."""
    right = len(table.headings) - table.left
    lines = [
        *(markdown_text(table.caption), ""),
        f"| {' | '.join(map(markdown_text, table.headings))} |",
        f"|{'---|' * table.left}{'---:|' * right}",
    ]
    for cells in table.body:
        written = (f"**{markdown_text(c)}**" if isinstance(c, Strong) else markdown_text(c) for c in cells)
        lines.append(f"| {' | '.join(written)} |")
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    written = [_cell(cell) for cell in cells]
    # After a row's end, \\, LaTeX takes a bracket or a star for its option.
    if written and written[0][:1] in ("[", "*"):
        written[0] = f"{{}}{written[0]}"
    return " & ".join(written) + r" \\"


def _cell(text: str) -> str:
    written = latex_text(text)
    return f"\\textbf{{{written}}}" if isinstance(text, Strong) else written
