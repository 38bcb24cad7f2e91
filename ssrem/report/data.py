"""The data of a report: rows of the published tables, as dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ssrem.agreement import COVERAGE
from ssrem.evaluators import overall_part
from ssrem.report.text import Row, Rows, is_figure

Evaluator = tuple[Any, Any]
"""Name and version of an evaluator."""
Namer = Callable[[Any, Any], str]
"""Function from an evaluator's name and version to its label in a report."""

KIND_NAMES = {
    "GT": "ground truth",
    "SC": "same conversation",
    "SP": "same partner",
    "SS": "same speaker",
    "Rand": "anyone else",
    "Context": "copied context",
}
"""Kind of candidate, in the order in which kinds are shown → its name in a report."""


@dataclass(frozen=True)
class ReportData:
    """The rows behind a report, each list in the order in which it is shown.

    The keys of the rows are the columns of the queries in sql/report; a figure that could not be computed is None or
    NaN. Means, intervals and correlations are floats in their own units, `gt_above` is a share from 0 to 1, `figures`
    and `parameters` are mappings or text, and times are datetimes or text. `responses` has the texts of the points that
    may be shown as cases; their `context` is a list of turns, oldest first.
    """

    generated_at: str
    ssrem_version: str
    home: str
    corpora: Rows = field(default_factory=list)
    quarantine: Rows = field(default_factory=list)
    set_similarity: Rows = field(default_factory=list)
    identification: Rows = field(default_factory=list)
    correlations: Rows = field(default_factory=list)
    comparisons: Rows = field(default_factory=list)
    judgments: Rows = field(default_factory=list)
    rater_agreement: Rows = field(default_factory=list)
    pairs: Rows = field(default_factory=list)
    sources: Rows = field(default_factory=list)
    points: Rows = field(default_factory=list)
    responses: Rows = field(default_factory=list)
    studies: Rows = field(default_factory=list)
    learning_curves: Rows = field(default_factory=list)
    evaluators: Rows = field(default_factory=list)
    quality: Rows = field(default_factory=list)
    runs: Rows = field(default_factory=list)

    def title(self, evaluator: Any, version: Any) -> str:
        """Label of an evaluator: its name, with the version if the report has several versions of it."""
        return f"{evaluator} {version}" if len(self._versions.get(evaluator, ())) > 1 else str(evaluator)

    @cached_property
    def _versions(self) -> dict[Any, set[Any]]:
        versions: dict[Any, set[Any]] = {}
        for rows in (self.identification, self.correlations, self.learning_curves, self.evaluators):
            for row in rows:
                versions.setdefault(row["evaluator"], set()).add(row["version"])
        return versions


def grouped(rows: Rows, *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of `keys`, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def learned_elsewhere(row: Row) -> bool:
    """Whether the evaluator of a row of `identification` learned from other corpora than the one that it scored."""
    return bool(row["learned_from"]) and row["corpus"] not in row["learned_from"].split(", ")


def headline(correlations: Rows, level: str = "segment") -> dict[Evaluator, dict[Hashable, Row]]:
    """For each evaluator and (dataset, criterion), the correlation that the report is based on: that of its
    `overall_part` with the mean human score. Where an evaluator scored less than COVERAGE of the responses that another
    scored, for example for lack of references, its correlation is over different responses and is left out.
    """
    wanted = {"aggregation": "mean", "level": level, "outcome": "ok"}
    parts: dict[Evaluator, dict[Hashable, dict[str, Row]]] = {}
    for row in correlations:
        if all(row[key] == value for key, value in wanted.items()) and is_figure(row["spearman"]):
            cell = parts.setdefault((row["evaluator"], row["version"]), {})
            cell.setdefault((row["dataset"], row["criterion"]), {})[row["score"]] = row
    cells: dict[Evaluator, dict[Hashable, Row]] = {
        evaluator: {
            key: rows[overall_part({part: row["n"] for part, row in rows.items()})]
            for key, rows in cell.items()
        }
        for evaluator, cell in parts.items()
    }
    most: dict[Hashable, int] = {}
    for own in cells.values():
        for key, row in own.items():
            most[key] = max(row["n"], most.get(key, 0))
    whole = {
        evaluator: {key: row for key, row in own.items() if row["n"] >= COVERAGE * most[key]}
        for evaluator, own in cells.items()
    }
    return {evaluator: own for evaluator, own in whole.items() if own}


def conditions(rows: Rows) -> dict[str, dict[str, Row]]:
    """Condition → evaluator → row of a study, in the order of the rows; keys name the measure if there are several."""
    several = len({row["measure"] for row in rows}) > 1
    by_condition: dict[str, dict[str, Row]] = {}
    for row in rows:
        label = f"{row['condition']}, {row['measure']}" if several else row["condition"]
        by_condition.setdefault(label, {})[row["evaluator"]] = row
    return by_condition


def evaluators_of(rows: Rows) -> list[str]:
    """Names of the evaluators, in the order of the rows."""
    return list(dict.fromkeys(row["evaluator"] for row in rows))
