"""An evaluator that passes or fails responses: its error rates, the share that passes corrected for them, threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssrem.agreement import share_interval
from ssrem.agreement.bootstrap import MIN_CLUSTERS, Interval, resampled, with_ends
from ssrem.agreement.coefficients import Weighted
from ssrem.agreement.figures import CONFIDENCE, RESAMPLES, SEED
from ssrem.agreement.inputs import Floats, Integers
from ssrem.agreement.weighted_levels import ratio
from ssrem.validation.labels import Flags

FEWEST_PASSING = 5
"""Responses of the calibrating half that a threshold for a precision has to pass: of fewer the precision is chance."""


@dataclass(frozen=True)
class Estimate:
    """value with its 95% interval low to high, over n responses; None where there is none, and reason says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Threshold:
    """Responses that score `score` or more pass; chosen on the calibrating half for `aim`, tested on the other.

    calibrated: the precision on the half that chose it. Of the other half: tpr and fpr, the shares that pass of the
    responses that people pass and of those that people fail; precision, the share that people pass of those that the
    evaluator passes. score is None where no threshold reaches the aim, and reason says why.
    """

    aim: str
    score: float | None
    calibrated: float | None = None
    tpr: Estimate = Estimate(None)
    fpr: Estimate = Estimate(None)
    precision: Estimate = Estimate(None)
    reason: str = ""


@dataclass(frozen=True)
class PassShare:
    """Share of a set of responses that pass: by the evaluator alone; corrected for its error rates; and by people,
    where they labelled the set."""

    of: str
    evaluator: Estimate
    corrected: Estimate
    people: Estimate


def rogan_gladen(apparent: Floats, tpr: Floats, fpr: Floats) -> Floats:
    """True share of passing responses from the apparent one and the error rates of what counts them: (apparent − fpr) /
    (tpr − fpr), by chance outside [0, 1]; NaN where tpr is not above fpr (Rogan and Gladen 1978, "Estimating prevalence
    from the results of a screening test", where tpr is the sensitivity and 1 − fpr the specificity)."""
    above = tpr - fpr
    return ratio(apparent - fpr, np.where(above > 0, above, 0.0))


def share(hits: Flags, of: Flags, clusters: Integers) -> Estimate:
    """Share of hits among the responses of (n,), with its interval over contexts, clusters (n,).

    Where every resample gives the same share, as where it is 0 or 1, or where there are few contexts, the interval is
    Wilson's (1927), which takes the responses as independent.
    """
    n = int(of.sum())
    if not n:
        return Estimate(None, reason="no response to count")
    estimate = over_contexts(_share(hits, of), clusters, of)
    if estimate.low is None and estimate.value is not None:
        return Estimate(estimate.value, *share_interval(estimate.value, n), n)
    return estimate


def over_contexts(statistic: Weighted, clusters: Integers, of: Flags) -> Estimate:
    """A statistic of weights (r, n) with its BCa interval from resampled contexts. clusters: the context of each
    response (n,), as a number; of: the responses (n,) on which it rests."""
    value = float(statistic(np.ones((1, len(of))))[0])
    n = int(of.sum())
    if np.isnan(value):
        return Estimate(None, n=n, reason="it is not defined")
    codes = np.unique(clusters[of], return_inverse=True)[1]
    count = int(codes.max(initial=-1)) + 1
    if count < MIN_CLUSTERS:
        return Estimate(value, n=n, reason=f"{count} contexts to resample; {MIN_CLUSTERS} are needed")

    def among(weights: Floats) -> Floats:
        whole = np.zeros((len(weights), len(of)))
        whole[:, of] = weights
        return statistic(whole)

    interval = Interval(value, CONFIDENCE, count, RESAMPLES, SEED)
    interval = with_ends(interval, *resampled(among, codes, RESAMPLES, SEED))
    return Estimate(value, interval.low, interval.high, n, interval.reason)


