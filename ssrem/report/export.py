"""Every figure of the report as SVG, PDF and PNG, and every table as LaTeX, Markdown and CSV, for papers and slides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ssrem.report.data import COLUMNS, ReportData
from ssrem.report.drawing import PRINT, Panel, styled
from ssrem.report.formats import csv_text, file_name, latex, markdown, markdown_text
from ssrem.report.paper import paper_tables
from ssrem.report.plots import (
    chance_panels,
    forest_panels,
    identification_panels,
    learning_panels,
    similarity_panels,
    source_panels,
)
from ssrem.report.scatter import Regression, scatter_panels
from ssrem.report.study import study_panels

INDEX = "index.md"


def export(data: ReportData, folder: Path, *, raw: bool = False) -> list[Path]:
    """Write the figures and tables of `data` into the folder, and an index of them; returns the files.

    The same data give the same files. Files of other names in the folder stay. Raises OSError if one cannot be
    written.

    raw: in CSV, text as it is, even where a spreadsheet would take it for a formula
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    index = f"Figures and tables of {markdown_text(data.home)}, {data.generated_at}, by ssrem {data.ssrem_version}.\n"
    used: set[str] = set()

    def write(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)

    with styled(PRINT):
        scatter = scatter_panels(data.points)
        for base, panel, columns in _panels(data, scatter):
            name = unique(base, used)
            for suffix in ("svg", "pdf", "png"):
                panel.save(folder / f"{name}.{suffix}")
                paths.append(folder / f"{name}.{suffix}")
            write(f"{name}.csv", csv_text(panel.rows, columns, raw=raw))
            index += f"\n## {name}\n\n{markdown_text(panel.label)}\n\n![]({name}.svg)\n"
    for table in paper_tables(data, [regression for regression, _ in scatter]):
        name = unique(file_name("table", table.name), used)
        write(f"{name}.tex", latex(table))
        write(f"{name}.md", markdown(table))
        write(f"{name}.csv", csv_text(table.rows, table.columns, raw=raw))
        index += (
            f"\n## {name}\n\n{markdown_text(table.caption)}\n\n[Markdown]({name}.md), [CSV]({name}.csv)\n"
        )
    write(INDEX, index)
    return paths


def _panels(
    data: ReportData, scatter: Sequence[tuple[Regression, Panel]]
) -> Iterator[tuple[str, Panel, Sequence[str]]]:
    """Of each figure: a name for its files, the panel, and the columns of its numbers."""
    for panel in forest_panels(data.correlations, data.title):
        row = panel.rows[0]
        yield file_name("agreement", row["dataset"], row["criterion"]), panel, COLUMNS["correlations"]
    for panel in chance_panels(data.identification, data.title):
        row = panel.rows[0]
        yield file_name("true-above", row["corpus"], row["kind"]), panel, COLUMNS["identification"]
    for panel in identification_panels(data.identification, data.title):
        name = file_name("identification", panel.title, panel.rows[0]["corpus"])
        yield name, panel, COLUMNS["identification"]
    for panel in similarity_panels(data.set_similarity):
        yield file_name("similarity", panel.title), panel, COLUMNS["set_similarity"]
    for panel in source_panels(data.sources, data.title):
        yield file_name("sources", panel.title, panel.rows[0]["dataset"]), panel, COLUMNS["sources"]
    for regression, panel in scatter:
        yield file_name("scatter", panel.title, regression.dataset), panel, COLUMNS["points"]
    for panel in learning_panels(data.learning_curves, data.title):
        yield file_name("learning", panel.title), panel, COLUMNS["learning_curves"]
    for (study, dataset), panel in study_panels(data.studies).items():
        yield file_name("study", study, dataset), panel, COLUMNS["studies"]


def unique(name: str, used: set[str]) -> str:
    """The name, with a number if it is used already (ignoring case, as some file systems do); adds it to `used`."""
    free, number = name, 1
    while free.lower() in used:
        number += 1
        free = f"{name}-{number}"
    used.add(free.lower())
    return free
