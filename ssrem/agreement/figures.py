"""Every figure of agreement that is published of one evaluator's score and one human score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ssrem.agreement.bootstrap import Interval, agreement_interval
from ssrem.agreement.correlation import CORRELATIONS
from ssrem.agreement.inputs import (
    MEASURES,
    Floats,
    Grouping,
    Level,
    Measure,
    Outcome,
    Responses,
    Sides,
    SystemMeasure,
    View,
)
from ssrem.agreement.levels import agreement_at
from ssrem.agreement.significance import against_chance

RESAMPLES = 1000
SEED = 0
CONFIDENCE = 0.95

SYSTEM_MEASURES: tuple[SystemMeasure, ...] = (*MEASURES, "soft_accuracy")
LEVELS: tuple[Level, ...] = ("segment", "system")
GROUPINGS: tuple[Grouping, ...] = ("pooled", "system", "context")


@dataclass(frozen=True)
class Figure:
    """A statistic and what it is based on. resamples, seed: of the bootstrap behind low and high, or of the
    permutations of soft accuracy; None where nothing was drawn. groups: number of groups averaged, or of systems.
    statistic is None unless outcome is 'ok'; reason says why, or, where outcome is 'ok', why there is no interval."""

    level: Level | Literal["conversation"]
    grouping: Grouping
    measure: SystemMeasure
    statistic: float | None
    p: float | None
    sides: Sides
    low: float | None
    high: float | None
    confidence: float | None
    n: int
    missing: int
    excluded: int
    groups: int
    epsilon: float | None = None
    forced: bool = False
    resamples: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""
    p_permuted: float | None = None
    """p of no agreement by `against_chance`, at segment level where permutations were drawn."""


def figures(
    responses: Responses,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    slow: bool = True,
    force: bool = False,
    permutations: int = 0,
) -> Iterator[Figure]:
    """All figures: at segment level pooled, by system (where one is known) and by context; at system level.

    force: compute the system level of too few systems too; its figures then have `forced`.
    slow: also compute the intervals of Kendall and accuracy, pooled and by system, which take most of the time.
    permutations: of the test behind p_permuted, for correlations at segment level; 0 for no test.
    """
    known = len(responses.with_systems().scores) > 0
    for grouping in (one for one in GROUPINGS if known or one != "system"):
        for measure in MEASURES:
            fast = grouping == "context" or measure in ("pearson", "spearman")
            drawn = resamples if slow or fast else None
            one = figure(responses, View(measure, "segment", grouping), resamples=drawn, seed=seed)
            if permutations and measure != "accuracy" and one.outcome == "ok":
                one = replace(one, p_permuted=_p_permuted(responses, measure, grouping, permutations, seed))
            yield one
    for of_systems in SYSTEM_MEASURES:
        yield figure(responses, View(of_systems, "system", force=force), resamples=resamples, seed=seed)


def _p_permuted(
    responses: Responses, measure: Measure, grouping: Grouping, permutations: int, seed: int
) -> float | None:
    used = responses.with_systems() if grouping == "system" else responses
    groups = {"pooled": None, "system": used.systems, "context": used.contexts}[grouping]
    return against_chance(
        used.scores, used.human, measure=measure, groups=groups, permutations=permutations, seed=seed
    ).p


def conversation_figures(scores: Floats, ratings: Floats, *, excluded: int) -> Iterator[Figure]:
    """Correlations of the mean scores of conversations with one rating of each (n,), both finite.

    Conversations are independent, so the intervals are analytic (see `correlation`) and nothing is resampled.
    """
    reasons = {
        "constant": "the scores, or the ratings, are all the same",
        "too_few": "3 conversations are needed",
    }
    for measure, correlate in CORRELATIONS.items():
        one = correlate(scores, ratings)
        yield Figure(
            "conversation",
            "pooled",
            measure,
            one.statistic,
            one.p,
            "two-sided",
            one.low,
            one.high,
            confidence=None if one.low is None else CONFIDENCE,
            n=one.n,
            missing=0,
            excluded=excluded,
            groups=1,
            outcome=one.outcome,
            reason=reasons.get(one.outcome, ""),
        )


def figure(responses: Responses, view: View, *, resamples: int | None, seed: int | None) -> Figure:
    """One figure, with its interval unless resamples is None. ValueError for a measure that the level has not."""
    if view.level == "system" or view.grouping == "system":
        responses = responses.with_systems()
    agreement = agreement_at(responses, view, permutations=resamples or RESAMPLES, seed=seed or 0)
    ends: Interval | None = None
    if resamples is not None and agreement.statistic is not None and view.measure != "soft_accuracy":
        ends = agreement_interval(
            responses,
            view,
            confidence=CONFIDENCE,
            resamples=resamples,
            seed=seed or 0,
            agreement=agreement,
        )
    return Figure(
        view.level,
        view.grouping,
        view.measure,
        agreement.statistic,
        agreement.p,
        agreement.sides,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        confidence=CONFIDENCE if ends and ends.low is not None else None,
        n=agreement.n,
        missing=agreement.missing,
        excluded=responses.excluded,
        groups=agreement.groups,
        epsilon=agreement.epsilon,
        forced=agreement.forced,
        resamples=ends.resamples if ends else agreement.permutations,
        seed=ends.seed if ends else agreement.seed,
        outcome=agreement.outcome,
        reason=agreement.reason or (ends.reason if ends else ""),
    )
