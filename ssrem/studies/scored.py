"""Studies of given scores: how they depend on length, system and the order of two responses, and are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ssrem.agreement.correlate import Integers, Outcome, spearman
from ssrem.samples import Floats
from ssrem.studies.estimates import Estimate, Flags, over_contexts, share, weighted_mean
from ssrem.studies.study import Finding, of_correlation, study

UNSCALED = "sd_unscaled"
"""The measure whose values are in the units of the scores, and not within [-1, 1]."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class ScoredSet:
    """Responses (n) with a score, a human score and a number of words each, none missing."""

    scores: Floats
    human: Floats
    words: Floats


@dataclass(frozen=True)
class RankedSet:
    """Responses (n) with a score, a human score and a system each, None where it is not known. clusters: the context of
    each response, as a number; own: systems of the evaluator's own model family."""

    scores: Floats
    human: Floats
    systems: Sequence[str | None]
    clusters: Integers
    own: Sequence[str] = ()


@dataclass(frozen=True)
class ComparedSet:
    """Responses (n) that were compared with their reference in both orders. preferred (n, 2): for each order, how much
    better the evaluator finds the text that comes first, in steps of the scale; NaN for no answer. clusters: the
    context of each response, as a number."""

    preferred: Floats
    clusters: Integers


@study(
    "Length of the response",
    "Spearman’s ρ with the number of words, and agreement with people before and after length is held fixed.",
)
def length(data: ScoredSet, seed: int) -> list[Finding]:
    """Spearman's ρ with the response's number of words, of scores and of human scores; and agreement before and after
    control for length: the partial rank correlation (Kendall and Stuart 1973, 27.5)."""
    own, people = spearman(data.scores, data.words), spearman(data.human, data.words)
    agreement = spearman(data.scores, data.human)
    r, a, b, n = agreement.statistic, own.statistic, people.statistic, agreement.n
    fixed = "agreement, length held fixed"
    if r is None:
        partial = Finding(fixed, "spearman", None, n, agreement.outcome)
    elif a is None or b is None:  # all responses are equally long: nothing to control for
        partial = Finding(fixed, "spearman", r, n)
    elif max(abs(a), abs(b)) >= 1:  # length alone gives one of the two: nothing is left to compare
        partial = Finding(fixed, "spearman", None, n, "constant")
    else:
        value = (r - a * b) / sqrt((1 - a * a) * (1 - b * b))
        partial = Finding(fixed, "spearman", max(-1.0, min(1.0, value)), n)
    return [
        of_correlation("scores and length", own),
        of_correlation("human scores and length", people),
        of_correlation("agreement", agreement),
        partial,
    ]


@study(
    "Distribution of scores",
    "Standard deviation (sd) and quantiles (q) of scores and of human scores, each brought to [0, 1]; sd_unscaled is "
    "the standard deviation in their own units.",
    "score, brought to [0, 1]",
)
def distribution(data: ScoredSet, seed: int) -> list[Finding]:
    """Standard deviation and quantiles of scores and of human scores, each scaled to [0, 1] by its range; and their
    standard deviation in their own units. That of Zhao et al. 2020 (Tables 1 and 3) is of scores from 1 to 5, and of
    human scores without outliers."""
    findings = []
    for whose, values in (("scores", data.scores), ("human scores", data.human)):
        n = len(values)
        if n < 2:
            findings.append(Finding(whose, "sd", None, n, "too_few"))
        elif np.ptp(values) == 0:
            findings.append(Finding(whose, "sd", None, n, "constant"))
        else:
            unit = (values - values.min()) / np.ptp(values)
            findings.append(Finding(whose, "sd", float(unit.std(ddof=1)), n))
            findings.append(Finding(whose, UNSCALED, float(values.std(ddof=1)), n))
            findings += [Finding(whose, f"q{q:g}", float(np.quantile(unit, q)), n) for q in QUANTILES]
    return findings


@study(
    "Systems, and the evaluator's own model family",
    "How many percentile points higher than people it ranks a system's responses, with the 95% interval. An evaluator "
    "that agrees less with people ranks all systems nearer to the middle: weak ones higher and strong ones lower, "
    "without any preference.",
    "points higher",
)
def systems(data: RankedSet, seed: int) -> list[Finding]:
    """For each known system, the mean over its responses of the percentile by score minus that by human score, in
    [-100, 100]; and if there are systems of the `own` family, their mean minus that of all other known systems."""
    from scipy.stats import rankdata

    named = np.array([system or "" for system in data.systems], dtype=object)
    ranks = rankdata([data.scores, data.human], axis=1)
    higher = 100 * (ranks[0] - ranks[1]) / len(named)
    estimates = {}
    for name in sorted(set(named) - {""}):
        of = named == name
        estimates[str(name)] = over_contexts(weighted_mean(higher, of), data.clusters, of)
    if data.own:
        own = np.isin(named, list(data.own))
        others = (named != "") & ~own
        first, second = weighted_mean(higher, own), weighted_mean(higher, others)
        estimates["own family, above the others"] = over_contexts(
            lambda weights: first(weights) - second(weights), data.clusters, own | others
        )
    return [_estimated(name, "points", one) for name, one in estimates.items()]


@study("Position", "Whether it matters which of two responses comes first.", "steps, and share")
def position(data: ComparedSet, seed: int) -> list[Finding]:
    """How far the evaluator leans to the response that comes first, on average, in steps of its scale; and the share of
    comparisons, in [0, 1], in which it prefers the same place in both orders. Empty if none has both answers."""
    both: Flags = ~np.isnan(data.preferred.sum(axis=1))
    first, second = np.nan_to_num(data.preferred).T
    lean = over_contexts(weighted_mean((first + second) / 2, both), data.clusters, both)
    swayed = share(both & (first * second > 0), both, data.clusters)
    if lean.value is None or swayed.value is None:
        return []
    return [
        _estimated("steps towards the first", "steps", lean),
        _estimated("swayed by the order", "share", swayed),
    ]


def _estimated(condition: str, measure: str, one: Estimate) -> Finding:
    outcome: Outcome = "ok" if one.value is not None else "too_few"
    return Finding(condition, measure, one.value, one.n, outcome, one.low, one.high)
