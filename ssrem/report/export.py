"""Every figure of the report as SVG and PNG, and every table as LaTeX, Markdown and CSV, for papers and slides."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ssrem.agreement import ALPHA
from ssrem.report import text
from ssrem.report.data import Namer, ReportData, conditions, evaluators_of, grouped
from ssrem.report.figures import panels, regressions
from ssrem.report.page import jinja_environment, template_text
from ssrem.report.text import Row, Rows, Strong, Table

INDEX = "index.md"


def export(data: ReportData, folder: Path, *, raw: bool = False) -> list[Path]:
    """Write the figures and tables of `data` into the folder, and an index of them; returns the files.

    The same data give the same files. Files of other names in the folder stay. Raises OSError if one cannot be
    written.

    raw: in CSV, text as it is, even where a spreadsheet would take it for a formula
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    home, used = text.markdown_text(data.home), set[str]()
    index = f"Figures and tables of {home}, {data.generated_at}, by ssrem {data.ssrem_version}.\n"

    def write(name: str, content: str) -> None:
        (folder / name).write_text(content, encoding="utf-8")
        paths.append(folder / name)

    for panel in (panel for of_section in panels(data).values() for panel in of_section):
        name = unique(panel.file, used)
        for suffix in ("svg", "png"):
            panel.save(folder / f"{name}.{suffix}")
            paths.append(folder / f"{name}.{suffix}")
        write(f"{name}.csv", text.csv_text(panel.rows, raw=raw))
        links = f"![]({name}.svg)\n\n[PNG]({name}.png), [CSV]({name}.csv)"
        index += f"\n## {name}\n\n{text.markdown_text(panel.label)}\n\n{links}\n"
    for table in tables(data):
        name = unique(text.file_name("table", table.name), used)
        write(f"{name}.tex", text.latex(table))
        write(f"{name}.md", text.markdown(table))
        write(f"{name}.csv", text.csv_text(table.rows, raw=raw))
        caption = text.markdown_text(table.caption)
        index += (
            f"\n## {name}\n\n{caption}\n\n[LaTeX]({name}.tex), [Markdown]({name}.md), [CSV]({name}.csv)\n"
        )
    write(INDEX, index)
    return paths


def unique(name: str, used: set[str]) -> str:
    """The name, with a number if it is used already (ignoring case, as some file systems do); adds it to `used`."""
    free, number = name, 1
    while free.lower() in used:
        number += 1
        free = f"{name}-{number}"
    used.add(free.lower())
    return free


def tables(data: ReportData) -> list[Table]:
    """Every table of the report that has rows: correlations at a glance, those of tables.toml, and the studies."""
    environment = jinja_environment()
    found = [_agreement(data.correlations, data.title)]
    for name, table in tomllib.loads(template_text("tables.toml")).items():
        rows: Rows = regressions(data.points) if name == "regressions" else getattr(data, name)
        cells = [environment.compile_expression(cell) for cell in table["columns"].values()]
        body = [[str(cell(row, title=data.title)) for cell in cells] for row in rows]
        file = table.get("name", name.replace("_", "-"))
        found.append(Table(file, table["caption"], table["left"], [*table["columns"]], body, rows))
    found += [study_table(rows) for rows in grouped(data.studies, "study", "dataset").values()]
    return [table for table in found if table.body]


def _agreement(correlations: Rows, title: Namer) -> Table:
    """Table of Spearman's ρ with the mean of the raters: a row per score, a column per set and criterion, best bold."""
    rows = [row for row in correlations if row["aggregation"] == "mean" and row["level"] == "segment"]
    cells = grouped(rows, "dataset", "criterion")
    best = {
        key: max((row["spearman"] for row in group if text.is_figure(row["spearman"])), default=None)
        for key, group in cells.items()
    }

    def shown(row: Row | None) -> str:
        if row is None or not text.is_figure(row["spearman"]):
            return text.MISSING
        low, high, p = (row[f"spearman_{of}"] for of in ("low", "high", "p"))
        unsure = low <= 0 <= high if text.is_figure(low) else text.is_figure(p) and p >= ALPHA
        value = text.real(row["spearman"]) + "†" * unsure
        return Strong(value) if row["spearman"] == best[row["dataset"], row["criterion"]] else value

    body: list[list[str]] = []
    for (evaluator, version, score), own in grouped(rows, "evaluator", "version", "score").items():
        by_cell = {(row["dataset"], row["criterion"]): row for row in own}
        body.append([title(evaluator, version), score, *(shown(by_cell.get(key)) for key in cells)])
    ceilings = [group[0]["ceiling"] for group in cells.values()]
    if any(map(text.is_figure, ceilings)):
        body.append(["noise ceiling", "", *map(text.real, ceilings)])
    caption = (
        "Spearman's ρ of scores with the mean human score; the highest is bold, † marks those whose 95% "
        "interval reaches 0. The noise ceiling is how well one rater predicts the others."
    )
    headings = ["Evaluator", "Score", *(f"{dataset}, {criterion}" for dataset, criterion in cells)]
    return Table("agreement", caption, 2, headings, body, rows)


def study_table(rows: Rows) -> Table:
    """A study of one dataset: a row per condition, a column per evaluator. IndexError without rows."""
    study, dataset, names = rows[0]["study"], rows[0]["dataset"], evaluators_of(rows)

    def shown(row: Row | None) -> str:
        if row is None:
            return ""
        if not text.is_figure(row["value"]):
            return str(row["outcome"]).replace("_", " ")
        return f"{text.real(row['value'])} {text.interval(row['low'], row['high'])}".strip()

    body = [
        [
            label,
            *(shown(by_name.get(name)) for name in names),
            text.count_range(r["n"] for r in by_name.values()),
        ]
        for label, by_name in conditions(rows).items()
    ]
    headings = ["Condition", *names, "n"]
    caption = f"Study {study} of {dataset}."
    return Table(f"study-{study}-{dataset}", caption, 1, headings, body, rows)
