"""Krippendorff's α (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability")."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ssrem.agreement.inputs import Floats
from ssrem.agreement.raters.ratings import Reliability, checked

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Any, scale: Scale) -> Reliability:
    """α of ratings (raters, units), NaN for missing: 1 − observed / expected disagreement.

    scale: how far apart two values are: nominal: equal or not; ordinal: by how many ratings lie between them; interval:
    by the square of their difference. Units with one rating say nothing of agreement and are left out. No value where
    no unit has two ratings, or all ratings are the same. ValueError where ratings are no table or infinite.
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
    apart = _apart(values, totals, scale)
    observed = float((coincidences * apart).sum())
    expected = float(totals @ apart @ totals) / (size - 1)
    return Reliability(name, 1 - observed / expected, units, size)


def _apart(values: Floats, totals: Floats, scale: Scale) -> Floats:
    """Squared distance of each value to each (v, v)."""
    if scale == "nominal":
        return 1.0 - np.eye(len(values))
    if scale == "ordinal":
        middle = np.cumsum(totals) - totals / 2  # what lies between c and k, with half of either
        return np.asarray((middle[:, None] - middle[None, :]) ** 2)
    return np.asarray((values[:, None] - values[None, :]) ** 2)
