"""The findings that an evaluator is no better than chance or than an untrained baseline, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ssrem.agreement import share_interval
from ssrem.evaluators import BASELINES
from ssrem.report.data import Evaluator, Namer, Row, Rows, headline, learned_elsewhere
from ssrem.report.numbers import is_figure

ALPHA = 0.05
FALSE = {
    "SC": "another one of the same conversation",
    "SP": "another one to the same partner",
    "SS": "another one of the same speaker",
    "Rand": "a random one",
    "Context": "a copied turn of its context",
}
"""Kind of false responses → its name in sentences."""
_MOST = 3


def verdict(identification: Rows, correlations: Rows, comparisons: Rows, title: Namer) -> list[str]:
    """The sentences about all evaluators but the baselines; the columns of the rows are those of `ReportData`.

    Identification is no better than chance where the 95% interval of its share (Wilson 1927, responses taken as
    independent) reaches down to one half; a correlation where the lower end of its bootstrap interval is not above 0;
    an evaluator is no better than the best baseline of a criterion if that stands above it, or is not significantly
    below it in the test of `comparisons` (p < .05 after Holm's correction). Correlations are those of the `headline`.
    """
    return [
        *_identified(identification, title),
        *_correlated(correlations, title),
        *_compared(comparisons, title),
    ]


def _identified(rows: Rows, title: Namer) -> Iterator[str]:
    for row in rows:
        share = row["gt_above"]
        if row["evaluator"] in BASELINES or row["kind"] not in FALSE or not is_figure(share) or not row["n"]:
            continue
        low, high = share_interval(share, row["n"])
        if low <= 0.5:
            yield (
                f"{title(row['evaluator'], row['version'])} tells the true response from {FALSE[row['kind']]} in "
                f"{share:.1%} of cases: chance is 50% ({row['corpus']}, {_learned(row)}n = {row['n']:,}, "
                f"95% interval {low:.1%} to {high:.1%})."
            )


def _learned(row: Row) -> str:
    """The corpora that the evaluator learned from, if others than the one it scored; else empty."""
    return f"learned from {row['learned_from']}, " if learned_elsewhere(row) else ""


def _correlated(rows: Rows, title: Namer) -> Iterator[str]:
    for (name, version), cells in headline(rows).items():
        known = [row for row in cells.values() if is_figure(row["spearman_low"])]
        wanted = [row for row in known if row["spearman_low"] <= 0]
        if name in BASELINES or not wanted:
            continue
        figures = _listed(
            [
                f"{_real(row['spearman'])} ({_where(row)}, 95% interval {_real(row['spearman_low'])} to "
                f"{_real(row['spearman_high'])})"
                for row in wanted
            ]
        )
        on = f"{len(wanted)} of {_criteria(len(known))}"
        yield f"{title(name, version)}: on {on} its Spearman with human scores is not above chance, 0: {figures}."


def _compared(rows: Rows, title: Namer) -> Iterator[str]:
    for (name, version), cells in _against_baselines(rows).items():
        below = [cell for cell in cells if cell.figure <= cell.baseline_figure]
        unclear = [
            cell
            for cell in cells
            if cell.figure > cell.baseline_figure and not (cell.p is not None and cell.p < ALPHA)
        ]
        for wanted, above in ((below, "not above"), (unclear, "not significantly above")):
            if wanted:
                yield (
                    f"{title(name, version)}: on {len(wanted)} of {_criteria(len(cells))} its Spearman with human "
                    f"scores is {above} that of an untrained baseline: {_listed([str(cell) for cell in wanted])}."
                )


class _Cell(NamedTuple):
    """An evaluator beside the best baseline of one criterion. p: of the test of `comparisons`, after Holm's
    correction."""

    figure: float
    baseline: str
    baseline_figure: float
    p: float | None
    where: str

    def __str__(self) -> str:
        how = f", p = {self.p:.2g}" if self.p is not None else ""
        return f"{_real(self.figure)}, {self.baseline} {_real(self.baseline_figure)} ({self.where}{how})"


def _against_baselines(rows: Rows) -> dict[Evaluator, list[_Cell]]:
    """Evaluator → a cell for each criterion on which it was compared with a baseline."""
    best: dict[Evaluator, dict[str, _Cell]] = {}
    for row in rows:
        sides = [
            (row[side], row[f"{side}_version"], row[f"{side}_statistic"]) for side in ("first", "second")
        ]
        sides.sort(key=lambda side: side[0] in BASELINES)
        (name, version, figure), (baseline, _, baseline_figure) = sides
        if baseline not in BASELINES or name in BASELINES or row["level"] != "segment":
            continue
        if not (is_figure(figure) and is_figure(baseline_figure)):
            continue
        cell = _Cell(
            figure,
            baseline,
            baseline_figure,
            row["p_holm"] if is_figure(row["p_holm"]) else None,
            _where(row),
        )
        cells = best.setdefault((name, version), {})
        if cell.where not in cells or cells[cell.where].baseline_figure < baseline_figure:
            cells[cell.where] = cell
    return {evaluator: list(cells.values()) for evaluator, cells in best.items()}


def _criteria(n: int) -> str:
    return f"{n} {'criterion' if n == 1 else 'criteria'}"


def _where(row: Row) -> str:
    return f"{row['dataset']}, {row['criterion']}"


def _listed(figures: Sequence[str]) -> str:
    more = len(figures) - _MOST
    return "; ".join(figures[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _real(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
