"""Noise ceiling: how well people predict people, so that an evaluator's correlation can be read."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from ssrem.agreement.inputs import Floats, Outcome, unvarying
from ssrem.agreement.raters.filters import with_others
from ssrem.agreement.raters.ratings import Ratings, checked
from ssrem.agreement.rows import rows
from ssrem.agreement.segment import TOO_FEW

Correlation = Literal["pearson", "spearman"]


@dataclass(frozen=True)
class OneRater:
    """statistic: mean correlation in [-1, 1] of a rater with the mean of the others; lowest and highest of a rater.

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
    """half: mean correlation of two halves of the raters; reliability: of the mean of all of them, by Spearman-Brown.

    attainable: its square root, the correlation that an evaluator of people's true score would reach. Over `units`
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


def one_rater(ratings: Any, measure: Correlation = "spearman") -> OneRater:
    """How well one rater predicts the mean of the others, leaving out each in turn; ratings (raters, units), NaN for
    missing. Raters count alike, whatever they rated. An evaluator that reaches it is as good as one more rater.
    ValueError where ratings are no table or infinite."""
    table = checked(ratings)
    found = []
    for rater in range(len(table)):
        own, others = with_others(table, rater)
        if len(own) >= TOO_FEW and not unvarying(own, others):
            found.append(float(rows(measure)(own[None], others)[0]))
    left = len(table) - len(found)
    if not found:
        reason = f"no rater shares {TOO_FEW} units with others and varies"
        return OneRater(None, None, None, 0, left, "too_few", reason)
    return OneRater(float(np.mean(found)), min(found), max(found), len(found), left)


def split_half(
    ratings: Any, measure: Correlation = "spearman", *, repeats: int = 200, seed: int
) -> SplitHalf:
    """Correlation of the means of two random halves of each unit's ratings, and what it says of the mean of all.

    ratings (raters, units), NaN for missing. Halves are equal: an odd rating is left out. Spearman-Brown (both 1910)
    steps up from a half to all the ratings of a unit, on average k halves: k·r / (1 + (k − 1)·r). As units are split
    one by one, no rater need have rated several. ValueError where ratings are no table or infinite, or repeats below 1.
    """
    if repeats < 1:
        raise ValueError(f"{repeats} splits are none")
    seats = _seats(checked(ratings))
    given = (~np.isnan(seats)).sum(axis=0)
    units = len(given)

    def without(outcome: Outcome, reason: str, half: float | None = None) -> SplitHalf:
        return SplitHalf(half, None, None, units, repeats, seed, outcome, reason)

    if units < TOO_FEW:
        return without("too_few", f"{units} units with two ratings; {TOO_FEW} are needed")
    draw = np.random.default_rng(seed)
    size = given // 2
    halves = np.empty((2, repeats, units))
    for repeat in range(repeats):
        keys = np.where(np.isnan(seats), np.inf, draw.random(seats.shape))
        place = np.argsort(np.argsort(keys, axis=0), axis=0)
        for half, chosen in enumerate((place < size, (place >= size) & (place < 2 * size))):
            halves[half, repeat] = np.where(chosen, seats, 0.0).sum(axis=0) / size
    each = rows(measure)(halves[0], halves[1])
    each = each[~np.isnan(each)]
    if len(each) == 0:
        return without("constant", "the mean ratings of the units are all the same")
    r, k = float(each.mean()), float(given.mean() / size.mean())
    if r <= 0:
        return without("degenerate", "the halves do not agree: there is no true score to reach", r)
    reliability = k * r / (1 + (k - 1) * r)
    return SplitHalf(r, reliability, sqrt(reliability), units, repeats, seed)


def _seats(table: Ratings) -> Floats:
    """The ratings of each unit with two or more, moved up (most ratings of a unit, units)."""
    given = (~np.isnan(table)).sum(axis=0)
    order = np.argsort(np.isnan(table), axis=0, kind="stable")
    moved = np.take_along_axis(table, order, axis=0)[: given.max(initial=0)]
    return moved[:, given >= 2]
