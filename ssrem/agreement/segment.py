"""Segment level: how an evaluator's scores of responses agree with people's, pooled or averaged over groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ssrem.agreement.correlation import kendall, pearson, spearman
from ssrem.agreement.inputs import (
    Floats,
    Integers,
    Labels,
    Measure,
    Numbers,
    Outcome,
    Sides,
    columns,
    complete,
    numbered,
    unvarying,
)
from ssrem.agreement.rows import rows
from ssrem.agreement.ties import MAX_PAIRS, calibrated_accuracy, pair_count

Grouping = Literal["pooled", "system", "context"]

TOO_FEW = 3
"""Fewer pairs than this correlate perfectly, or not at all."""


@dataclass(frozen=True)
class LeftOut:
    """A group without a coefficient, and why."""

    group: str
    reason: str


@dataclass(frozen=True)
class SegmentAgreement:
    """statistic: in [-1, 1], for accuracy in [0, 1]; over `n` responses, averaged over `groups` groups.

    p: in (0, 1], of no correlation, for pooled correlations alone: it takes responses as independent. For others see
    `against_chance`.
    epsilon: what accuracy takes as a tie. missing: responses left out for want of a score; left_out: groups without
    a coefficient. statistic, p and epsilon are None unless outcome is 'ok'; reason says why in words.
    """

    measure: Measure
    grouping: Grouping
    statistic: float | None
    n: int
    missing: int
    groups: int
    left_out: tuple[LeftOut, ...] = ()
    p: float | None = None
    sides: Sides = "two-sided"
    epsilon: float | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def segment_level(
    scores: Numbers,
    human: Numbers,
    *,
    measure: Measure,
    grouping: Grouping = "pooled",
    groups: Labels | None = None,
) -> SegmentAgreement:
    """Agreement of scores (n,) with human scores (n,); NaN is missing.

    grouping: 'pooled' takes all pairs at once; 'system' and 'context' average the coefficients of the groups, each
    counting the same, whose labels `groups` (n,) gives: the system or the context of each response. A group with
    fewer than three responses (accuracy: two), or one in which a side does not vary, has none and is left out
    (accuracy: a tie is an answer). Accuracy is acc_eq with one ε for all groups (see `calibrated_accuracy`).
    ValueError for infinite scores, lengths that differ, or a grouping without labels.
    """
    pairs, missing = columns(scores, human)
    x, y = pairs.T
    names, codes = _groups(grouping, groups, np.flatnonzero(complete(scores, human)), len(scores))

    def without(outcome: Outcome, reason: str, left: tuple[LeftOut, ...] = ()) -> SegmentAgreement:
        return SegmentAgreement(
            measure, grouping, None, len(x), missing, 0, left, outcome=outcome, reason=reason
        )

    if len(x) < TOO_FEW:
        return without("too_few", f"{len(x)} responses with both scores; {TOO_FEW} are needed")
    if unvarying(x, y):
        return without("constant", f"the {'' if unvarying(x) else 'human '}scores are all the same")
    if measure == "accuracy" and pair_count(codes) > MAX_PAIRS:
        return without("too_many", f"{pair_count(codes)} pairs; compare by context, or at most {MAX_PAIRS}")
    if measure == "accuracy":
        return _accuracy(x, y, grouping, names, codes, missing)
    if grouping == "pooled":
        found = {"pearson": pearson, "spearman": spearman, "kendall": kendall}[measure](x, y)
        return SegmentAgreement(measure, grouping, found.statistic, len(x), missing, 1, p=found.p)
    used, left = group_coefficients(x, y, names, codes, measure)
    if not used:
        return without("too_few", f"no {grouping} has {TOO_FEW} responses whose scores vary", left)
    n = int(np.isin(codes, list(used)).sum())
    mean = float(np.mean(list(used.values())))
    return SegmentAgreement(measure, grouping, mean, n, missing, len(used), left)


def group_coefficients(
    x: Floats, y: Floats, names: list[str], codes: Integers, measure: Measure
) -> tuple[dict[int, float], tuple[LeftOut, ...]]:
    """Coefficient of each group (its number) that has one, and the groups that have none."""
    used: dict[int, float] = {}
    left = []
    by_size: dict[int, list[tuple[int, Integers]]] = {}
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    for code, (name, at) in enumerate(zip(names, np.split(order, ends[:-1]), strict=True)):
        a, b = x[at], y[at]
        if len(at) < TOO_FEW:
            left.append(LeftOut(name, f"{len(at)} responses"))
        elif unvarying(a, b):
            left.append(LeftOut(name, f"{'scores' if unvarying(a) else 'human scores'} all the same"))
        else:
            by_size.setdefault(len(at), []).append((code, at))
    for groups in by_size.values():  # those of one size at once
        members = np.stack([at for _, at in groups])
        found = rows(measure)(x[members], y[members])
        used |= {code: float(value) for (code, _), value in zip(groups, found, strict=True)}
    return dict(sorted(used.items())), tuple(left)


def _accuracy(
    x: Floats, y: Floats, grouping: Grouping, names: list[str], codes: Integers, missing: int
) -> SegmentAgreement:
    sizes = np.bincount(codes, minlength=len(names))
    left = tuple(
        LeftOut(name, f"{size} responses") for name, size in zip(names, sizes, strict=True) if size < 2
    )
    found = calibrated_accuracy(x, y, codes)
    n = int(sizes[sizes >= 2].sum())
    if found is None:
        reason = f"no {grouping} has two responses"
        return SegmentAgreement(
            "accuracy", grouping, None, n, missing, 0, left, outcome="too_few", reason=reason
        )
    return SegmentAgreement(
        "accuracy", grouping, found.accuracy, n, missing, found.groups, left, epsilon=found.epsilon
    )


def _groups(grouping: Grouping, groups: Labels | None, kept: Integers, n: int) -> tuple[list[str], Integers]:
    """Names and numbers of all groups that a response names, of the rows that are kept."""
    if grouping == "pooled":
        return ["all"], np.zeros(len(kept), dtype=np.int64)
    if groups is None:
        raise ValueError(f"agreement by {grouping} needs the {grouping} of each response")
    names, codes = numbered(groups, n, f"{grouping} labels")
    return names, codes[kept]
