"""The report as one HTML file that opens offline, on phones and desktops, and prints."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ssrem.report import cases, numbers
from ssrem.report.answer import answer
from ssrem.report.comparison import Comparison
from ssrem.report.data import COLUMNS, KIND_NAMES, ReportData, Row, Rows
from ssrem.report.drawing import Namer, Panel, grouped
from ssrem.report.formats import csv_link, file_name
from ssrem.report.plots import (
    JITTER,
    Cloud,
    clouds,
    identification_panels,
    learning_panels,
    similarity_panels,
)
from ssrem.report.study import GLYPHS, conditions, evaluators, sentences, study_panels
from ssrem.studies import study_called

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
OUTCOMES = {"constant": "one side does not vary", "too_few": "fewer than three pairs"}
MEASURES = {"spearman": "Spearman’s ρ", "pearson": "Pearson’s r", "kendall": "Kendall’s τ-b"}


@dataclass(frozen=True)
class Agreement:
    """The correlations of one dataset, criterion and level under one aggregation of the human scores."""

    dataset: str
    criterion: str
    level: str
    rows: Rows
    best: Row | None


@dataclass(frozen=True)
class Study:
    """One study of one dataset: its plot, evaluators, figures by condition and evaluator, and two sentences each."""

    panel: Panel
    names: list[str]
    conditions: dict[str, dict[str, Row]]
    sentences: dict[str, tuple[str, str]]

    @classmethod
    def of(cls, panel: Panel) -> Study:
        return cls(panel, evaluators(panel.rows), conditions(panel.rows), sentences(panel.rows))


def render(data: ReportData) -> str:
    """The report on `data` as one self-contained HTML document; the same data give the same text.

    Every text of `data` is escaped: names and messages come from the data.
    """
    title = namer(data)
    script = _resource("page.js")
    shown = cases.with_texts(cases.chosen(data.points), data.responses)
    correlations = sorted(data.correlations, key=lambda row: row["aggregation"] != "mean")[:MOST_CORRELATIONS]
    return (
        jinja_environment()
        .get_template("page.html")
        .render(
            data=data,
            title=title,
            answer=answer(data),
            facts=_facts(data),
            aggregations=aggregations(correlations),
            correlations=correlations,
            aggregation_names=AGGREGATIONS,
            measures=MEASURES,
            kind_names=KIND_NAMES,
            outcomes=OUTCOMES,
            not_ok=sum(row["outcome"] != "ok" for row in data.correlations),
            identification=identification_panels(data.identification, title),
            similarity=similarity_panels(data.set_similarity),
            clouds=_by_dataset(data.points),
            jitter=JITTER,
            learning=learning_panels(data.learning_curves, title),
            cases=shown,
            case_sets=list(dict.fromkeys(case.dataset for case in shown)),
            case_evaluators=list(
                dict.fromkeys(title(name, version) for case in shown for name, version, _ in case.picks)
            ),
            case_kinds=cases.KINDS,
            studies={key: Study.of(panel) for key, panel in study_panels(data.studies).items()},
            study_called=study_called,
            glyphs=GLYPHS,
            columns=COLUMNS,
            file_name=file_name,
            failed=[row for row in data.quality if not row["passed"]],
            passed=[row for row in data.quality if row["passed"]],
            most_gates=MOST_GATES,
            most_runs=MOST_RUNS,
            style=style(),
            script=script,
            # The content security policy allows this script only.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def render_comparison(comparison: Comparison) -> str:
    """The comparison of two runs as one self-contained HTML document; every text is escaped."""
    return jinja_environment().get_template("comparison.html").render(c=comparison, style=style())


def jinja_environment() -> Environment:
    """The Jinja environment of all pages: texts are escaped, and the filters write figures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ssrem.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("real", "count", "percent", "p_value", "interval", "moment", "plain", "signed", "change"):
        environment.filters[name] = getattr(numbers, name)
    environment.filters["csv_link"] = csv_link
    environment.filters["differing"] = lambda pairs: [pair for pair in pairs if pair.differs]
    environment.globals["is_figure"] = numbers.is_figure
    return environment


def style() -> str:
    """The style sheet that all pages share."""
    return _resource("page.css")


def namer(data: ReportData) -> Namer:
    """The names of evaluators on the page: with the version where the report has several of it."""
    versions: dict[Any, set[Any]] = {}
    for rows in (data.identification, data.correlations, data.learning_curves, data.evaluators):
        for row in rows:
            versions.setdefault(row["evaluator"], set()).add(row["version"])

    def title(evaluator: Any, version: Any) -> str:
        return f"{evaluator} {version}" if len(versions.get(evaluator, ())) > 1 else str(evaluator)

    return title


def aggregations(correlations: Rows) -> dict[str, list[Agreement]]:
    """The correlations by aggregation, the mean first; within it by dataset, criterion and level, in their order."""
    by_aggregation = grouped(correlations, "aggregation")
    ordered = sorted(by_aggregation, key=lambda key: key[0] != "mean")
    return {
        str(key[0]): [
            Agreement(str(dataset), str(criterion), str(level), rows, _best(rows))
            for (dataset, criterion, level), rows in grouped(
                by_aggregation[key], "dataset", "criterion", "level"
            ).items()
        ]
        for key in ordered
    }


def _best(rows: Rows) -> Row | None:
    """The row with the highest Spearman correlation; None with fewer than two measured rows."""
    measured = [row for row in rows if row["outcome"] == "ok" and numbers.is_figure(row["spearman"])]
    return max(measured, key=lambda row: float(row["spearman"])) if len(measured) > 1 else None


def _by_dataset(points: Rows) -> dict[tuple[str, str], list[Any]]:
    groups: dict[tuple[str, str], list[tuple[Cloud, Any]]] = {}
    for cloud, panel in clouds(points):
        groups.setdefault((cloud.dataset, cloud.criterion), []).append((cloud, panel))
    return groups


def _facts(data: ReportData) -> list[str]:
    """The amount of data behind the answer, in short phrases."""
    facts = []
    if data.corpora:
        conversations = sum(row["conversations"] or 0 for row in data.corpora)
        turns = sum(row["turns"] or 0 for row in data.corpora)
        corpora = _many(len(data.corpora), "corpus", "corpora")
        facts.append(f"{corpora}: {conversations:,} conversations, {turns:,} turns")
    if data.evaluators:
        facts.append(_many(len(data.evaluators), "evaluator", "evaluators"))
    datasets = {row["dataset"] for row in data.correlations}
    if datasets:
        facts.append(_many(len(datasets), "annotated set", "annotated sets"))
    if data.quality:
        passed = Counter(bool(row["passed"]) for row in data.quality)[True]
        facts.append(f"{passed:,} of {len(data.quality):,} gates passed")
    return facts


def _many(n: int, one: str, more: str) -> str:
    return f"{n:,} {one if n == 1 else more}"


def _resource(name: str) -> str:
    return files("ssrem.report").joinpath(name).read_text(encoding="utf-8")
