"""Agreement among raters, from a table of ratings (raters, units) in which ratings may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlate import (
    MIN_RESPONSES,
    Floats,
    Keys,
    Numbers,
    Outcome,
    numbered,
    spearman_rows,
    unvarying,
)
from ssrem.errors import counted

Ratings = Floats
"""Scores (raters, units); NaN where a rater did not rate a unit."""

Scale = Literal["nominal", "ordinal", "interval"]

MIN_SHARED = 5
"""Least number of units that two raters must share for their κ to count when `low_kappa` leaves out raters."""

SPLITS = 200
"""Number of random splits into halves from which `split_half` computes the attainable correlation."""

_ROUNDING = 1e-9
_MOST_CATEGORIES = 1_000

_NORMAL = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of normally distributed values."""


@dataclass(frozen=True)
class RaterFigure:
    """A coefficient of agreement among raters. measure: its name in the table `rater_agreement`.

    value: at most 1, which is perfect agreement; over `units` units that two or more of `raters` raters rated. None
    unless outcome is 'ok'; reason says why in words.
    """

    measure: str
    value: float | None
    raters: int
    units: int
    outcome: Outcome = "ok"
    reason: str = ""


def rating_table(raters: Keys, units: Keys, scores: Numbers) -> tuple[Ratings, list[str], list[str]]:
    """Table (raters, units) of ratings given one per row (n,), and the names of its raters and units, each sorted.

    ValueError where lengths differ, a score is infinite, or a rater rated a unit twice.
    """
    values = np.asarray(scores, dtype=np.float64)
    rater_names, rater = numbered(raters, len(values), "raters")
    unit_names, unit = numbered(units, len(values), "units")
    cells = rater * max(1, len(unit_names)) + unit
    if repeated := len(cells) - len(np.unique(cells)):
        raise ValueError(f"{repeated} ratings repeat the rating of a unit by the same rater")
    table = np.full((len(rater_names), len(unit_names)), np.nan)
    table[rater, unit] = values
    return checked(table), rater_names, unit_names


def checked(ratings: Any) -> Ratings:
    """The ratings as a table of floats. ValueError if they are not a table, or hold an infinity."""
    table: Floats = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings of shape {table.shape} are not a table of raters and units")
    if np.isinf(table).any():
        raise ValueError("a rating is infinite")
    return table


def krippendorff_alpha(ratings: Any, scale: Scale) -> RaterFigure:
    """Krippendorff's α of ratings (raters, units), NaN for missing: 1 − observed / expected disagreement (Krippendorff
    2011, "Computing Krippendorff's Alpha-Reliability").

    scale: the distance of two values: nominal: equal or not; ordinal: the square of the number of ratings between them;
    interval: the square of their difference. Units with one rating tell nothing about agreement and are left out. No
    value where no unit has two ratings, or all ratings are the same. ValueError for another scale, if the ratings are
    not a table, or if one is infinite. The package krippendorff gives the same values, but needs memory for units times
    distinct ratings²; here the sum of squared differences over all pairs comes from the variance.
    """
    if scale not in get_args(Scale):
        raise ValueError(f"no scale {scale!r}; the scales are {', '.join(get_args(Scale))}")
    table, name = checked(ratings), f"alpha_{scale}"
    raters, units = _raters_and_units(table)
    if units == 0:
        return RaterFigure(name, None, raters, 0, "too_few", "no unit has two ratings")
    pairable = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    rated = ~np.isnan(pairable)
    values, value, counts = np.unique(pairable[rated], return_inverse=True, return_counts=True)
    if len(values) == 1:
        return RaterFigure(name, None, raters, units, "constant", "all ratings are the same")
    each, size = rated.sum(axis=0), len(value)  # ratings of each unit, and of all
    if scale == "nominal":
        cells, alike = np.unique(np.nonzero(rated)[1] * len(values) + value, return_counts=True)
        within = each**2 - np.bincount(cells // len(values), alike**2, len(each))
        between = size**2 - float((counts**2).sum())
    else:  # ordinal: the number of ratings between two values, with half of those of either value
        place = np.cumsum(counts) - counts / 2 if scale == "ordinal" else values
        pairable[rated] = place[value]
        within = 2 * each**2 * np.nanvar(pairable, axis=0)
        between = 2 * size**2 * float(place[value].var())
    observed, expected = float((within / (each - 1)).sum()), between / (size - 1)
    return RaterFigure(name, 1 - observed / expected, raters, units)


def weighted_kappa(first: Numbers, second: Numbers, categories: Numbers) -> float | None:
    """Cohen's κ with quadratic weights (Cohen 1968) of two raters' ratings (n,) of the same units; NaN is missing, and
    a unit counts where both rated it. categories: the scale, ascending, which holds every rating. None where there is
    no such unit, or all their ratings are the same."""
    pairs = np.stack([np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)])
    pairs = pairs[:, ~np.isnan(pairs).any(axis=0)]
    if not pairs.size:
        return None
    place = np.searchsorted(categories, pairs)
    # By chance: the mean squared steps between any rating of one and any of the other, from means and variances.
    expected = float(place.var(axis=1).sum() + (place[0].mean() - place[1].mean()) ** 2)
    return 1 - float(((place[0] - place[1]) ** 2).mean()) / expected if expected else None


