"""Agreement among raters, of ratings that are a table (raters, units) with gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlate import (
    MIN_RESPONSES,
    Floats,
    Labels,
    Numbers,
    Outcome,
    columns,
    numbered,
    row_coefficients,
    unvarying,
)

Ratings = Floats
"""Scores (raters, units); NaN where a rater did not rate a unit."""

Scale = Literal["nominal", "ordinal", "interval"]
Weights = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True)
class Reliability:
    """A coefficient of agreement among raters, over `ratings` ratings of `units` units, each rated twice or more.

    value: at most 1, which is perfect agreement; 0 is chance; None unless outcome is 'ok'; reason says why in words."""

    coefficient: str
    value: float | None
    units: int
    ratings: int
    outcome: Outcome = "ok"
    reason: str = ""


def rating_table(raters: Labels, units: Labels, scores: Numbers) -> tuple[Ratings, list[str], list[str]]:
    """Table of ratings that come one a row (n,), with the names of its raters and of its units, in sorted order.

    ValueError where lengths differ, a score is infinite, or a rater rated a unit twice.
    """
    values = np.asarray(scores, dtype=np.float64)
    rater_names, rater = numbered(raters, len(values), "raters")
    unit_names, unit = numbered(units, len(values), "units")
    cells = rater * max(1, len(unit_names)) + unit
    if len(np.unique(cells)) < len(cells):
        raise ValueError(
            f"{len(cells) - len(np.unique(cells))} ratings repeat the rating of a unit by the same rater"
        )
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


def categories_of(values: NDArray[np.float64], categories: Sequence[float] | None) -> Floats:
    """The categories, ascending, by default the ratings that occur. ValueError where a rating is none of them."""
    seen = np.unique(values[~np.isnan(values)])
    if categories is None:
        return seen
    scale = np.unique(np.asarray(categories, dtype=np.float64))
    if unknown := sorted(set(seen.tolist()) - set(scale.tolist())):
        raise ValueError(f"rating {unknown[0]:g} is none of the categories")
    return scale


def krippendorff_alpha(ratings: Any, scale: Scale) -> Reliability:
    """Krippendorff's α of ratings (raters, units), NaN for missing: 1 − observed / expected disagreement (Krippendorff
    2011, "Computing Krippendorff's Alpha-Reliability").

    scale: how far apart two values are: nominal: equal or not; ordinal: by how many ratings lie between them; interval:
    by the square of their difference. Units with one rating say nothing of agreement and are left out. No value where
    no unit has two ratings, or all ratings are the same. ValueError if the ratings are not a table, or one is infinite.
    The package krippendorff gives the same values, with memory for units times the square of the distinct ratings.
    """
    table = checked(ratings)
    name = f"alpha-{scale}"
    pairable = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    units, size = pairable.shape[1], int((~np.isnan(pairable)).sum())
    if units == 0:
        return Reliability(name, None, 0, 0, "too_few", "no unit has two ratings")
    values = np.unique(pairable[~np.isnan(pairable)])
    if len(values) == 1:
        return Reliability(name, None, units, size, "constant", "all ratings are the same")
    counts = np.stack([(pairable == value).sum(axis=0) for value in values], axis=1).astype(np.float64)
    weight = 1 / (counts.sum(axis=1) - 1)
    coincidences = counts.T @ (counts * weight[:, None]) - np.diag(counts.T @ weight)
    totals = counts.sum(axis=0)
    distance = _squared_distances(values, totals, scale)
    observed = float((coincidences * distance).sum())
    expected = float(totals @ distance @ totals) / (size - 1)
    return Reliability(name, 1 - observed / expected, units, size)


def _squared_distances(values: Floats, totals: Floats, scale: Scale) -> Floats:
    """Squared distance of each value to each (v, v)."""
    if scale == "nominal":
        return 1.0 - np.eye(len(values))
    if scale == "ordinal":
        # The distance is the number of ratings between two values, with half of those of either value.
        middle = np.cumsum(totals) - totals / 2
        return np.asarray((middle[:, None] - middle[None, :]) ** 2)
    return np.asarray((values[:, None] - values[None, :]) ** 2)


def cohen_kappa(
    first: Numbers, second: Numbers, *, weights: Weights = "none", categories: Sequence[float] | None = None
) -> Reliability:
    """Cohen's κ of two raters' ratings (n,) of the same units; NaN is missing, and a unit counts where both rated it.

    weights: disagreement grows with how many categories apart two ratings are (linear, Cohen 1968) or with its square;
    'none': all disagreements count the same (Cohen 1960). categories: the scale, where not all of it was used; by
    default the ratings that occur. No value where there is no unit, or both gave the same rating throughout.
    ValueError where lengths differ, or a rating is infinite or no category.
    """
    name = f"cohen-kappa-{weights}"
    pairs, _ = columns(first, second)
    scale = categories_of(pairs, categories)
    n = len(pairs)
    if n == 0:
        return Reliability(name, None, 0, 0, "too_few", "no unit was rated by both")
    place = np.searchsorted(scale, pairs)
    steps = np.abs(np.arange(len(scale))[:, None] - np.arange(len(scale))[None, :]).astype(np.float64)
    disagreement = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    observed = float(disagreement[place[:, 0], place[:, 1]].mean())
    shares = [np.bincount(place[:, rater], minlength=len(scale)) / n for rater in (0, 1)]
    expected = float(shares[0] @ disagreement @ shares[1])
    if expected == 0:
        return Reliability(name, None, n, 2 * n, "constant", "both gave the same rating throughout")
    return Reliability(name, 1 - observed / expected, n, 2 * n)


def _pair_kappas(table: Ratings, least: int, **options: Any) -> dict[tuple[int, int], float]:
    """κ of each pair of raters, by their rows, that shares `least` units and has one; options: of `cohen_kappa`."""
    rated = (~np.isnan(table)).astype(np.float64)
    shared = rated @ rated.T  # hundreds of raters share units with few others
    pairs = (pair for pair in combinations(range(len(table)), 2) if shared[pair] >= least)
    kappas = {pair: cohen_kappa(table[pair[0]], table[pair[1]], **options).value for pair in pairs}
    return {pair: kappa for pair, kappa in kappas.items() if kappa is not None}


def fleiss_kappa(ratings: Any) -> Reliability:
    """Fleiss' κ of ratings (raters, units), NaN for missing (Fleiss 1971); units need not have the same raters.

    Units without a rating are left out; all others must have the same number, two at least: otherwise the outcome is
    'uneven', since Fleiss' κ is then not defined; Krippendorff's nominal α is. No value where all ratings are the same.
    ValueError if the ratings are not a table, or one is infinite.
    """
    table = checked(ratings)
    each = (~np.isnan(table)).sum(axis=0)
    table, each = table[:, each > 0], each[each > 0]
    units, size = len(each), int(each.sum())

    if units == 0 or each.max() < 2:
        return Reliability("fleiss-kappa", None, units, size, "too_few", "no unit has two ratings")
    if each.min() < each.max():
        uneven = f"units have {each.min()} to {each.max()} ratings; Krippendorff's alpha takes that"
        return Reliability("fleiss-kappa", None, units, size, "uneven", uneven)
    raters = int(each[0])
    values = categories_of(table, None)
    counts = np.stack([(table == value).sum(axis=0) for value in values], axis=1)
    agreement = float(((counts**2).sum(axis=1) - raters).mean()) / (raters * (raters - 1))
    chance = float(((counts.sum(axis=0) / size) ** 2).sum())
    if len(values) == 1:
        return Reliability("fleiss-kappa", None, units, size, "constant", "all ratings are the same")
    return Reliability("fleiss-kappa", (agreement - chance) / (1 - chance), units, size)


Correlation = Literal["pearson", "spearman"]


@dataclass(frozen=True)
class OneRater:
    """How one rater agrees with the mean of the others: mean correlation in [-1, 1], and that of the least and the most
    agreeing rater.

    raters: how many went into it, left_out: how many had too few units with others, or ratings that do not vary. The
    figures are None unless outcome is 'ok'; reason says why.
    """

    statistic: float | None
    lowest: float | None
    highest: float | None
    raters: int
    left_out: int
    outcome: Outcome = "ok"
    reason: str = ""


@dataclass(frozen=True)
class SplitHalf:
    """How two halves of the raters agree. half: their mean correlation; reliability: of the mean of all raters, by
    Spearman-Brown.

    attainable: its square root, the highest correlation that an evaluator can reach with ratings so noisy. Over `units`
    units and `repeats` splits, by `seed`. The figures are None unless outcome is 'ok' (half may be known alone).
    """

    half: float | None
    reliability: float | None
    attainable: float | None
    units: int
    repeats: int
    seed: int
    outcome: Outcome = "ok"
    reason: str = ""


def with_others(table: Ratings, rater: int) -> tuple[Floats, Floats]:
    """A rater's ratings and the mean of the others' for the units that both rated, (m,) each."""
    others = np.delete(table, rater, axis=0)
    rated = ~np.isnan(others)
    both = ~np.isnan(table[rater]) & rated.any(axis=0)
    mean = np.where(rated, others, 0.0).sum(axis=0)[both] / rated.sum(axis=0)[both]
    return table[rater][both], mean


def one_rater(ratings: Any, measure: Correlation = "spearman") -> OneRater:
    """How well one rater predicts the mean of the others, leaving out each in turn; ratings (raters, units), NaN for
    missing. Raters count alike, whatever they rated. An evaluator that reaches it is as good as one more rater.
    ValueError if the ratings are not a table, or one is infinite."""
    table = checked(ratings)
    coefficients = []
    for rater in range(len(table)):
        own, others = with_others(table, rater)
        if len(own) >= MIN_RESPONSES and not unvarying(own, others):
            coefficients.append(float(row_coefficients(measure)(own[None], others)[0]))
    used, left = len(coefficients), len(table) - len(coefficients)
    if not used:
        reason = f"no rater shares {MIN_RESPONSES} units with others and varies"
        return OneRater(None, None, None, 0, left, "too_few", reason)
    return OneRater(float(np.mean(coefficients)), min(coefficients), max(coefficients), used, left)


def split_half(
    ratings: Any, measure: Correlation = "spearman", *, repeats: int = 200, seed: int
) -> SplitHalf:
    """Correlation of the means of two random halves of each unit's ratings, and what it says of the mean of all.

    ratings (raters, units), NaN for missing. Halves are equal: an odd rating is left out. Spearman-Brown (both 1910)
    steps up from a half to all the ratings of a unit, on average k halves: k·r / (1 + (k − 1)·r). As units are split
    one by one, no rater need have rated several. ValueError if the ratings are not a table, one is infinite, or repeats
    is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; expected 1 or more")
    stacked = _stacked(checked(ratings))
    counts = (~np.isnan(stacked)).sum(axis=0)
    units = len(counts)

    result = SplitHalf(None, None, None, units, repeats, seed)
    if units < MIN_RESPONSES:
        few = f"{units} units with two ratings; {MIN_RESPONSES} are needed"
        return replace(result, outcome="too_few", reason=few)
    draw = np.random.default_rng(seed)
    size = counts // 2
    halves = np.empty((2, repeats, units))
    for repeat in range(repeats):
        keys = np.where(np.isnan(stacked), np.inf, draw.random(stacked.shape))
        place = np.argsort(np.argsort(keys, axis=0), axis=0)
        for half, chosen in enumerate((place < size, (place >= size) & (place < 2 * size))):
            halves[half, repeat] = np.where(chosen, stacked, 0.0).sum(axis=0) / size
    each = row_coefficients(measure)(halves[0], halves[1])
    each = each[~np.isnan(each)]
    if len(each) == 0:
        same = "the mean ratings of the units are all the same"
        return replace(result, outcome="constant", reason=same)
    r, k = float(each.mean()), float(counts.mean() / size.mean())
    if r <= 0:
        why = "the halves do not agree: there is no true score to reach"
        return replace(result, half=r, outcome="degenerate", reason=why)
    reliability = k * r / (1 + (k - 1) * r)
    return replace(result, half=r, reliability=reliability, attainable=sqrt(reliability))


def _stacked(table: Ratings) -> Floats:
    """The ratings of each unit with two or more, moved up (most ratings of a unit, units)."""
    counts = (~np.isnan(table)).sum(axis=0)
    order = np.argsort(np.isnan(table), axis=0, kind="stable")
    moved = np.take_along_axis(table, order, axis=0)[: counts.max(initial=0)]
    return moved[:, counts >= 2]


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
    for pair, kappa in _pair_kappas(table, MIN_SHARED, weights=weights, categories=scale).items():
        for rater in pair:
            kappas[raters[rater]].append(kappa)
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
    values = _pair_kappas(ratings, 1, weights="quadratic", categories=categories_of(ratings, None).tolist())
    if not values:
        reason = "no two raters share units and differ in them"
        return RaterFigure("weighted_kappa", None, 0, units, "too_few", reason)
    judged = len({rater for pair in values for rater in pair})
    return RaterFigure("weighted_kappa", float(np.mean(list(values.values()))), judged, units)


def _raters_and_units(ratings: Ratings) -> tuple[int, int]:
    """The number of raters with a rating, and of units with two or more."""
    rated = ~np.isnan(ratings)
    return int(rated.any(axis=1).sum()), int((rated.sum(axis=0) >= 2).sum())
