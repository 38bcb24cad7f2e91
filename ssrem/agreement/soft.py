"""Soft pairwise accuracy (Thompson, Mathur, Deutsch and Khayrallah 2024, section 3)."""

from __future__ import annotations

import numpy as np

from ssrem.agreement.inputs import Floats, Integers

MIN_SHARED = 5
"""Contexts that two systems must share: of fewer there are too few ways to change signs for a p."""


def soft_accuracy(
    scores: Floats, human: Floats, systems: Integers, contexts: Integers, *, permutations: int, seed: int
) -> tuple[float | None, int, int]:
    """Soft accuracy in [0, 1], from how many pairs of systems, and how many were left out; None where no pair is left.

    1 minus the mean over pairs of systems of |p by the scores − p by people|. p: of the first being better than the
    second by chance, in a paired permutation test over the contexts that they share, one-sided; a permutation that
    ties counts half, so that p of (a, b) and of (b, a) make 1. Scores and human scores are permuted alike.
    scores, human, systems, contexts: (n,), finite, the last two as numbers from 0;
    several responses of a system to a context are averaged. Pairs that share fewer than `MIN_SHARED` are left out.
    """
    count = int(systems.max(initial=-1)) + 1
    tables = _table(scores, systems, contexts), _table(human, systems, contexts)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(permutations, tables[0].shape[1]))
    apart, left_out = [], 0
    for first in range(count):
        for second in range(first + 1, count):
            shared = ~np.isnan(tables[0][first] - tables[0][second])
            if shared.sum() < MIN_SHARED:
                left_out += 1
                continue
            by_score, by_human = (
                _p((table[first] - table[second])[shared], signs[:, shared]) for table in tables
            )
            apart.append(abs(by_score - by_human))
    return float(1 - np.mean(apart)) if apart else None, len(apart), left_out


def _p(differences: Floats, signs: Floats) -> float:
    null, seen = signs @ differences, differences.sum()
    # Sums in another order differ by rounding, and are the same sum.
    tied = np.isclose(null, seen, rtol=0, atol=1e-9 * (1 + np.abs(differences).sum()))
    above = float(((null > seen) & ~tied).sum())
    return (above + (float(tied.sum()) + 1) / 2) / (len(signs) + 1)


def _table(values: Floats, systems: Integers, contexts: Integers) -> Floats:
    """Mean value of each system in each context, (systems, contexts); NaN where it has none."""
    shape = int(systems.max(initial=-1)) + 1, int(contexts.max(initial=-1)) + 1
    cell = systems * shape[1] + contexts
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, values, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        table: Floats = np.where(count > 0, total / count, np.nan).reshape(shape)
    return table
