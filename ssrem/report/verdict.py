"""Where an evaluator is no better than chance or than an untrained baseline, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from ssrem.agreement import Z_95
from ssrem.evaluators import BASELINES
from ssrem.report.data import Namer, Row, Rows, grouped
from ssrem.report.numbers import is_figure

ALPHA = 0.05
FALSE = {
    "SC": "another one of the same conversation",
    "SP": "another one to the same partner",
    "SS": "another one of the same speaker",
    "Rand": "a random one",
    "Context": "a copied turn of its context",
}
"""Kinds of false responses, as sentences call them."""
_MOST = 3


def verdict(identification: Rows, correlations: Rows, comparisons: Rows, title: Namer) -> list[str]:
    """The sentences, baselines left out; the columns of the rows are those of `ReportData`.

    Identification is no better than chance where the 95% interval of its share (Wilson 1927, responses taken as
    independent) reaches down to one half; a correlation where the lower end of its bootstrap interval is not above 0;
    an evaluator is no better than a baseline that stands above it, or is not significantly below it in a paired
    bootstrap (p < .05 after Holm's correction). Correlations are those of single responses with the raters' mean.
    """
    return [
        *_identified(identification, title),
        *_correlated(correlations, title),
        *_compared(comparisons, title),
    ]


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share among n."""
    centre, spread = share + Z_95**2 / (2 * n), Z_95 * sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    return (centre - spread) / scale, (centre + spread) / scale


def _identified(rows: Rows, title: Namer) -> Iterator[str]:
    for row in rows:
        share = row["gt_above"]
        if row["evaluator"] in BASELINES or row["kind"] not in FALSE or not is_figure(share) or not row["n"]:
            continue
        low, high = share_interval(share, row["n"])
        if low <= 0.5:
            yield (
                f"{title(row['evaluator'], row['version'])} tells the true response from {FALSE[row['kind']]} in "
                f"{share:.1%} of cases: chance is 50% ({row['corpus']}, n = {row['n']:,}, 95% interval {low:.1%} to "
                f"{high:.1%})."
            )


def _correlated(rows: Rows, title: Namer) -> Iterator[str]:
    wanted = [
        row
        for row in rows
        if row["level"] == "segment" and row["aggregation"] == "mean" and row["evaluator"] not in BASELINES
        if is_figure(row["spearman"]) and is_figure(row["spearman_low"]) and row["spearman_low"] <= 0
    ]
    for (name, version, score), of_one in grouped(wanted, "evaluator", "version", "score").items():
        figures = _listed(
            [
                f"{_real(row['spearman'])} ({_where(row)}, 95% interval {_real(row['spearman_low'])} to "
                f"{_real(row['spearman_high'])})"
                for row in of_one
            ]
        )
        yield f"{title(name, version)} {score}: its Spearman with human scores is not above chance, 0: {figures}."


def _compared(rows: Rows, title: Namer) -> Iterator[str]:
    lost: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        sides = [
            (row[f"{side}"], row[f"{side}_version"], row[f"{side}_statistic"]) for side in ("first", "second")
        ]
        baseline = next((at for at, (name, *_) in enumerate(sides) if name in BASELINES), None)
        if baseline is None or sides[1 - baseline][0] in BASELINES or row["level"] != "segment":
            continue
        (other, version, figure), (against, _, its_figure) = sides[1 - baseline], sides[baseline]
        p = row["p_holm"]
        if baseline == 1 and is_figure(p) and p < ALPHA:
            continue  # significantly above the baseline
        if not (is_figure(figure) and is_figure(its_figure)):
            continue
        how = f", p = {p:.2g}" if is_figure(p) else ""
        above = "not significantly above" if baseline == 1 else "not above"
        lost.setdefault((title(other, version), above, against), []).append(
            f"{_real(figure)} against {_real(its_figure)} ({_where(row)}{how})"
        )
    for (name, above, against), figures in lost.items():
        yield f"{name}: its Spearman with human scores is {above} the untrained {against}'s: {_listed(figures)}."


def _where(row: Row) -> str:
    return f"{row['dataset']}, {row['criterion']}"


def _listed(figures: Sequence[str]) -> str:
    more = len(figures) - _MOST
    return "; ".join(figures[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _real(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
