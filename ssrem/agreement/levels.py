"""Agreement with human scores, pooled or averaged over groups (segment level), or of systems (system level)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.coefficients import accuracy_rows, row_coefficients
from ssrem.agreement.correlation import CORRELATIONS
from ssrem.agreement.inputs import (
    MIN_RESPONSES,
    Agreement,
    Floats,
    Grouping,
    Integers,
    LeftOut,
    Measure,
    Responses,
    View,
    columns,
    complete,
    numbered,
    numbered_within,
    unvarying,
)

MAX_PAIRS = 5_000_000
"""All pairs are held in memory at once; sets of more than 3,163 responses are compared by group, not pooled."""

MIN_SYSTEMS = 5
"""From two systems every coefficient is 1 or -1, and from four chance alone gives 1 once in 24 times."""

MIN_SHARED = 5
"""Contexts that two systems must share for soft accuracy: of fewer there are too few ways to change signs for a p."""


def agreement_at(responses: Responses, view: View, *, permutations: int = 1000, seed: int = 0) -> Agreement:
    """The agreement by `segment_level` or `system_level`, as the view says; permutations, seed: of soft accuracy.
    ValueError as there."""
    if view.level == "segment":
        return segment_level(responses, view)
    return system_level(responses, view, permutations=permutations, seed=seed)


@dataclass(frozen=True)
class Calibrated:
    """accuracy in [0, 1]: mean over groups of the share of pairs that agree. epsilon: scores that differ by it or
    less are a tie. pairs: how many were compared; groups: those with a pair."""

    accuracy: float
    epsilon: float
    pairs: int
    groups: int


def segment_level(responses: Responses, view: View) -> Agreement:
    """Agreement of scores (n,) with human scores (n,); NaN is missing.

    grouping: 'pooled' takes all pairs at once; 'system' and 'context' average the coefficients of the systems or
    contexts, each counting the same. A group with fewer than three responses (accuracy: two), or one in which a side
    does not vary, has none and is left out (accuracy keeps it, as ties count). Accuracy is acc_eq with one ε for all
    groups (see `calibrated_accuracy`). ValueError for infinite scores, lengths that differ, a grouping without labels,
    or soft accuracy, which compares systems.
    """
    scores, human, measure, grouping = responses.scores, responses.human, view.measure, view.grouping
    if measure == "soft_accuracy":
        raise ValueError("soft accuracy compares systems: it has no segment level")
    pairs, missing = columns(scores, human)
    x, y = pairs.T
    names, codes = _groups(responses, grouping, complete(scores, human))
    result = Agreement(measure, None, len(x), missing, 0)
    if len(x) < MIN_RESPONSES:
        few = f"{len(x)} responses with both scores; {MIN_RESPONSES} are needed"
        return replace(result, outcome="too_few", reason=few)
    if unvarying(x, y):
        same = f"the {'' if unvarying(x) else 'human '}scores are all the same"
        return replace(result, outcome="constant", reason=same)
    if measure == "accuracy":
        if (count := pair_count(codes)) > MAX_PAIRS:
            many = f"{count} pairs; compare by context, or at most {MAX_PAIRS}"
            return replace(result, outcome="too_many", reason=many)
        sizes = np.bincount(codes, minlength=len(names))
        left = tuple(LeftOut(names[code], f"{sizes[code]} responses") for code in np.flatnonzero(sizes < 2))
        result = replace(result, n=int(sizes[sizes >= 2].sum()), left_out=left)
        calibrated = calibrated_accuracy(x, y, codes)
        if calibrated is None:
            return replace(result, outcome="too_few", reason=f"no {grouping} has two responses")
        result = replace(result, epsilon=calibrated.epsilon, groups=calibrated.groups)
        return replace(result, statistic=calibrated.accuracy)
    if grouping == "pooled":
        correlation = CORRELATIONS[measure](x, y)
        return replace(result, statistic=correlation.statistic, p=correlation.p, groups=1)
    used, left = group_coefficients(x, y, names, codes, measure)
    if not used:
        few = f"no {grouping} has {MIN_RESPONSES} responses whose scores vary"
        return replace(result, left_out=left, outcome="too_few", reason=few)
    mean, n = float(np.mean(list(used.values()))), int(np.isin(codes, list(used)).sum())
    return replace(result, statistic=mean, n=n, groups=len(used), left_out=left)


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
    ordered = _ordered_pairs(scores.tobytes(), codes.tobytes())
    one, other, distance = ordered.one, ordered.other, ordered.distance
    group = codes[one]
    per_group = np.bincount(group)
    by_human = np.sign(human[one] - human[other])
    alike, tied = ordered.sign == by_human, by_human == 0
    # As ε passes a pair, the scores tie it: it agrees where people tie it, and no longer where both ordered it alike.
    gain = (tied * 1.0 - alike) / per_group[group]
    gains = np.concatenate([[0.0], np.cumsum(gain)[ordered.last]])
    best = int(np.argmax(np.round(gains, 9)))  # what rounding adds is no gain
    epsilon = float(np.concatenate([[0.0], distance[ordered.last]])[best])
    agreeing = np.bincount(group, np.where(distance <= epsilon, tied, alike))
    used = per_group > 0
    return Calibrated(float((agreeing[used] / per_group[used]).mean()), epsilon, pairs, int(used.sum()))


@dataclass(frozen=True)
class _OrderedPairs:
    """Pairs (p,) of responses `one` and `other`, by ascending distance of their scores. sign: of the score of `one`
    minus that of `other`; last: the place of the last pair of each distance."""

    one: Integers
    other: Integers
    sign: NDArray[np.float32]
    distance: Floats
    last: Integers


@lru_cache(maxsize=len(get_args(Grouping)))
def _ordered_pairs(scores: bytes, groups: bytes) -> _OrderedPairs:
    """Pairs within groups: scores (n,) float64, groups (n,) int64. Cached, because an evaluator is compared with
    several human scores in the same groups."""
    x = np.frombuffer(scores)
    one, other = pairs_within(np.frombuffer(groups, dtype=np.int64))
    difference = x[one] - x[other]
    distance = np.abs(difference)
    order = np.argsort(distance)
    distance = distance[order]
    last = np.flatnonzero(np.append(distance[1:] != distance[:-1], True))
    signs = np.sign(difference[order]).astype(np.float32)
    return _OrderedPairs(one[order].astype(np.int32), other[order].astype(np.int32), signs, distance, last)


def pair_count(groups: Integers) -> int:
    """Pairs within the groups (n,)."""
    sizes = np.bincount(groups)
    return int((sizes * (sizes - 1) // 2).sum())


def system_level(responses: Responses, view: View, *, permutations: int = 1000, seed: int = 0) -> Agreement:
    """Agreement of the systems' mean scores with their mean human scores, from responses (n,); NaN is missing.

    A response counts where it has both scores. measure: 'accuracy' is the share of pairs of systems ordered as people
    order them (Kocmi et al. 2021), equal means being a tie, without calibration; see also `soft_accuracy`. Refused
    below `MIN_SYSTEMS` systems unless the view forces it, which needs two systems at least (correlations: three).
    ValueError for infinite scores, lengths that differ, or unknown systems.
    """
    scores, human, measure, force = responses.scores, responses.human, view.measure, view.force
    if responses.systems is None:
        raise ValueError("the system level needs the system of each response")
    pairs, missing = columns(scores, human)
    usable = complete(scores, human)
    names, codes = numbered_within(responses.systems, usable, "systems")
    x, y = pairs.T
    count = len(names)
    agreement = Agreement(measure, None, len(x), missing, count)
    least = 2 if measure in ("accuracy", "soft_accuracy") else 3
    if count < MIN_SYSTEMS and not (force and count >= least):
        way = f"; {least} are the least" if force else " unless forced"
        reason = f"{count} systems; {MIN_SYSTEMS} are needed{way}"
        return replace(agreement, outcome="too_few_systems", reason=reason)
    means = [np.bincount(codes, values) / np.bincount(codes) for values in (x, y)]
    if unvarying(*means):
        reason = "the mean scores of the systems are all the same"
        return replace(agreement, outcome="constant", reason=reason)
    agreement = replace(agreement, forced=count < MIN_SYSTEMS)
    if measure == "accuracy":
        return replace(agreement, statistic=float(accuracy_rows(means[0][None], means[1])[0]))
    if measure != "soft_accuracy":
        correlation = CORRELATIONS[measure](*means)
        return replace(agreement, statistic=correlation.statistic, p=correlation.p)
    _, shared = numbered_within(responses.contexts, usable, "contexts")
    soft, used, left_out = soft_accuracy(x, y, codes, shared, permutations=permutations, seed=seed)
    if soft is None:
        reason = f"no two systems share {MIN_SHARED} contexts"
        return replace(agreement, forced=False, outcome="too_few", reason=reason)
    agreement = replace(agreement, permutations=permutations, seed=seed)
    return replace(agreement, statistic=soft, pairs=used, pairs_left_out=left_out)


def soft_accuracy(
    scores: Floats, human: Floats, systems: Integers, contexts: Integers, *, permutations: int, seed: int
) -> tuple[float | None, int, int]:
    """Soft pairwise accuracy in [0, 1] (Thompson, Mathur, Deutsch and Khayrallah 2024, section 3), None where no pair
    is left; the number of pairs of systems that it is from, and of those left out.

    1 minus the mean over pairs of systems of |p by the scores − p by people|. p: of the first being better than the
    second by chance, in a paired permutation test over the contexts that they share, one-sided; a permutation that
    ties counts half, so that p of (a, b) and of (b, a) make 1. Scores and human scores are permuted alike.
    scores, human, systems, contexts: (n,), finite, the last two as numbers from 0;
    several responses of a system to a context are averaged. Pairs that share fewer than `MIN_SHARED` are left out.
    """
    count = int(systems.max(initial=-1)) + 1
    tables = [_system_table(values, systems, contexts) for values in (scores, human)]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(permutations, tables[0].shape[1]))
    distances, left_out = [], 0
    for first in range(count - 1):  # a system with all later ones at once
        differences = [table[first] - table[first + 1 :] for table in tables]
        shared = ~np.isnan(differences[0])
        enough = shared.sum(axis=1) >= MIN_SHARED
        left_out += int((~enough).sum())
        by_score, by_human = (
            _sign_flip_p(np.where(shared, difference, 0.0)[enough], signs) for difference in differences
        )
        distances.append(np.abs(by_score - by_human))
    compared = np.concatenate(distances) if distances else np.empty(0)
    return float(1 - compared.mean()) if len(compared) else None, len(compared), left_out


def _groups(
    responses: Responses, grouping: Grouping, usable: NDArray[np.bool_]
) -> tuple[list[str], Integers]:
    """The names of all groups, and the number of the group of each usable row."""
    if grouping == "pooled":
        return ["all"], np.zeros(int(usable.sum()), dtype=np.int64)
    labels = responses.systems if grouping == "system" else responses.contexts
    if labels is None:
        raise ValueError(f"agreement by {grouping} needs the {grouping} of each response")
    names, codes = numbered(labels, len(usable), f"{grouping} labels")
    return names, codes[usable]


def _members(codes: Integers, groups: int) -> list[Integers]:
    """Rows of each group."""
    ends = np.cumsum(np.bincount(codes, minlength=groups))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def pairs_within(codes: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two responses of each pair within the groups (n,), (pairs,) each."""
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    first, second = [], []
    for size in np.unique(sizes):  # groups of one size at once
        rows = order[starts[sizes == size, None] + np.arange(size)]
        one, other = np.triu_indices(size, 1)
        first.append(rows[:, one].ravel())
        second.append(rows[:, other].ravel())
    return np.concatenate(first), np.concatenate(second)


def _sign_flip_p(differences: Floats, signs: Floats) -> Floats:
    """p (pairs,) of the differences (pairs, contexts) under the signs (permutations, contexts); a context that a pair
    of systems does not share has the difference 0."""
    null, observed = differences @ signs.T, differences.sum(axis=1, keepdims=True)
    # Equal sums that were added in another order differ by rounding.
    tied = np.abs(null - observed) <= 1e-9 * (1 + np.abs(differences).sum(axis=1, keepdims=True))
    above = ((null > observed) & ~tied).sum(axis=1)
    p: Floats = (above + (tied.sum(axis=1) + 1) / 2) / (len(signs) + 1)
    return p


def _system_table(values: Floats, systems: Integers, contexts: Integers) -> Floats:
    """Mean value of each system in each context, (systems, contexts); NaN where it has none."""
    shape = int(systems.max(initial=-1)) + 1, int(contexts.max(initial=-1)) + 1
    cell = systems * shape[1] + contexts
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, values, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        table: Floats = np.where(count > 0, total / count, np.nan).reshape(shape)
    return table
