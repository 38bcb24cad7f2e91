"""Segment level: how an evaluator's scores of responses agree with people's, pooled or averaged over groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.coefficients import row_coefficients
from ssrem.agreement.correlation import CORRELATIONS
from ssrem.agreement.inputs import (
    MIN_RESPONSES,
    Agreement,
    Floats,
    Grouping,
    Integers,
    Labels,
    LeftOut,
    Measure,
    Numbers,
    Outcome,
    columns,
    complete,
    numbered,
    unvarying,
)

MAX_PAIRS = 5_000_000
"""All pairs are held in memory at once; beyond this (3,163 responses) a set is compared by group, not pooled."""


@dataclass(frozen=True)
class Calibrated:
    """accuracy in [0, 1]: mean over groups of the share of pairs that agree. epsilon: scores that differ by it or
    less are a tie. pairs: how many were compared; groups: those with a pair."""

    accuracy: float
    epsilon: float
    pairs: int
    groups: int


def segment_level(
    scores: Numbers,
    human: Numbers,
    *,
    measure: Measure,
    grouping: Grouping = "pooled",
    groups: Labels | None = None,
) -> Agreement:
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

    def without(outcome: Outcome, reason: str, left: tuple[LeftOut, ...] = ()) -> Agreement:
        return Agreement(measure, None, len(x), missing, 0, left_out=left, outcome=outcome, reason=reason)

    if len(x) < MIN_RESPONSES:
        return without("too_few", f"{len(x)} responses with both scores; {MIN_RESPONSES} are needed")
    if unvarying(x, y):
        return without("constant", f"the {'' if unvarying(x) else 'human '}scores are all the same")
    if measure == "accuracy":
        if pair_count(codes) > MAX_PAIRS:
            reason = f"{pair_count(codes)} pairs; compare by context, or at most {MAX_PAIRS}"
            return without("too_many", reason)
        return _accuracy(x, y, grouping, names, codes, missing)
    if grouping == "pooled":
        correlation = CORRELATIONS[measure](x, y)
        return Agreement(measure, correlation.statistic, len(x), missing, 1, correlation.p)
    used, left = group_coefficients(x, y, names, codes, measure)
    if not used:
        return without("too_few", f"no {grouping} has {MIN_RESPONSES} responses whose scores vary", left)
    n = int(np.isin(codes, list(used)).sum())
    return Agreement(measure, float(np.mean(list(used.values()))), n, missing, len(used), left_out=left)


def group_coefficients(
    x: Floats, y: Floats, names: list[str], codes: Integers, measure: Measure
) -> tuple[dict[int, float], tuple[LeftOut, ...]]:
    """Coefficient of each group (its number) that has one, and the groups that have none."""
    used: dict[int, float] = {}
    left = []
    by_size: dict[int, list[tuple[int, Integers]]] = {}
    for code, (name, rows) in enumerate(zip(names, _members(codes, len(names)), strict=True)):
        a, b = x[rows], y[rows]
        if len(rows) < MIN_RESPONSES:
            left.append(LeftOut(name, f"{len(rows)} responses"))
        elif unvarying(a, b):
            left.append(LeftOut(name, f"{'scores' if unvarying(a) else 'human scores'} all the same"))
        else:
            by_size.setdefault(len(rows), []).append((code, rows))
    for groups in by_size.values():  # groups of one size at once
        members = np.stack([rows for _, rows in groups])
        coefficients = row_coefficients(measure)(x[members], y[members])
        used |= {code: float(value) for (code, _), value in zip(groups, coefficients, strict=True)}
    return dict(sorted(used.items())), tuple(left)


def calibrated_accuracy(scores: Floats, human: Floats, groups: Integers | None = None) -> Calibrated | None:
    """Pairwise accuracy acc_eq with the ε that makes it highest, one ε for all groups; the smallest such ε (Deutsch,
    Foster and Freitag 2023, "Ties Matter", sections 4 and 5).

    scores, human: (n,), finite. groups: (n,), numbers from 0; only pairs within one count; None: one group. A pair
    agrees where both order it alike, or where people tie it and the scores differ by ε or less. None where there is
    no pair. ValueError above `MAX_PAIRS`. ε is chosen on these very pairs, which favours evaluators a little.
    """
    codes = np.zeros(len(scores), dtype=np.int64) if groups is None else groups
    pairs = pair_count(codes)
    if pairs == 0:
        return None
    if pairs > MAX_PAIRS:
        raise ValueError(f"{pairs} pairs are more than {MAX_PAIRS}: compare by context")
    one, other = _pairs_within(codes)
    group = codes[one]
    per_group = np.bincount(group)
    by_score, by_human = scores[one] - scores[other], human[one] - human[other]
    distance, ordered, tied = np.abs(by_score), np.sign(by_score) == np.sign(by_human), by_human == 0
    # As ε passes a pair, the scores tie it: it agrees where people tie it, and no longer where both ordered it alike.
    gain = (tied * 1.0 - ordered) / per_group[group]
    order = np.argsort(distance, kind="stable")
    ascending = distance[order]
    last = np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True))
    gains = np.concatenate([[0.0], np.cumsum(gain[order])[last]])
    best = int(np.argmax(np.round(gains, 9)))  # what rounding adds is no gain
    epsilon = float(np.concatenate([[0.0], ascending[last]])[best])
    agreeing = np.bincount(group, np.where(distance <= epsilon, tied, ordered))
    used = per_group > 0
    return Calibrated(float((agreeing[used] / per_group[used]).mean()), epsilon, pairs, int(used.sum()))


def pair_count(groups: Integers) -> int:
    """Pairs within the groups (n,)."""
    sizes = np.bincount(groups)
    return int((sizes * (sizes - 1) // 2).sum())


def _accuracy(
    x: Floats, y: Floats, grouping: Grouping, names: list[str], codes: Integers, missing: int
) -> Agreement:
    sizes = np.bincount(codes, minlength=len(names))
    left = tuple(LeftOut(names[code], f"{sizes[code]} responses") for code in np.flatnonzero(sizes < 2))
    n = int(sizes[sizes >= 2].sum())
    calibrated = calibrated_accuracy(x, y, codes)
    if calibrated is None:
        reason = f"no {grouping} has two responses"
        return Agreement("accuracy", None, n, missing, 0, left_out=left, outcome="too_few", reason=reason)
    return Agreement(
        "accuracy",
        calibrated.accuracy,
        n,
        missing,
        calibrated.groups,
        left_out=left,
        epsilon=calibrated.epsilon,
    )


def _groups(grouping: Grouping, groups: Labels | None, rows: Integers, n: int) -> tuple[list[str], Integers]:
    """Names and numbers of all groups that a response names, the numbers of the chosen rows."""
    if grouping == "pooled":
        return ["all"], np.zeros(len(rows), dtype=np.int64)
    if groups is None:
        raise ValueError(f"agreement by {grouping} needs the {grouping} of each response")
    names, codes = numbered(groups, n, f"{grouping} labels")
    return names, codes[rows]


def _members(codes: Integers, groups: int) -> list[Integers]:
    """Rows of each group."""
    ends = np.cumsum(np.bincount(codes, minlength=groups))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _pairs_within(codes: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    members = _members(codes, 0)
    upper = [(rows, np.triu_indices(len(rows), 1)) for rows in members]
    return (
        np.concatenate([rows[i] for rows, (i, _) in upper]),
        np.concatenate([rows[j] for rows, (_, j) in upper]),
    )