def _pair_kappas(table: Ratings, least: int, categories: Numbers) -> dict[tuple[int, int], float]:
    """(row of one rater, row of another) → their κ, if they share `least` units or more and it is defined."""
    rated = (~np.isnan(table)).astype(np.float64)
    shared = rated @ rated.T  # of hundreds of raters, most pairs share no units
    pairs = (pair for pair in combinations(range(len(table)), 2) if shared[pair] >= least)
    kappas = {pair: weighted_kappa(table[pair[0]], table[pair[1]], categories) for pair in pairs}
    return {pair: kappa for pair, kappa in kappas.items() if kappa is not None}


def fleiss_kappa(ratings: Any) -> RaterFigure:
    """Fleiss' κ of ratings (raters, units), NaN for missing (Fleiss 1971); units need not have the same raters.

    Units without a rating are left out. All others must have the same number of ratings, two at least. Otherwise the
    outcome is 'uneven', as Fleiss' κ is not defined then, unlike Krippendorff's nominal α. No value where
    all ratings are the same. ValueError if the ratings are not a table, or one is infinite.
    """
    table, name = checked(ratings), "fleiss_kappa"
    raters = _raters_and_units(table)[0]
    each = (~np.isnan(table)).sum(axis=0)
    table, each = table[:, each > 0], each[each > 0]
    units, size = len(each), int(each.sum())
    if units == 0 or each.max() < 2:
        return RaterFigure(name, None, raters, units, "too_few", "no unit has two ratings")
    if each.min() < each.max():
        uneven = f"units have {each.min()} to {each.max()} ratings; Krippendorff's alpha takes that"
        return RaterFigure(name, None, raters, units, "uneven", uneven)
    own = int(each[0])
    counts = np.stack([(table == value).sum(axis=0) for value in np.unique(table[~np.isnan(table)])], axis=1)
    if counts.shape[1] == 1:
        return RaterFigure(name, None, raters, units, "constant", "all ratings are the same")
    agreement = float(((counts**2).sum(axis=1) - own).mean()) / (own * (own - 1))
    chance = float(((counts.sum(axis=0) / size) ** 2).sum())
    return RaterFigure(name, (agreement - chance) / (1 - chance), raters, units)


def one_rater(ratings: Any) -> RaterFigure:
    """How well one rater predicts the mean of the others: mean Spearman's ρ in [-1, 1], leaving out each in turn.

    ratings (raters, units), NaN for missing. All raters count the same, however many units they rated. Raters who share
    too few units with others, or whose ratings do not vary, are left out. ValueError if the ratings are not a
    table, or one is infinite.
    """
    table = checked(ratings)
    units = _raters_and_units(table)[1]
    coefficients = [float(spearman_rows(own[None], mean)[0]) for own, mean, _ in each_rater(table)]
    if not coefficients:
        reason = f"no rater has {MIN_RESPONSES} ratings, not all equal, of responses that others rated"
        reason = reason if units else "no response has the ratings of two people"
        return RaterFigure("one_rater", None, 0, units, "too_few", reason)
    return RaterFigure("one_rater", float(np.mean(coefficients)), len(coefficients), units)


