"""Pairwise accuracy: how often scores order two responses, or two systems, as people do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats, Grouping, Integers

MAX_PAIRS = 5_000_000
"""All pairs are held in memory at once; sets of more than 3,163 responses are compared by group, not pooled."""

MIN_SHARED = 5
"""Contexts that two systems must share for soft accuracy: of fewer there are too few ways to change signs for a p."""


@dataclass(frozen=True)
class Calibrated:
    """accuracy in [0, 1]: mean over groups of the share of pairs that agree. epsilon: scores that differ by it or
    less are a tie. pairs: how many were compared; groups: those with a pair."""

    accuracy: float
    epsilon: float
    pairs: int
    groups: int


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
