"""The report as one HTML file that opens offline, on phones and desktops, and prints."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ssrem.report import cases, numbers
from ssrem.report.answer import answer
from ssrem.report.data import COLUMNS, KIND_NAMES, ReportData, Row, Rows, grouped
from ssrem.report.drawing import Panel
from ssrem.report.formats import csv_link, file_name
from ssrem.report.plots import (
    chance_panels,
    forest_panels,
    identification_panels,
    learning_panels,
    similarity_panels,
    source_panels,
)
from ssrem.report.scatter import JITTER, Regression, scatter_panels
from ssrem.report.study import GLYPHS, conditions, described, evaluators, study_panels
from ssrem.report.verdict import verdict

if TYPE_CHECKING:
    from jinja2 import Environment

# With these a page stays under 3 MB, whatever the home folder holds.
MOST_CORRELATIONS, MOST_GATES, MOST_RUNS = 800, 500, 300

AGGREGATIONS = {
    "rating": "single ratings",
    "mean": "mean of the raters",
    "median": "median of the raters",
    "mode": "mode of the raters",
    "mad_mean": "mean of the raters after outlier removal (MAD)",
}
TESTS = {
    "paired-bootstrap": "a paired bootstrap",
    "perm-both": "a permutation test",
}
OUTCOMES = {"constant": "one side does not vary", "too_few": "fewer than three pairs"}
MEASURES = {"spearman": "Spearman’s ρ", "pearson": "Pearson’s r", "kendall": "Kendall’s τ-b"}


def render(data: ReportData) -> str:
    """The report on `data` as one self-contained HTML document; the same data give the same text.

    Every text of `data` is escaped: names and messages come from the data.
    """
    script = template_text("page.js")
    shown = cases.with_texts(cases.chosen(data.points), data.responses)
    correlations = sorted(data.correlations, key=lambda row: row["aggregation"] != "mean")[:MOST_CORRELATIONS]
    scatter: dict[tuple[str, str], list[tuple[Regression, Panel]]] = {}
    for regression, panel in scatter_panels(data.points):
        scatter.setdefault((regression.dataset, regression.criterion), []).append((regression, panel))
    return (
        jinja_environment()
        .get_template("page.html")
        .render(
            data=data,
            title=data.title,
            answer=answer(data),
            no_better=verdict(data.identification, data.correlations, data.comparisons, data.title),
            facts=_facts(data),
            correlations=correlations,
            by_aggregation=grouped(correlations, "aggregation"),
            grouped=grouped,
            highest=_highest,
            aggregation_names=AGGREGATIONS,
            measures=MEASURES,
            kind_names=KIND_NAMES,
            outcomes=OUTCOMES,
            not_ok=sum(row["outcome"] != "ok" for row in data.correlations),
            forest=forest_panels(data.correlations, data.title),
            chance=chance_panels(data.identification, data.title),
            identification=identification_panels(data.identification, data.title),
            similarity=similarity_panels(data.set_similarity),
            sources=source_panels(data.sources, data.title),
            scatter=scatter,
            jitter=JITTER,
            learning=learning_panels(data.learning_curves, data.title),
            cases=shown,
            case_sets=list(dict.fromkeys(case.dataset for case in shown)),
            case_evaluators=list(
                dict.fromkeys(data.title(name, version) for case in shown for name, version, _ in case.picks)
            ),
            case_kinds=cases.KINDS,
            studies=study_panels(data.studies),
            described=described,
            evaluators_of=evaluators,
            conditions_of=conditions,
            glyphs=GLYPHS,
            columns=COLUMNS,
            file_name=file_name,
            failed=[row for row in data.quality if not row["passed"]],
            passed=[row for row in data.quality if row["passed"]],
            most_gates=MOST_GATES,
            most_runs=MOST_RUNS,
            style=template_text("page.css"),
            script=script,
            # The content security policy allows this script only.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


@cache
def jinja_environment() -> Environment:
    """The Jinja environment of all pages: texts are escaped, and the filters write figures.

    One for the process, as it compiles a template when it first renders it.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ssrem.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("real", "count", "percent", "p_value", "interval", "moment", "plain", "signed", "change"):
        environment.filters[name] = getattr(numbers, name)
    environment.filters["csv_link"] = csv_link
    environment.filters["tested"] = lambda test: TESTS[test].removeprefix("a ")
    environment.globals["tests"] = TESTS
    environment.globals["is_figure"] = numbers.is_figure
    return environment


def template_text(name: str) -> str:
    """Text of a file of the templates."""
    return files("ssrem.report").joinpath("templates", name).read_text(encoding="utf-8")


def _highest(rows: Rows) -> Row | None:
    """The row with the highest Spearman correlation; None with fewer than two measured rows."""
    measured = [row for row in rows if row["outcome"] == "ok" and numbers.is_figure(row["spearman"])]
    return max(measured, key=lambda row: float(row["spearman"])) if len(measured) > 1 else None


def _facts(data: ReportData) -> list[str]:
    """The amount of data behind the answer, in short phrases."""
    conversations, turns = (sum(row[key] or 0 for row in data.corpora) for key in ("conversations", "turns"))
    amounts = (
        (len(data.corpora), "corpus", "corpora", f": {conversations:,} conversations, {turns:,} turns"),
        (len(data.evaluators), "evaluator", "evaluators", ""),
        (len({row["dataset"] for row in data.correlations}), "annotated set", "annotated sets", ""),
    )
    facts = [f"{n:,} {one if n == 1 else more}{rest}" for n, one, more, rest in amounts if n]
    passed = sum(bool(row["passed"]) for row in data.quality)
    return [*facts, f"{passed:,} of {len(data.quality):,} gates passed"] if data.quality else facts