def corrected_share(passing: Flags, passed: Flags, judged: Flags, of: Flags, clusters: Integers) -> Estimate:
    """`rogan_gladen` of the responses `of`, with the rates of the responses `judged`; its interval is over the contexts
    of both. None where the interval of tpr − fpr reaches down to 0, or there is none: the share may then be anything.
    passing: by the evaluator; passed: by people, only looked at where judged; all (n,)."""
    tpr, fpr = _share(passing, judged & passed), _share(passing, judged & ~passed)
    apparent = _share(passing, of)
    gap = over_contexts(lambda weights: tpr(weights) - fpr(weights), clusters, judged)
    if why := _unusable(gap):
        return Estimate(None, n=int(of.sum()), reason=f"the labels cannot correct it: {why}")

    def statistic(weights: Floats) -> Floats:
        return rogan_gladen(apparent(weights), tpr(weights), fpr(weights))

    estimate = over_contexts(statistic, clusters, judged | of)
    value, low, high = (_within(end) for end in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, int(of.sum()), estimate.reason)


def _unusable(gap: Estimate) -> str:
    """Why tpr − fpr corrects no share; empty if it does. A gap of 1, of labels without an error, has no interval."""
    if gap.value is None or gap.value <= 0:
        return "the evaluator passes what people fail as often as what they pass"
    if gap.low is None:
        return "" if gap.value == 1 else f"how far tpr is above fpr has no interval ({gap.reason})"
    if gap.low <= 0:
        above = f"tpr is above fpr by {gap.value:.3f} only, with an interval from {gap.low:.3f}"
        return f"where the rates are measured, {above}"
    return ""


def _within(share: float | None) -> float | None:
    return None if share is None else min(max(share, 0.0), 1.0)


def best_threshold(scores: Floats, passed: Flags) -> float | None:
    """The score from which responses pass so that tpr − fpr is highest (Youden 1950), the lowest of equally good ones;
    None where no threshold is better than passing all. scores, passed: (n,), finite, of both classes."""
    candidates, tpr, fpr, _ = _at_thresholds(scores, passed)
    gain = np.round(tpr - fpr, 12)
    return float(candidates[int(np.argmax(gain))]) if gain.max() > 0 else None


def threshold_for(precision: float, scores: Floats, passed: Flags) -> tuple[float | None, float]:
    """The lowest threshold whose precision is at least `precision`, None where there is none; and the highest precision
    of any threshold, in [0, 1]. Thresholds that pass fewer than `FEWEST_PASSING` responses do not count. scores,
    passed: (n,), finite."""
    candidates, *_, precisions = _at_thresholds(scores, passed)
    counts = len(scores) - np.searchsorted(np.sort(scores), candidates)
    usable = counts >= FEWEST_PASSING
    highest = float(precisions[usable].max(initial=0.0))
    reached = np.flatnonzero(usable & (precisions >= precision))
    return (float(candidates[reached[0]]) if len(reached) else None), highest


def tested(
    aim: str, score: float, scores: Floats, passed: Flags, calibrating: Flags, clusters: Integers
) -> Threshold:
    """A threshold that the calibrating half chose, with its rates on the other half. All arrays (n,), finite."""
    passing = scores >= score
    own = calibrating & passing
    return Threshold(
        aim,
        score,
        float(passed[own].mean()) if own.any() else None,
        tpr=share(passing, ~calibrating & passed, clusters),
        fpr=share(passing, ~calibrating & ~passed, clusters),
        precision=share(passed, ~calibrating & passing, clusters),
    )


def _at_thresholds(scores: Floats, passed: Flags) -> tuple[Floats, Floats, Floats, Floats]:
    """The distinct scores, ascending, and tpr, fpr and precision where responses pass from each."""
    candidates, place = np.unique(scores, return_inverse=True)
    passing_good, passing_bad = (
        np.cumsum(np.bincount(place[of], minlength=len(candidates))[::-1])[::-1] for of in (passed, ~passed)
    )
    good, bad = max(int(passed.sum()), 1), max(int((~passed).sum()), 1)
    return candidates, passing_good / good, passing_bad / bad, passing_good / (passing_good + passing_bad)


def _share(hits: Flags, of: Flags) -> Weighted:
    hit, all_of = (hits & of).astype(np.float64), of.astype(np.float64)
    return lambda weights: ratio(weights @ hit, weights @ all_of)
