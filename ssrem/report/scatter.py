"""Scatter plots of scores against human scores, each with its regression line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ssrem.agreement.correlate import regression_line
from ssrem.report.data import Rows, grouped
from ssrem.report.drawing import POINTS, Panel, canvas, paint, styled
from ssrem.report.numbers import is_figure, real

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JITTER = 0.3
"""Standard deviation of the noise on the human score of a dot, as in Figure 2 of the SSREM paper."""
POINTS_A_PANEL = 2_000
POINTS_A_PAGE = 12_000  # keeps a page of many panels, with their numbers, under 3 MB
SEED = 1


@dataclass(frozen=True)
class Regression:
    """The least-squares line of score on human score over n responses.

    slope and intercept are None if the human scores do not vary.
    """

    evaluator: str
    dataset: str
    criterion: str
    slope: float | None
    intercept: float | None
    n: int


@styled()
def scatter_panels(points: Rows) -> list[tuple[Regression, Panel]]:
    """Score against human score, a panel per evaluator, dataset and criterion (SSREM paper, Figures 2 and 4).

    x is the human score with noise from N(0, 0.3); the regression is fitted on all points, without noise.
    """
    groups = {
        key: rows
        for key, group in grouped(points, "dataset", "criterion", "evaluator").items()
        if (rows := [row for row in group if is_figure(row["human"]) and is_figure(row["score"])])
    }
    most = min(POINTS_A_PANEL, POINTS_A_PAGE // max(len(groups), 1))
    panels = []
    for number, ((dataset, criterion, evaluator), rows) in enumerate(groups.items()):
        values = np.array([(row["human"], row["score"]) for row in rows], dtype=np.float64)
        rng = np.random.default_rng([SEED, number])
        jitter = rng.normal(0.0, JITTER, len(values))
        shown = np.sort(rng.permutation(len(values))[:most])
        line = regression_line(values[:, 0], values[:, 1])
        slope, intercept = (line.slope, line.intercept) if line else (None, None)
        regression = Regression(str(evaluator), str(dataset), str(criterion), slope, intercept, n=len(values))
        figure, coefficient = _scatter(values, values[shown, 0] + jitter[shown], values[shown, 1], regression)
        label = f"Score against human score, {regression.n} responses, {coefficient}"
        note = f"n = {len(values):,}"
        if len(shown) < len(values):
            note += f"; {len(shown):,} of them shown, drawn at random"
        drawn = [rows[at] for at in shown]
        panels.append(
            (regression, Panel.of(figure, f"scatter{number}", label, regression.evaluator, note, drawn))
        )
    return panels


def _scatter(values: np.ndarray, x: np.ndarray, y: np.ndarray, regression: Regression) -> tuple[Figure, str]:
    figure, axes = canvas(2.7)
    axes.plot(*(x, y, "o"), color=paint().accent, gid=POINTS, markersize=3, markeredgewidth=0, alpha=0.33)
    if regression.slope is None or regression.intercept is None:
        coefficient = "no line: the human scores do not vary"
    else:
        ends = np.array([values[:, 0].min(), values[:, 0].max()])
        axes.plot(ends, regression.intercept + regression.slope * ends, color=paint().line, linewidth=2)
        coefficient = f"coef {real(regression.slope)}"
    axes.set_title(coefficient, loc="right", color=paint().line, fontsize=9)
    axes.set_xlabel("human score")
    axes.set_ylabel("score")
    axes.grid()
    return figure, coefficient
