"""Every figure of agreement that is published of one evaluator's score and one human score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ssrem.agreement.comparison.difference import Level
from ssrem.agreement.inputs import MEASURES, Floats, Outcome, Sides
from ssrem.agreement.intervals.bootstrap import Interval, segment_interval, system_interval
from ssrem.agreement.segment import Grouping, segment_level
from ssrem.agreement.system import SystemMeasure, system_level

RESAMPLES = 1000
SEED = 0
CONFIDENCE = 0.95

SYSTEM_MEASURES: tuple[SystemMeasure, ...] = (*MEASURES, "soft_accuracy")
LEVELS: tuple[Level, ...] = ("segment", "system")
GROUPINGS: tuple[Grouping, ...] = ("pooled", "system", "context")


@dataclass(frozen=True)
class Responses:
    """Scores and human scores (n,), NaN for missing, with each response's context and system (None: not known)."""

    scores: Floats
    human: Floats
    contexts: Sequence[str]
    systems: Sequence[str | None]

    def with_systems(self) -> Responses:
        """Those whose system is known."""
        at = [number for number, system in enumerate(self.systems) if system is not None]
        return Responses(
            self.scores[at], self.human[at], [self.contexts[n] for n in at], [self.systems[n] for n in at]
        )


@dataclass(frozen=True)
class Figure:
    """A statistic with what it rests on. `resamples` drawn by `seed` gave low and high (soft accuracy: are its
    permutations); None where nothing was drawn. groups: groups averaged, or systems. statistic is None unless outcome
    is 'ok'; reason says why, or, where outcome is 'ok', why there is no interval."""

    level: Level
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
            drawn = resamples if slow or _fast("segment", grouping, measure) else None
            yield figure(responses, "segment", grouping, measure, resamples=drawn, seed=seed)
    for of_systems in SYSTEM_MEASURES:
        yield figure(responses, "system", "pooled", of_systems, resamples=resamples, seed=seed, force=force)


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
    if level == "system":
        return _system(responses.with_systems(), measure, resamples, seed or 0, force)
    if measure == "soft_accuracy":
        raise ValueError("soft accuracy compares systems: it has no segment level")
    if grouping == "system":
        responses = responses.with_systems()
    x, y, systems = responses.scores, responses.human, responses.systems
    groups = {"pooled": None, "system": systems, "context": responses.contexts}[grouping]
    found = segment_level(x, y, measure=measure, grouping=grouping, groups=groups)
    ends = None
    if resamples is not None and found.statistic is not None:
        ends = segment_interval(
            x,
            y,
            responses.contexts,
            measure=measure,
            grouping=grouping,
            systems=systems if grouping == "system" else None,
            confidence=CONFIDENCE,
            resamples=resamples,
            seed=seed or 0,
        )
    return Figure(
        level,
        grouping,
        measure,
        found.statistic,
        found.p,
        found.sides,
        *_ends(ends),
        found.n,
        found.missing,
        found.groups,
        found.epsilon,
        False,
        None if ends is None else ends.resamples,
        None if ends is None else ends.seed,
        found.outcome,
        found.reason or (ends.reason if ends else ""),
    )


def _fast(level: Level, grouping: Grouping, measure: SystemMeasure) -> bool:
    return level == "system" or grouping == "context" or measure in ("pearson", "spearman")


def _system(
    responses: Responses, measure: SystemMeasure, resamples: int | None, seed: int, force: bool
) -> Figure:
    x, y, systems = responses.scores, responses.human, responses.systems
    found = system_level(
        x,
        y,
        systems,
        measure=measure,
        contexts=responses.contexts,
        force=force,
        permutations=resamples or RESAMPLES,
        seed=seed,
    )
    ends = None
    if measure != "soft_accuracy" and resamples is not None and found.statistic is not None:
        ends = system_interval(
            x,
            y,
            systems,
            responses.contexts,
            measure=measure,
            force=force,
            confidence=CONFIDENCE,
            resamples=resamples,
            seed=seed,
        )
    drawn = (ends.resamples, ends.seed) if ends else (found.permutations, found.seed)
    return Figure(
        "system",
        "pooled",
        measure,
        found.statistic,
        found.p,
        found.sides,
        *_ends(ends),
        found.n,
        found.missing,
        found.systems,
        None,
        found.forced,
        *drawn,
        found.outcome,
        found.reason or (ends.reason if ends else ""),
    )


def _ends(ends: Interval | None) -> tuple[float | None, float | None, float | None]:
    if ends is None or ends.low is None:
        return None, None, None
    return ends.low, ends.high, ends.confidence
