"""The report's tables for a paper, as cells of text."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict

from ssrem.report import numbers
from ssrem.report.data import COLUMNS, Namer, ReportData, Row, Rows, grouped
from ssrem.report.formats import Strong, Table
from ssrem.report.page import jinja_environment, template_text
from ssrem.report.scatter import Regression
from ssrem.report.study import conditions, evaluators

SIGNIFICANT = 0.05


def paper_tables(data: ReportData, regressions: Sequence[Regression]) -> list[Table]:
    """Every table of the report that has rows: correlations at a glance, those of tables.toml, and the studies."""
    environment = jinja_environment()
    tables = [_agreement(data.correlations, data.title)]
    for name, table in tomllib.loads(template_text("tables.toml")).items():
        rows: Rows = [asdict(r) for r in regressions] if name == "regressions" else getattr(data, name)
        cells = [environment.compile_expression(cell) for cell in table["columns"].values()]
        body = [[str(cell(row, title=data.title)) for cell in cells] for row in rows]
        columns = COLUMNS.get(name, [*rows[0]] if rows else [])
        file = table.get("name", name.replace("_", "-"))
        tables.append(Table(file, table["caption"], table["left"], [*table["columns"]], body, rows, columns))
    studies = [_study(rows) for rows in grouped(data.studies, "study", "dataset").values()]
    return [table for table in (*tables, *studies) if table.body]


def _agreement(correlations: Rows, title: Namer) -> Table:
    """A row a score, a column a set and criterion: Spearman's ρ with the mean of the raters, the best bold."""
    rows = [row for row in correlations if row["aggregation"] == "mean" and row["level"] == "segment"]
    cells = list(grouped(rows, "dataset", "criterion").items())
    best = {
        key: max((row["spearman"] for row in group if numbers.is_figure(row["spearman"])), default=None)
        for key, group in cells
    }
    body: list[list[str]] = []
    for (evaluator, version, score), own in grouped(rows, "evaluator", "version", "score").items():
        by_cell = {(row["dataset"], row["criterion"]): row for row in own}
        values = [_correlation(by_cell.get(key), best[key]) for key, _ in cells]
        body.append([title(evaluator, version), score, *values])
    ceilings = [group[0]["ceiling"] for _, group in cells]
    if any(map(numbers.is_figure, ceilings)):
        body.append(["noise ceiling", "", *map(numbers.real, ceilings)])
    caption = (
        "Spearman's ρ of scores with the mean human score; the highest is bold, † is not significantly different "
        "from 0 (p ≥ 0.05, two-sided). The noise ceiling is how well one rater predicts the others."
    )
    headings = ["Evaluator", "Score", *(f"{dataset}, {criterion}" for (dataset, criterion), _ in cells)]
    return Table("agreement", caption, 2, headings, body, rows, COLUMNS["correlations"])


def _correlation(row: Row | None, best: float | None) -> str:
    if row is None or not numbers.is_figure(row["spearman"]):
        return numbers.MISSING
    text = numbers.real(row["spearman"])
    if numbers.is_figure(row["spearman_p"]) and row["spearman_p"] >= SIGNIFICANT:
        text += "†"
    return Strong(text) if row["spearman"] == best else text


def _study(rows: Rows) -> Table:
    names = evaluators(rows)
    body = []
    for label, by_name in conditions(rows).items():
        values = [numbers.real(by_name[name]["value"]) if name in by_name else "" for name in names]
        body.append([label, *values, numbers.count(max(row["n"] for row in by_name.values()))])
    study, dataset = rows[0]["study"], rows[0]["dataset"]
    headings = ["Condition", *names, "n"]
    name = f"study-{study}-{dataset}"
    return Table(name, f"Study {study} of {dataset}.", 1, headings, body, rows, COLUMNS["studies"])