def each_rater(table: Ratings) -> Iterator[tuple[Floats, Floats, NDArray[np.bool_]]]:
    """For each rater that `one_rater` counts, yield their ratings of the units that others rated too (u,), the mean of
    the others' ratings of these units (u,), and which units these are (units,)."""
    for rater, own in enumerate(table):
        others = np.delete(table, rater, axis=0)
        rated = ~np.isnan(others)
        both = ~np.isnan(own) & rated.any(axis=0)
        mean = np.where(rated, others, 0.0).sum(axis=0)[both] / rated.sum(axis=0)[both]
        if len(mean) >= MIN_RESPONSES and not unvarying(own[both], mean):
            yield own[both], mean, both


def split_half(ratings: Any, *, seed: int) -> RaterFigure:
    """The highest correlation that an evaluator can reach with the mean of ratings this noisy: the square root of the
    reliability of that mean, from Spearman's correlation r of the means of two random halves of each unit's ratings.

    ratings (raters, units), NaN for missing. Halves are equal: of an odd number of ratings one is left out. r is the
    mean over `SPLITS` splits. The Spearman-Brown formula (both 1910), k·r / (1 + (k − 1)·r), gives the reliability of
    all the ratings of a unit, on average k halves. As each unit is split by itself, raters need not have rated several.
    ValueError if the ratings are not a table, or one is infinite.
    """
    table = checked(ratings)
    raters, units = _raters_and_units(table)
    if units < MIN_RESPONSES:
        few = f"{units} units with two ratings; {MIN_RESPONSES} are needed"
        return RaterFigure("attainable", None, raters, units, "too_few", few)
    # Move the ratings of each unit to the top rows, and keep units with two or more: (most ratings of a unit, units).
    counts = (~np.isnan(table)).sum(axis=0)
    moved = np.take_along_axis(table, np.argsort(np.isnan(table), axis=0, kind="stable"), axis=0)
    stacked, counts = moved[: counts.max(), counts >= 2], counts[counts >= 2]
    draw = np.random.default_rng(seed)
    size = counts // 2
    halves = np.empty((2, SPLITS, units))
    for split in range(SPLITS):
        keys = np.where(np.isnan(stacked), np.inf, draw.random(stacked.shape))
        place = np.argsort(np.argsort(keys, axis=0), axis=0)
        for half, chosen in enumerate((place < size, (place >= size) & (place < 2 * size))):
            halves[half, split] = np.where(chosen, stacked, 0.0).sum(axis=0) / size
    each = spearman_rows(halves[0], halves[1])
    each = each[~np.isnan(each)]
    if len(each) == 0:
        same = "the mean ratings of the units are all the same"
        return RaterFigure("attainable", None, raters, units, "constant", same)
    r, k = float(each.mean()), float(counts.mean() / size.mean())
    if r <= 0:
        why = "the halves do not agree: there is no true score to reach"
        return RaterFigure("attainable", None, raters, units, "degenerate", why)
    return RaterFigure("attainable", sqrt(k * r / (1 + (k - 1) * r)), raters, units)


def without_outliers(ratings: Any) -> Ratings:
    """The ratings (raters, units) with NaN in place of outliers: ratings farther from the median of their unit than its
    scaled median absolute deviation. This is the outlier removal of Zhao et al. 2020, appendix A, after Leys et al.
    2013. ValueError if the ratings are not a table, or one is infinite."""
    table = checked(ratings)
    rated = ~np.isnan(table).all(axis=0)
    own = table[:, rated]
    distance = np.abs(own - np.nanmedian(own, axis=0))
    remaining = table.copy()
    remaining[:, rated] = np.where(
        distance <= _NORMAL * np.nanmedian(distance, axis=0) + _ROUNDING, own, np.nan
    )
    return remaining


# Raters who are left out


@dataclass(frozen=True)
class Dropped:
    """A rater who is left out: the figure that decided, and the reason in words."""

    rater: str
    figure: float
    reason: str


