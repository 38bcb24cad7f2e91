"""System level: whether an evaluator ranks systems as people do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssrem.agreement.coefficients import accuracy_rows
from ssrem.agreement.correlation import CORRELATIONS
from ssrem.agreement.inputs import (
    Agreement,
    Floats,
    Integers,
    Labels,
    Numbers,
    SystemMeasure,
    columns,
    complete,
    numbered_within,
    unvarying,
)

MIN_SYSTEMS = 5
"""From two systems every coefficient is 1 or -1, and from four chance alone gives 1 once in 24 times."""

MIN_SHARED = 5
"""Contexts that two systems must share for soft accuracy: of fewer there are too few ways to change signs for a p."""


def system_level(
    scores: Numbers,
    human: Numbers,
    systems: Labels,
    *,
    measure: SystemMeasure,
    contexts: Labels | None = None,
    force: bool = False,
    permutations: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Agreement of the systems' mean scores with their mean human scores, from responses (n,); NaN is missing.

    A response counts where it has both scores. measure: 'accuracy' is the share of pairs of systems ordered as people
    order them (Kocmi et al. 2021), equal means being a tie, without calibration; 'soft_accuracy' see `soft_accuracy`,
    which needs `contexts` (n,). Refused below `MIN_SYSTEMS` systems unless `force`, which two systems at least must
    have (correlations: three). ValueError for infinite scores or lengths that differ.
    """
    pairs, missing = columns(scores, human)
    usable = complete(scores, human)
    names, codes = numbered_within(systems, usable, "systems")
    x, y = pairs.T
    count = len(names)
    agreement = Agreement(measure, None, len(x), missing, count)
    least = 2 if measure in ("accuracy", "soft_accuracy") else 3
    if count < MIN_SYSTEMS and not (force and count >= least):
        way = f"; {least} are the least" if force else " unless forced"
        reason = f"{count} systems; {MIN_SYSTEMS} are needed{way}"
        return replace(agreement, outcome="too_few_systems", reason=reason)
    means = system_means(x, codes, count), system_means(y, codes, count)
    if unvarying(*means):
        reason = "the mean scores of the systems are all the same"
        return replace(agreement, outcome="constant", reason=reason)
    agreement = replace(agreement, forced=count < MIN_SYSTEMS)
    if measure == "accuracy":
        return replace(agreement, statistic=float(accuracy_rows(means[0][None], means[1])[0]))
    if measure != "soft_accuracy":
        correlation = CORRELATIONS[measure](*means)
        return replace(agreement, statistic=correlation.statistic, p=correlation.p)
    if contexts is None:
        raise ValueError("soft accuracy pairs systems by context: it needs the context of each response")
    _, shared = numbered_within(contexts, usable, "contexts")
    soft, used, left_out = soft_accuracy(x, y, codes, shared, permutations=permutations, seed=seed)
    if soft is None:
        reason = f"no two systems share {MIN_SHARED} contexts"
        return replace(agreement, forced=False, outcome="too_few", reason=reason)
    return replace(
        agreement,
        statistic=soft,
        pairs=used,
        pairs_left_out=left_out,
        permutations=permutations,
        seed=seed,
    )


def system_means(values: Floats, codes: Integers, systems: int) -> Floats:
    """Mean of each system's values, float64 (systems,)."""
    means: Floats = np.bincount(codes, values, minlength=systems) / np.bincount(codes, minlength=systems)
    return means


def soft_accuracy(
    scores: Floats, human: Floats, systems: Integers, contexts: Integers, *, permutations: int, seed: int
) -> tuple[float | None, int, int]:
    """Soft pairwise accuracy in [0, 1] (Thompson, Mathur, Deutsch and Khayrallah 2024, section 3), from how many pairs
    of systems, and how many were left out; None where no pair is left.

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
    for first, second in zip(*np.triu_indices(count, 1), strict=True):
        shared = ~np.isnan(tables[0][first] - tables[0][second])
        if shared.sum() < MIN_SHARED:
            left_out += 1
            continue
        by_score, by_human = (
            _sign_flip_p((table[first] - table[second])[shared], signs[:, shared]) for table in tables
        )
        distances.append(abs(by_score - by_human))
    return float(1 - np.mean(distances)) if distances else None, len(distances), left_out


def _sign_flip_p(differences: Floats, signs: Floats) -> float:
    null, observed = signs @ differences, differences.sum()
    # Sums in another order differ by rounding, and are the same sum.
    tied = np.isclose(null, observed, rtol=0, atol=1e-9 * (1 + np.abs(differences).sum()))
    above = float(((null > observed) & ~tied).sum())
    return (above + (float(tied.sum()) + 1) / 2) / (len(signs) + 1)


def _system_table(values: Floats, systems: Integers, contexts: Integers) -> Floats:
    """Mean value of each system in each context, (systems, contexts); NaN where it has none."""
    shape = int(systems.max(initial=-1)) + 1, int(contexts.max(initial=-1)) + 1
    cell = systems * shape[1] + contexts
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, values, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        table: Floats = np.where(count > 0, total / count, np.nan).reshape(shape)
    return table
