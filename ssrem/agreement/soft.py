"""Soft pairwise accuracy (Thompson, Mathur, Deutsch and Khayrallah 2024, section 3)."""

from __future__ import annotations

import numpy as np

from ssrem.agreement.inputs import Floats, Integers


def soft_accuracy(
    scores: Floats, human: Floats, systems: Integers, contexts: Integers, *, permutations: int, seed: int
) -> float | None:
    """1 minus the mean over pairs of systems of |p by the scores − p by people|, in [0, 1].

    p: how sure it is that the first is better than the second, by a paired permutation test over the contexts that
    the two share, one-sided; a permutation that ties counts half, so that p of (a, b) and of (b, a) make 1. Scores
    and human scores are permuted alike. scores, human, systems, contexts: (n,), the last two as numbers from 0;
    several responses of a system to a context are averaged. None where two systems share fewer than two contexts.
    """
    count = int(systems.max(initial=-1)) + 1
    tables = _table(scores, systems, contexts), _table(human, systems, contexts)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(permutations, tables[0].shape[1]))
    apart = []
    for first in range(count):
        for second in range(first + 1, count):
            shared = ~np.isnan(tables[0][first] - tables[0][second])
            if shared.sum() < 2:
                return None
            by_score, by_human = (
                _sureness((table[first] - table[second])[shared], signs[:, shared]) for table in tables
            )
            apart.append(abs(by_score - by_human))
    return float(1 - np.mean(apart))


def _sureness(differences: Floats, signs: Floats) -> float:
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
