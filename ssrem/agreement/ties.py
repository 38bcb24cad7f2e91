"""Pairwise accuracy with tie calibration (Deutsch, Foster and Freitag 2023, "Ties Matter", sections 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.inputs import Floats, Integers

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


def pair_count(groups: Integers) -> int:
    """Pairs within the groups (n,)."""
    sizes = np.bincount(groups)
    return int((sizes * (sizes - 1) // 2).sum())


def calibrated_accuracy(scores: Floats, human: Floats, groups: Integers | None = None) -> Calibrated | None:
    """acc_eq with the ε that makes it highest, one ε for all groups; the smallest such ε.

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
    there = per_group > 0
    accuracy = float((agreeing[there] / per_group[there]).mean())
    return Calibrated(accuracy, epsilon, pairs, int(there.sum()))


def _pairs_within(codes: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    upper = [(group, np.triu_indices(len(group), 1)) for group in members]
    return (
        np.concatenate([group[i] for group, (i, _) in upper]),
        np.concatenate([group[j] for group, (_, j) in upper]),
    )
