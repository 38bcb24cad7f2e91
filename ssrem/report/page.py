"""The report as one HTML file that opens offline, on phones and desktops, and prints."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ssrem.report import cases, text
from ssrem.report.data import KIND_NAMES, ReportData, conditions, evaluators_of, grouped
from ssrem.report.figures import COLOURS, JITTER, panels, regressions
from ssrem.report.findings import answer, no_better

if TYPE_CHECKING:
    from jinja2 import Environment

# With at most this many rows a page stays under 3 MB, whatever the home folder holds.
MOST_CORRELATIONS, MOST_GATES, MOST_RUNS = 800, 500, 300

AGGREGATIONS = {
    "rating": "single ratings",
    "mean": "mean of the raters",
    "median": "median of the raters",
    "mode": "mode of the raters",
    "mad_mean": "mean of the raters after outlier removal (MAD)",
}
TESTS = {"paired-bootstrap": "paired bootstrap", "perm-both": "permutation test"}
OUTCOMES = {"constant": "all scores on one side are equal", "too_few": "fewer than three pairs"}
MEASURES = {"spearman": "Spearman’s ρ", "pearson": "Pearson’s r", "kendall": "Kendall’s τ-b"}


def render(data: ReportData) -> str:
    """The report on `data` as one self-contained HTML document; the same data give the same text.

    Every text of `data` is escaped: names and messages come from the data.
    """
    script = template_text("page.js")
    correlations = sorted(data.correlations, key=lambda row: row["aggregation"] != "mean")[:MOST_CORRELATIONS]
    return render_page(
        "page.html",
        cases.with_texts(cases.chosen(data.points), data.responses),
        data=data,
        title=data.title,
        answer=answer(data),
        no_better=no_better(data.identification, data.correlations, data.comparisons, data.title),
        correlations=correlations,
        aggregation_names=AGGREGATIONS,
        kind_names=KIND_NAMES,
        not_ok=sum(row["outcome"] != "ok" for row in data.correlations),
        panels=panels(data),
        regressions=regressions(data.points),
        jitter=JITTER,
        evaluators_of=evaluators_of,
        conditions_of=conditions,
        most_gates=MOST_GATES,
        most_runs=MOST_RUNS,
        script=script,
        # The content security policy allows this script only.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def render_page(template: str, shown: list[cases.ExampleResponse], *, title: Any, **values: Any) -> str:
    """The text of a page from one of the templates, with the cases `shown`. title: `ReportData.title`."""
    labels = dict.fromkeys(title(name, version) for case in shown for name, version, _ in case.picks)
    return (
        jinja_environment()
        .get_template(template)
        .render(
            **values,
            title=title,
            cases=shown,
            case_sets=list(dict.fromkeys(case.dataset for case in shown)),
            case_evaluators=list(labels),
            style=template_text("page.css"),
        )
    )


@cache
def jinja_environment() -> Environment:
    """The Jinja environment of all pages: texts are escaped, and the filters write figures.

    It is made once for the process, as it keeps the templates that it has compiled.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ssrem.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    numbers = ("real", "count", "count_range", "percent", "p_value", "interval", "signed")
    for name in (*numbers, "plain", "csv_link"):
        environment.filters[name] = getattr(text, name)
    environment.globals |= {
        "tests": TESTS,
        "measures": MEASURES,
        "outcomes": OUTCOMES,
        "colours": COLOURS,
        "case_kinds": cases.KINDS,
        "grouped": grouped,
        "is_figure": text.is_figure,
    }
    return environment


def template_text(name: str) -> str:
    """The text of a file in the folder of templates."""
    return files("ssrem.report").joinpath("templates", name).read_text(encoding="utf-8")
