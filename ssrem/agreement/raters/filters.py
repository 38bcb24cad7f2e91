"""Filters of raters: which raters are left out and why, and the name of the aggregation over the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ssrem.agreement.raters.reliability import Ratings, Weights, categories_of, checked, cohen_kappa

MIN_SHARED = 5
"""Units that two raters must share for a κ between them."""

_ROUNDING = 1e-9

_NORMAL = 1.4826
"""Scales the median absolute deviation to the standard deviation of normal values."""


@dataclass(frozen=True)
class Dropped:
    """A rater who is left out: the figure that decided, and the reason in words."""

    rater: str
    figure: float
    reason: str


@dataclass(frozen=True)
class Filtered:
    """ratings (raters, units) as before, but NaN for the dropped raters. unjudged: raters for whom there were too few
    data to judge, who stay. name: of letters, digits and points, for the aggregation's name."""

    name: str
    ratings: Ratings
    dropped: tuple[Dropped, ...]
    unjudged: tuple[str, ...]


def failed_checks(
    ratings: Any, raters: Sequence[str], checks: Mapping[str, Sequence[bool]], *, least: float = 1.0
) -> Filtered:
    """Without raters who passed fewer than `least`, in (0, 1], of their attention checks.

    checks: rater to whether each check was passed; a rater without any is not judged. ValueError for a least outside
    (0, 1], or names that do not fit.
    """
    if not 0 < least <= 1:
        raise ValueError(f"the share of checks to pass must lie within (0, 1], not at {least}")
    table = _named(ratings, raters)
    passed = {rater: float(np.mean(checks[rater])) for rater in raters if checks.get(rater)}
    reasons = {
        rater: f"passed {sum(map(bool, checks[rater]))} of {len(checks[rater])} attention checks"
        for rater, share in passed.items()
        if share < least
    }
    return _without(f"checks{least:g}", table, raters, passed, reasons)


def low_kappa(
    ratings: Any,
    raters: Sequence[str],
    *,
    bound: float,
    weights: Weights = "quadratic",
    categories: Sequence[float] | None = None,
) -> Filtered:
    """Without raters whose mean κ with the others is below `bound`, in [-1, 1].

    The mean is over those with whom they share `MIN_SHARED` units and a κ is defined; a rater who shares them with
    nobody is not judged. All are judged at once, by all others. ValueError as in `cohen_kappa`, and for names that do
    not fit.
    """
    if not -1 <= bound <= 1:
        raise ValueError(f"a bound of kappa must lie within [-1, 1], not at {bound}")
    table = _named(ratings, raters)
    scale = categories_of(table, categories).tolist()
    kappas: dict[str, list[float]] = {rater: [] for rater in raters}
    rated = (~np.isnan(table)).astype(np.int64)
    shared = rated @ rated.T
    for one, other in combinations(range(len(raters)), 2):
        if shared[one, other] < MIN_SHARED:
            continue
        kappa = cohen_kappa(table[one], table[other], weights=weights, categories=scale).value
        if kappa is not None:
            kappas[raters[one]].append(kappa)
            kappas[raters[other]].append(kappa)
    means = {rater: float(np.mean(values)) for rater, values in kappas.items() if values}
    reasons = {
        rater: f"mean kappa {mean:.2f} with {len(kappas[rater])} others, below {bound:g}"
        for rater, mean in means.items()
        if mean < bound
    }
    return _without(f"kappa{bound:g}", table, raters, means, reasons)


def without_outliers(ratings: Any, *, deviations: float = 1.0) -> Ratings:
    """The ratings (raters, units) with NaN for those farther than `deviations` scaled median absolute deviations from
    their unit's median, each unit by itself: the outlier removal of Zhao et al. 2020, appendix A, after Leys et al.
    2013. ValueError for deviations of 0 or less, and where ratings are no table or infinite."""
    if not deviations > 0:
        raise ValueError(f"deviations must be above 0, not {deviations}")
    table = checked(ratings)
    rated = ~np.isnan(table).all(axis=0)
    own = table[:, rated]
    distance = np.abs(own - np.nanmedian(own, axis=0))
    bound = deviations * _NORMAL * np.nanmedian(distance, axis=0)
    remaining = table.copy()
    remaining[:, rated] = np.where(distance <= bound + _ROUNDING, own, np.nan)
    return remaining


def aggregation_name(aggregation: str, filters: Sequence[Filtered]) -> str:
    """Name of an aggregation after filters, in the order they were applied: 'mean+checks1+kappa0.2'."""
    return "+".join([aggregation, *(one.name for one in filters)])


def _named(ratings: Any, raters: Sequence[str]) -> Ratings:
    table = checked(ratings)
    if len(raters) != len(table) or len(set(raters)) < len(raters):
        raise ValueError(f"{len(set(raters))} distinct names do not fit {len(table)} raters")
    return table


def _without(
    name: str,
    table: Ratings,
    raters: Sequence[str],
    figures: Mapping[str, float],
    reasons: Mapping[str, str],
) -> Filtered:
    """figures: of every rater who was judged; reasons: why a rater is left out."""
    remaining = table.copy()
    remaining[[rater in reasons for rater in raters]] = np.nan
    dropped = tuple(Dropped(rater, figures[rater], reason) for rater, reason in reasons.items())
    return Filtered(name, remaining, dropped, tuple(rater for rater in raters if rater not in figures))
