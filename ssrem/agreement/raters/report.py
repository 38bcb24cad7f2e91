"""How the raters of a set agree: every coefficient that is published, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from ssrem.agreement.inputs import Outcome
from ssrem.agreement.raters.alpha import Scale, krippendorff_alpha
from ssrem.agreement.raters.ceiling import one_rater, split_half
from ssrem.agreement.raters.kappa import cohen_kappa, fleiss_kappa
from ssrem.agreement.raters.ratings import Ratings

Name = Literal[
    "alpha_nominal",
    "alpha_ordinal",
    "alpha_interval",
    "fleiss_kappa",
    "weighted_kappa",
    "one_rater",
    "attainable",
]


@dataclass(frozen=True)
class AmongRaters:
    """value: at most 1; over `units` units and `raters` raters. None unless outcome is 'ok'; reason says why."""

    measure: Name
    value: float | None
    raters: int
    units: int
    outcome: Outcome = "ok"
    reason: str = ""


def among_raters(ratings: Ratings, *, seed: int = 0) -> Iterator[AmongRaters]:
    """Every coefficient of ratings (raters, units), NaN for missing. seed: of the split halves."""
    raters = int((~np.isnan(ratings)).any(axis=1).sum())
    scales: tuple[tuple[Name, Scale], ...] = (
        ("alpha_nominal", "nominal"),
        ("alpha_ordinal", "ordinal"),
        ("alpha_interval", "interval"),
    )
    for name, scale in scales:
        alpha = krippendorff_alpha(ratings, scale)
        yield AmongRaters(name, alpha.value, raters, alpha.units, alpha.outcome, alpha.reason)
    fleiss = fleiss_kappa(ratings)
    yield AmongRaters("fleiss_kappa", fleiss.value, raters, fleiss.units, fleiss.outcome, fleiss.reason)
    yield _weighted(ratings)
    units = int(((~np.isnan(ratings)).sum(axis=0) >= 2).sum())
    one = one_rater(ratings)
    yield AmongRaters("one_rater", one.statistic, one.raters, units, one.outcome, one.reason)
    halves = split_half(ratings, seed=seed)
    yield AmongRaters("attainable", halves.attainable, raters, halves.units, halves.outcome, halves.reason)


def _weighted(ratings: Ratings) -> AmongRaters:
    """Cohen's κ with quadratic weights, mean over the pairs of raters that have one."""
    scale = np.unique(ratings[~np.isnan(ratings)]).tolist()
    units = int(((~np.isnan(ratings)).sum(axis=0) >= 2).sum())
    pairs = {
        (one, other): kappa.value
        for one, other in combinations(range(len(ratings)), 2)
        if (kappa := cohen_kappa(ratings[one], ratings[other], weights="quadratic", categories=scale)).value
        is not None
    }
    if not pairs:
        why = "no two raters share units and differ in them"
        return AmongRaters("weighted_kappa", None, 0, units, "too_few", why)
    judged = len({rater for pair in pairs for rater in pair})
    return AmongRaters("weighted_kappa", float(np.mean(list(pairs.values()))), judged, units)
