"""How far raters agree beyond chance: Krippendorff's α, Cohen's and Fleiss' κ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats, Labels, Numbers, Outcome, columns, numbered

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
