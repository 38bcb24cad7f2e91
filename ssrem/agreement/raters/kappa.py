"""Cohen's κ of two raters, weighted, and Fleiss' κ of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ssrem.agreement.inputs import Numbers, columns
from ssrem.agreement.raters.ratings import Reliability, categories_of, checked

Weights = Literal["none", "linear", "quadratic"]


def cohen_kappa(
    first: Numbers, second: Numbers, *, weights: Weights = "none", categories: Sequence[float] | None = None
) -> Reliability:
    """κ of two raters' ratings (n,) of the same units; NaN is missing, and a unit counts where both rated it.

    weights: disagreement grows with how many categories apart two ratings are (linear, Cohen 1968) or with its square;
    'none': any is as bad (Cohen 1960). categories: the scale, where not all of it was used; by default what was
    given. No value where there is no unit, or both gave one and the same rating throughout. ValueError where lengths
    differ, or a rating is infinite or no category.
    """
    name = f"cohen-kappa-{weights}"
    pairs, _ = columns(first, second)
    scale = categories_of(pairs, categories)
    n = len(pairs)
    if n == 0:
        return Reliability(name, None, 0, 0, "too_few", "no unit was rated by both")
    place = np.searchsorted(scale, pairs)
    steps = np.abs(np.arange(len(scale))[:, None] - np.arange(len(scale))[None, :]).astype(np.float64)
    apart = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    observed = float(apart[place[:, 0], place[:, 1]].mean())
    shares = [np.bincount(place[:, rater], minlength=len(scale)) / n for rater in (0, 1)]
    expected = float(shares[0] @ apart @ shares[1])
    if expected == 0:
        return Reliability(name, None, n, 2 * n, "constant", "both gave the same rating throughout")
    return Reliability(name, 1 - observed / expected, n, 2 * n)


def fleiss_kappa(ratings: Any) -> Reliability:
    """κ of ratings (raters, units), NaN for missing (Fleiss 1971); the raters of one unit need not be those of another.

    Units without a rating are left out; all others must have the same number, two at least: outcome 'uneven' where they
    have not, as Fleiss' κ is not defined then and Krippendorff's nominal α is. No value where all ratings are the same.
    ValueError where ratings are no table or infinite.
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
