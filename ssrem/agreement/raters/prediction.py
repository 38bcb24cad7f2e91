"""How well raters predict raters: one rater the mean of the others, and half of the ratings the other half.

An evaluator's correlation with human scores is read beside these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np

from ssrem.agreement.coefficients import row_coefficients
from ssrem.agreement.inputs import MIN_RESPONSES, Floats, Outcome, unvarying
from ssrem.agreement.raters.reliability import Ratings, checked

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
