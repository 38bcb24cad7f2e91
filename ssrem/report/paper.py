"""The report's tables for a paper, as cells of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ssrem.report import numbers
from ssrem.report.data import COLUMNS, ReportData, Row, Rows
from ssrem.report.drawing import Namer, grouped
from ssrem.report.formats import Strong, Table
from ssrem.report.plots import Cloud
from ssrem.report.study import conditions, evaluators

SIGNIFICANT = 0.05


def paper_tables(data: ReportData, regressions: Sequence[Cloud], title: Namer) -> list[Table]:
    """Every table of the report that has rows."""
    plain = [
        _listed(
            data, "correlations", "correlations", "Correlation with human scores.", _CORRELATIONS, 6, title
        ),
        _listed(
            data, "comparisons", "comparisons", "Evaluators compared by paired bootstrap.", _COMPARISONS, 5
        ),
        _listed(
            data, "identification", "identification", "True and false responses.", _IDENTIFICATION, 3, title
        ),
        _listed(
            data, "set_similarity", "set-similarity", "Similarity of the texts of a set.", _SIMILARITY, 3
        ),
        _regressions(regressions),
        _listed(data, "learning_curves", "learning-curves", "Loss by epoch.", _LEARNING, 2, title),
        _listed(data, "corpora", "corpora", "Corpora.", _CORPORA, 1),
        _listed(data, "quarantine", "quarantine", "Quarantined rows by reason.", _QUARANTINE, 2),
        _listed(data, "quality", "gates", "Results of the gates.", _GATES, 4),
        _listed(data, "evaluators", "evaluators", "Evaluators.", _EVALUATORS, 4),
        _listed(data, "runs", "runs", "Runs.", _RUNS, 3),
    ]
    studies = [_study(rows) for rows in grouped(data.studies, "study", "dataset").values()]
    return [table for table in (_agreement(data.correlations, title), *plain, *studies) if table.body]


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


def _regressions(regressions: Sequence[Cloud]) -> Table:
    columns = ("evaluator", "dataset", "criterion", "slope", "intercept", "n")
    rows = [{name: getattr(cloud, name) for name in columns} for cloud in regressions]
    body = [
        [
            *(row["evaluator"], row["dataset"], row["criterion"]),
            *(numbers.real(row["slope"]), numbers.real(row["intercept"]), numbers.count(row["n"])),
        ]
        for row in rows
    ]
    headings = ("Evaluator", "Dataset", "Criterion", "Slope", "Intercept", "n")
    return Table("regressions", "Score on human score.", 3, headings, body, rows, columns)


Column = tuple[str, Callable[[Row], str]]


def _listed(
    data: ReportData,
    of: str,
    name: str,
    caption: str,
    columns: Sequence[Column],
    left: int,
    title: Namer | None = None,
) -> Table:
    """One list of `data` as a table; title: names the evaluator in the first column, with its version where needed."""
    rows: Rows = getattr(data, of)
    body = [[write(row) for _, write in columns] for row in rows]
    for row, cells in zip(rows, body, strict=True):
        if title:
            cells[0] = title(row["evaluator"], row["version"])
    return Table(name, caption, left, [heading for heading, _ in columns], body, rows, COLUMNS[of])


def _text(heading: str, key: str) -> Column:
    return heading, lambda row: numbers.plain(row[key])


def _texts(*keys: str) -> list[Column]:
    """Columns of text whose headings are their keys."""
    return [_text(key.capitalize(), key) for key in keys]


def _number(heading: str, key: str, write: Callable[..., str] = numbers.real, *more: Any) -> Column:
    return heading, lambda row: write(row[key], *more)


def _interval(low: str, high: str) -> Column:
    return "95% interval", lambda row: numbers.interval(row[low], row[high])


_CORRELATIONS = (
    *_texts("evaluator", "score", "dataset", "criterion"),
    _text("Human score", "aggregation"),
    _text("Level", "level"),
    _number("Spearman's ρ", "spearman"),
    _interval("spearman_low", "spearman_high"),
    ("p", lambda row: numbers.p_value(row["spearman_p"])),
    _number("Pearson's r", "pearson"),
    _number("Kendall's τ-b", "kendall"),
    _number("n", "n", numbers.count),
    _number("Cluster", "cluster", numbers.count),
)
_COMPARISONS = (
    *_texts("dataset", "criterion", "level"),
    ("Better", lambda row: f"{row['first']} {row['first_version']}"),
    ("Other", lambda row: f"{row['second']} {row['second_version']}"),
    ("p (Holm)", lambda row: numbers.p_value(row["p_holm"])),
)
_IDENTIFICATION = (
    *_texts("evaluator", "corpus", "kind"),
    _number("Mean f", "mean"),
    _interval("low", "high"),
    ("GT above", lambda row: numbers.percent(row["gt_above"])),
    _number("n", "n", numbers.count),
)
_SIMILARITY = (
    *_texts("corpus", "kind", "encoder"),
    _number("Mean similarity", "mean", numbers.real, 4),
    ("95% interval", lambda row: numbers.interval(row["low"], row["high"], 4)),
    _number("Speakers", "speakers", numbers.count),
    _number("Pairs", "pairs", numbers.count),
)
_LEARNING = (
    *_texts("evaluator", "split"),
    _number("Epoch", "epoch", numbers.count),
    _number("Loss", "loss", numbers.real, 4),
)
_CORPORA = (
    _text("Corpus", "corpus"),
    *(
        _number(key.capitalize(), key, numbers.count)
        for key in ("conversations", "utterances", "quarantined", "speakers", "turns", "responses")
    ),
)
_QUARANTINE = (_text("Corpus", "corpus"), _text("Reason", "reason"), _number("Rows", "rows", numbers.count))
_GATES = (
    *_texts("stage", "table", "expectation"),
    ("Holds", lambda row: numbers.plain(bool(row["passed"]))),
    _text("Rows that break it", "unexpected"),
)
_EVALUATORS = (
    *_texts("evaluator", "version"),
    _text("In use", "promoted"),
    _text("Encoder", "encoder"),
    _number("Trained", "trained_at", numbers.moment),
)
_RUNS = (
    _text("Run", "run_id"),
    _text("Stage", "stage"),
    _text("State", "state"),
    _number("Started", "started", numbers.moment),
    _number("Ended", "ended", numbers.moment),
)
