"""The coefficients of agreement among raters that are published in the table `rater_agreement`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np

from ssrem.agreement.inputs import Outcome
from ssrem.agreement.raters.prediction import one_rater, split_half
from ssrem.agreement.raters.reliability import Ratings, Scale, cohen_kappa, fleiss_kappa, krippendorff_alpha


@dataclass(frozen=True)
class RaterFigure:
    """A published coefficient. measure: its name in the table `rater_agreement`. value: at most 1; over `units` units
    and `raters` raters. None unless outcome is 'ok'; reason says why."""

    measure: str
    value: float | None
    raters: int
    units: int
    outcome: Outcome = "ok"
    reason: str = ""


def rater_figures(ratings: Ratings, *, seed: int = 0) -> Iterator[RaterFigure]:
    """Every published coefficient of ratings (raters, units), NaN for missing. seed: of the split halves."""
    yield from reliability_figures(ratings)
    raters, units = _raters_and_units(ratings)
    one = one_rater(ratings)
    yield RaterFigure("one_rater", one.statistic, one.raters, units, one.outcome, one.reason)
    halves = split_half(ratings, seed=seed)
    yield RaterFigure("attainable", halves.attainable, raters, halves.units, halves.outcome, halves.reason)


def reliability_figures(ratings: Ratings) -> Iterator[RaterFigure]:
    """The coefficients of `rater_figures` that need no comparison with the mean of raters: the α and κ."""
    raters, units = _raters_and_units(ratings)
    for scale in get_args(Scale):
        alpha = krippendorff_alpha(ratings, scale)
        yield RaterFigure(f"alpha_{scale}", alpha.value, raters, alpha.units, alpha.outcome, alpha.reason)
    fleiss = fleiss_kappa(ratings)
    yield RaterFigure("fleiss_kappa", fleiss.value, raters, fleiss.units, fleiss.outcome, fleiss.reason)
    yield _mean_weighted_kappa(ratings, units)


def _mean_weighted_kappa(ratings: Ratings, units: int) -> RaterFigure:
    """Cohen's κ with quadratic weights, mean over the pairs of raters that have one."""
    scale = np.unique(ratings[~np.isnan(ratings)]).tolist()
    rated = (~np.isnan(ratings)).astype(np.float64)
    shared = rated @ rated.T  # hundreds of raters share units with few others
    kappas = {
        (one, other): cohen_kappa(ratings[one], ratings[other], weights="quadratic", categories=scale).value
        for one, other in combinations(range(len(ratings)), 2)
        if shared[one, other]
    }
    values = {pair: value for pair, value in kappas.items() if value is not None}
    if not values:
        reason = "no two raters share units and differ in them"
        return RaterFigure("weighted_kappa", None, 0, units, "too_few", reason)
    judged = len({rater for pair in values for rater in pair})
    return RaterFigure("weighted_kappa", float(np.mean(list(values.values()))), judged, units)


def _raters_and_units(ratings: Ratings) -> tuple[int, int]:
    """The number of raters with a rating, and of units with two or more."""
    rated = ~np.isnan(ratings)
    return int(rated.any(axis=1).sum()), int((rated.sum(axis=0) >= 2).sum())