@dataclass(frozen=True)
class Filtered:
    """Ratings after raters were left out. ratings: (raters, units), with NaN for the dropped raters. unjudged: raters
    who stay because there were too few data to judge them. name: the filter's, for the name of the aggregation; of
    letters, digits and points."""

    name: str
    ratings: Ratings
    dropped: tuple[Dropped, ...]
    unjudged: tuple[str, ...]


def failed_checks(
    ratings: Ratings, raters: Sequence[str], checks: Mapping[str, Sequence[bool]], *, least: float = 1.0
) -> Filtered:
    """Leave out raters who passed a smaller share than `least`, in (0, 1], of their attention checks. checks: rater →
    whether they passed each of their checks; a rater without any is not judged."""
    passed = {
        rater: (float(np.mean(own)), f"passed {sum(own)} of {len(own)} attention checks")
        for rater in raters
        if (own := checks.get(rater))
    }
    return _filtered(f"checks{least:g}", ratings, raters, passed, least)


def low_kappa(
    ratings: Ratings, raters: Sequence[str], *, bound: float, categories: Sequence[float]
) -> Filtered:
    """Leave out raters whose mean κ with the other raters, with quadratic weights, is below `bound`, in [-1, 1].

    categories: the scale, ascending. The mean is over the others with whom a rater shares `MIN_SHARED` units or more
    and has a defined κ; a rater without such others is not judged. All are judged at once, each by all others.
    """
    kappas: dict[str, list[float]] = {}
    for pair, kappa in _pair_kappas(ratings, MIN_SHARED, categories).items():
        for rater in pair:
            kappas.setdefault(raters[rater], []).append(kappa)
    means = {
        rater: (
            mean := round(float(np.mean(own)), 9) + 0.0,  # no rounding noise, and no minus zero
            f"mean kappa {mean:.2f} with {counted(len(own), 'other')}, below {bound:g}",
        )
        for rater, own in kappas.items()
    }
    return _filtered(f"kappa{bound:g}", ratings, raters, means, bound)


def _filtered(
    name: str, table: Ratings, raters: Sequence[str], judged: Mapping[str, tuple[float, str]], least: float
) -> Filtered:
    """Leave out raters whose figure is below `least`. judged: rater → (figure, reason), for those who can be judged."""
    dropped = tuple(
        Dropped(rater, *judged[rater]) for rater in raters if rater in judged and judged[rater][0] < least
    )
    remaining = table.copy()
    remaining[[raters.index(one.rater) for one in dropped]] = np.nan
    return Filtered(name, remaining, dropped, tuple(rater for rater in raters if rater not in judged))


# All figures


def rater_figures(ratings: Ratings, *, seed: int = 0) -> Iterator[RaterFigure]:
    """Yield every published coefficient of ratings (raters, units), NaN for missing. seed: for the random halves."""
    yield from reliability_figures(ratings)
    yield one_rater(ratings)
    yield split_half(ratings, seed=seed)


def reliability_figures(ratings: Ratings) -> Iterator[RaterFigure]:
    """Yield the coefficients of ratings (raters, units) that compare no rater with the mean of others: Krippendorff's α
    of each scale, Fleiss' κ, and weighted κ as the mean over the pairs of raters for whom it is defined."""
    for scale in get_args(Scale):
        yield krippendorff_alpha(ratings, scale)
    yield fleiss_kappa(ratings)
    given = np.unique(ratings[~np.isnan(ratings)])
    # A whole number between two ratings is a category even if nobody gave it.
    whole = given.size and (given == given.round()).all() and np.ptp(given) <= _MOST_CATEGORIES
    kappas = _pair_kappas(ratings, 1, np.arange(given[0], given[-1] + 1) if whole else given)
    units = _raters_and_units(ratings)[1]
    if kappas:
        judged = len({rater for pair in kappas for rater in pair})
        yield RaterFigure("weighted_kappa", float(np.mean(list(kappas.values()))), judged, units)
    else:
        reason = "no two raters share units and differ in them"
        yield RaterFigure("weighted_kappa", None, 0, units, "too_few", reason)


def _raters_and_units(ratings: Ratings) -> tuple[int, int]:
    """The number of raters with a rating, and of units with two ratings or more."""
    rated = ~np.isnan(ratings)
    return int(rated.any(axis=1).sum()), int((rated.sum(axis=0) >= 2).sum())
