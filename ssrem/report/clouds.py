"""Score against human score: a cloud of points and its regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ssrem.report.data import Row, Rows
from ssrem.report.drawing import Panel, canvas, grouped, styled
from ssrem.report.numbers import is_figure, real
from ssrem.report.svg import POINTS, paint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JITTER = 0.3  # standard deviation, as in Figure 2 of the SSREM paper
POINTS_A_PANEL = 2_000
POINTS_A_PAGE = 12_000  # keeps a page of many panels, with their numbers, under 3 MB
SEED = 1


@dataclass(frozen=True)
class Cloud:
    """The regression behind a scatter panel: its slope (None where human scores do not vary) and its n."""

    evaluator: str
    dataset: str
    criterion: str
    slope: float | None
    intercept: float | None
    n: int


@styled()
def clouds(points: Rows) -> list[tuple[Cloud, Panel]]:
    """Score against human score, a panel an evaluator, dataset and criterion (SSREM paper, Figures 2 and 4).

    x is the human score with noise from N(0, 0.3); the regression is fitted without it, on every point.
    """
    groups = {
        key: there
        for key, group in grouped(points, "dataset", "criterion", "evaluator").items()
        if (there := [row for row in group if _both(row)])
    }
    most = min(POINTS_A_PANEL, POINTS_A_PAGE // max(len(groups), 1))
    made = []
    for number, ((dataset, criterion, evaluator), rows) in enumerate(groups.items()):
        values = np.array([(row["human"], row["score"]) for row in rows], dtype=np.float64)
        rng = np.random.default_rng([SEED, number])
        jitter = rng.normal(0.0, JITTER, len(values))
        shown = np.sort(rng.permutation(len(values))[:most])
        cloud = Cloud(str(evaluator), str(dataset), str(criterion), *_fit(values), n=len(values))
        figure, coefficient = _scatter(values, values[shown, 0] + jitter[shown], values[shown, 1], cloud)
        label = f"Score against human score, {cloud.n} responses, {coefficient}"
        note = f"n = {len(values):,}"
        if len(shown) < len(values):
            note += f"; {len(shown):,} of them shown, drawn at random"
        drawn = [rows[at] for at in shown]
        made.append((cloud, Panel.of(figure, f"cloud{number}", label, cloud.evaluator, note, drawn)))
    return made


def _scatter(values: np.ndarray, x: np.ndarray, y: np.ndarray, cloud: Cloud) -> tuple[Figure, str]:
    figure, axes = canvas(2.7)
    axes.plot(*(x, y, "o"), color=paint().accent, gid=POINTS, markersize=3, markeredgewidth=0, alpha=0.33)
    if cloud.slope is None or cloud.intercept is None:
        coefficient = "no line: the human scores do not vary"
    else:
        ends = np.array([values[:, 0].min(), values[:, 0].max()])
        axes.plot(ends, cloud.intercept + cloud.slope * ends, color=paint().line, linewidth=2)
        coefficient = f"coef {real(cloud.slope)}"
    axes.set_title(coefficient, loc="right", color=paint().line, fontsize=9)
    axes.set_xlabel("human score")
    axes.set_ylabel("score")
    axes.grid()
    return figure, coefficient


def _fit(values: np.ndarray) -> tuple[float | None, float | None]:
    """Least-squares slope and intercept of score on human score; none where the human scores do not vary."""
    human, score = values[:, 0], values[:, 1]
    centred = human - human.mean()
    spread = float(centred @ centred)
    if spread == 0:
        return None, None
    slope = float(centred @ score) / spread
    return slope, float(score.mean() - slope * human.mean())


def _both(row: Row) -> bool:
    return is_figure(row["human"]) and is_figure(row["score"])
