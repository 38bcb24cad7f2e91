"""Every figure of the report as SVG, PDF and PNG, and every table as LaTeX, Markdown and CSV, for papers and slides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.report.clouds import Cloud, clouds
from ssrem.report.data import COLUMNS, ReportData
from ssrem.report.drawing import Namer, Panel, styled
from ssrem.report.page import namer
from ssrem.report.paper import paper_tables
from ssrem.report.plots import identification_panels, learning_panels, similarity_panels
from ssrem.report.study_plot import study_panels
from ssrem.report.svg import PRINT, painted
from ssrem.report.tables import csv_text, file_name, markdown_text
from ssrem.report.written import latex, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 300  # of the PNG files
INDEX = "index.md"


def export(data: ReportData, folder: Path) -> list[Path]:
    """Write the figures and tables of `data` into the folder, and an index of them; returns the files.

    The same data give the same files. Files of other names in the folder stay. Raises OSError where one cannot be
    written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    title = namer(data)
    written: list[Path] = []
    lines = [
        f"Figures and tables of {markdown_text(data.home)}, {data.generated_at}, by ssrem {data.ssrem_version}."
    ]
    taken: set[str] = set()

    def write(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)

    with painted(PRINT), styled():
        made = clouds(data.points)
        for called, panel, columns in _panels(data, made, title):
            name = unique(called, taken)
            written += _drawn(panel.figure, folder / name)
            write(f"{name}.csv", csv_text(panel.rows, columns))
            lines += ["", f"## {name}", "", markdown_text(panel.label), "", f"![]({name}.svg)"]
    for table in paper_tables(data, [cloud for cloud, _ in made], title):
        name = unique(file_name("table", table.name), taken)
        write(f"{name}.tex", latex(table))
        write(f"{name}.md", markdown(table))
        write(f"{name}.csv", csv_text(table.rows, table.columns))
        lines += [
            "",
            f"## {name}",
            "",
            markdown_text(table.caption),
            "",
            f"[Markdown]({name}.md), [CSV]({name}.csv)",
        ]
    write(INDEX, "\n".join(lines) + "\n")
    return written


def _panels(
    data: ReportData, made: Sequence[tuple[Cloud, Panel]], title: Namer
) -> Iterator[tuple[str, Panel, Sequence[str]]]:
    """A name for the files of each figure, the figure, and the columns of its numbers."""
    for panel in identification_panels(data.identification, title):
        yield (
            file_name("identification", panel.title, panel.rows[0]["corpus"]),
            panel,
            COLUMNS["identification"],
        )
    for panel in similarity_panels(data.set_similarity):
        yield file_name("similarity", panel.title), panel, COLUMNS["set_similarity"]
    for cloud, panel in made:
        yield file_name("scatter", panel.title, cloud.dataset), panel, COLUMNS["points"]
    for panel in learning_panels(data.learning_curves, title):
        yield file_name("learning", panel.title), panel, COLUMNS["learning_curves"]
    for (study, dataset), panel in study_panels(data.studies).items():
        yield file_name("study", study, dataset), panel, COLUMNS["studies"]


def _drawn(figure: Figure, path: Path) -> list[Path]:
    from matplotlib import rc_context

    files = [path.with_name(f"{path.name}.{suffix}") for suffix in ("svg", "pdf", "png")]
    # Letters as outlines: the drawing looks alike where its typeface is not installed. No date: the same data give
    # the same file.
    with rc_context({"svg.hashsalt": path.name, "svg.fonttype": "path", "pdf.fonttype": 42}):
        figure.savefig(files[0], metadata={"Date": None})
        figure.savefig(files[1], metadata={"CreationDate": None})
        figure.savefig(files[2], dpi=DPI)
    return files


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number where a file of that name is there, also where case is not told apart."""
    found, number = name, 1
    while found.lower() in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found.lower())
    return found
