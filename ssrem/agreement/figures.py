"""Every figure of agreement that is published of one evaluator's score and one human score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ssrem.agreement.correlation import CORRELATIONS
from ssrem.agreement.inputs import (
    MEASURES,
    Floats,
    Grouping,
    Level,
    Outcome,
    Sides,
    SystemMeasure,
)
from ssrem.agreement.intervals.bootstrap import Interval, agreement_at, agreement_interval
from ssrem.agreement.system import system_level

RESAMPLES = 1000
SEED = 0
CONFIDENCE = 0.95

SYSTEM_MEASURES: tuple[SystemMeasure, ...] = (*MEASURES, "soft_accuracy")
LEVELS: tuple[Level, ...] = ("segment", "system")
GROUPINGS: tuple[Grouping, ...] = ("pooled", "system", "context")


@dataclass(frozen=True)
class Responses:
    """Scores and human scores (n,), NaN for missing, with each response's context and system (None: not known).

    excluded: how many more responses with a human score there are that are not to be compared, such as ground truth.
    """

    scores: Floats
    human: Floats
    contexts: Sequence[str]
    systems: Sequence[str | None]
    excluded: int = 0

    def with_systems(self) -> Responses:
        """Those whose system is known."""
        at = [number for number, system in enumerate(self.systems) if system is not None]
        return Responses(
            self.scores[at],
            self.human[at],
            [self.contexts[n] for n in at],
            [self.systems[n] for n in at],
            self.excluded,
        )


@dataclass(frozen=True)
class Figure:
    """A statistic with what it rests on. `resamples` drawn by `seed` gave low and high (soft accuracy: are its
    permutations); None where nothing was drawn. groups: groups averaged, or systems. statistic is None unless outcome
    is 'ok'; reason says why, or, where outcome is 'ok', why there is no interval."""

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
    epsilon: float | None
    forced: bool
    resamples: int | None
    seed: int | None
    outcome: Outcome
    reason: str


def figures(
    responses: Responses,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    slow: bool = True,
    force: bool = False,
) -> Iterator[Figure]:
    """All figures: at segment level pooled, by system (where one is known) and by context; at system level.

    force: the system level of too few systems too, which its figures then say.
    slow: with intervals of the pooled Kendall and accuracy too, whose time grows with the square of the responses.
    """
    groupings = [g for g in GROUPINGS if g != "system" or any(s is not None for s in responses.systems)]
    for grouping in groupings:
        for measure in MEASURES:
            fast = grouping == "context" or measure in ("pearson", "spearman")
            drawn = resamples if slow or fast else None
            yield figure(responses, "segment", grouping, measure, resamples=drawn, seed=seed)
    for of_systems in SYSTEM_MEASURES:
        yield figure(responses, "system", "pooled", of_systems, resamples=resamples, seed=seed, force=force)


def conversation_figures(scores: Floats, ratings: Floats, *, excluded: int) -> Iterator[Figure]:
    """Correlations of the mean scores of conversations with one rating of each (n,), both finite.

    Conversations are independent, so the intervals are analytic (see `correlation`) and nothing is resampled.
    """
    reasons = {
        "constant": "the scores, or the ratings, are all the same",
        "too_few": "3 conversations are needed",
    }
    for measure, correlate in CORRELATIONS.items():
        correlation = correlate(scores, ratings)
        yield Figure(
            "conversation",
            "pooled",
            measure,
            correlation.statistic,
            correlation.p,
            "two-sided",
            correlation.low,
            correlation.high,
            confidence=None if correlation.low is None else CONFIDENCE,
            n=correlation.n,
            missing=0,
            excluded=excluded,
            groups=1,
            epsilon=None,
            forced=False,
            resamples=None,
            seed=None,
            outcome=correlation.outcome,
            reason=reasons.get(correlation.outcome, ""),
        )


def figure(
    responses: Responses,
    level: Level,
    grouping: Grouping,
    measure: SystemMeasure,
    *,
    resamples: int | None,
    seed: int | None,
    force: bool = False,
) -> Figure:
    """One figure, with its interval unless resamples is None. ValueError for a measure that the level has not."""
    if level == "system" or grouping == "system":
        responses = responses.with_systems()
    x, y, contexts = responses.scores, responses.human, responses.contexts
    systems = responses.systems if level == "system" or grouping == "system" else None
    ends: Interval | None = None
    if measure == "soft_accuracy":
        if level == "segment" or systems is None:
            raise ValueError("soft accuracy compares systems: it has no segment level")
        permutations, force_seed = resamples or RESAMPLES, seed or 0
        agreement = system_level(
            x,
            y,
            systems,
            measure=measure,
            contexts=contexts,
            force=force,
            permutations=permutations,
            seed=force_seed,
        )
    else:
        agreement = agreement_at(
            x, y, contexts, systems, measure=measure, level=level, grouping=grouping, force=force
        )
        if resamples is not None and agreement.statistic is not None:
            ends = agreement_interval(
                x,
                y,
                contexts,
                measure=measure,
                level=level,
                grouping=grouping,
                systems=systems,
                confidence=CONFIDENCE,
                resamples=resamples,
                seed=seed or 0,
                agreement=agreement,
            )
    has_ends = ends is not None and ends.low is not None
    return Figure(
        level,
        grouping,
        measure,
        agreement.statistic,
        agreement.p,
        agreement.sides,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        confidence=CONFIDENCE if has_ends else None,
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
