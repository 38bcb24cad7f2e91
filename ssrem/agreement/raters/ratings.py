"""Ratings of units by raters, as a table with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats, Labels, Numbers, Outcome, numbered

Ratings = Floats
"""Scores (raters, units); NaN where a rater did not rate a unit."""


@dataclass(frozen=True)
class Reliability:
    """value: at most 1, which is perfect agreement; 0 is chance. Over `ratings` ratings of `units` units, each rated
    twice or more. value is None unless outcome is 'ok'; reason says why in words."""

    coefficient: str
    value: float | None
    units: int
    ratings: int
    outcome: Outcome = "ok"
    reason: str = ""


def rating_table(raters: Labels, units: Labels, scores: Numbers) -> tuple[Ratings, list[str], list[str]]:
    """Table of ratings given one a row (n,), with the names of its raters and of its units, in sorted order.

    ValueError where lengths differ, a score is infinite, or a rater rated a unit twice.
    """
    values = np.asarray(scores, dtype=np.float64)
    rater_names, rater = numbered(raters, len(values), "raters")
    unit_names, unit = numbered(units, len(values), "units")
    cells = rater * max(1, len(unit_names)) + unit
    if len(np.unique(cells)) < len(cells):
        raise ValueError(
            f"{len(cells) - len(np.unique(cells))} ratings are second ones by one rater of one unit"
        )
    table = np.full((len(rater_names), len(unit_names)), np.nan)
    table[rater, unit] = values
    return checked(table), rater_names, unit_names


def checked(ratings: Any) -> Ratings:
    """As a table of floats. ValueError where it is not one, or holds an infinity."""
    table: Floats = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings of shape {table.shape} are no table of raters and units")
    if np.isinf(table).any():
        raise ValueError("a rating is infinite")
    return table


def categories_of(values: NDArray[np.float64], categories: Sequence[float] | None) -> Floats:
    """The categories in order: those given, or those seen. ValueError where a rating is none of them."""
    seen = np.unique(values[~np.isnan(values)])
    if categories is None:
        return seen
    scale = np.unique(np.asarray(categories, dtype=np.float64))
    if strangers := sorted(set(seen.tolist()) - set(scale.tolist())):
        raise ValueError(f"rating {strangers[0]:g} is none of the categories")
    return scale
