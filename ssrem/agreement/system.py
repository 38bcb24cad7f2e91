"""System level: whether an evaluator ranks systems as people do."""

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
    those,
    unvarying,
)
from ssrem.agreement.rows import accuracy_rows
from ssrem.agreement.soft import MIN_SHARED, soft_accuracy

MIN_SYSTEMS = 5
"""From two systems every coefficient is 1 or -1, and from four chance alone gives 1 once in 24 times."""

SystemMeasure = Measure | Literal["soft_accuracy"]


@dataclass(frozen=True)
class SystemAgreement:
    """statistic: in [-1, 1], for accuracies in [0, 1]; over `systems` systems with `n` responses in all.

    p: in (0, 1], of no correlation; None for accuracies. forced: whether there were too few systems and
    it was asked for all the same. Of soft accuracy: pairs of systems used, and left out for sharing too few contexts;
    permutations and seed. missing: responses left out for want of a
    score. The figures are None unless outcome is 'ok'; reason says why in words.
    """

    measure: SystemMeasure
    statistic: float | None
    systems: int
    n: int
    missing: int
    p: float | None = None
    sides: Sides = "two-sided"
    forced: bool = False
    pairs: int | None = None
    pairs_left_out: int | None = None
    permutations: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


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
) -> SystemAgreement:
    """Agreement of the systems' mean scores with their mean human scores, from responses (n,); NaN is missing.

    A response counts where it has both scores. measure: 'accuracy' is the share of pairs of systems ordered as people
    order them (Kocmi et al. 2021), equal means being a tie, without calibration; 'soft_accuracy' see `soft_accuracy`,
    which needs `contexts` (n,). Refused below `MIN_SYSTEMS` systems unless `force`, which two systems at least must
    have (correlations: three). ValueError for infinite scores or lengths that differ.
    """
    pairs, missing = columns(scores, human)
    kept = complete(scores, human)
    names, codes = those(systems, kept, "systems")
    x, y = pairs.T
    count = len(names)

    def without(outcome: Outcome, reason: str) -> SystemAgreement:
        return SystemAgreement(measure, None, count, len(x), missing, outcome=outcome, reason=reason)

    least = 2 if measure in ("accuracy", "soft_accuracy") else 3
    if count < MIN_SYSTEMS and not (force and count >= least):
        way = f"; {least} are the least" if force else " unless forced"
        return without("too_few_systems", f"{count} systems; {MIN_SYSTEMS} are needed{way}")
    means = system_means(x, codes, count), system_means(y, codes, count)
    if unvarying(*means):
        return without("constant", "the mean scores of the systems are all the same")
    forced = count < MIN_SYSTEMS
    if measure == "accuracy":
        share = float(accuracy_rows(means[0][None], means[1])[0])
        return SystemAgreement(measure, share, count, len(x), missing, forced=forced)
    if measure == "soft_accuracy":
        if contexts is None:
            raise ValueError("soft accuracy pairs systems by context: it needs the context of each response")
        _, shared = those(contexts, kept, "contexts")
        soft, used, apart = soft_accuracy(x, y, codes, shared, permutations=permutations, seed=seed)
        if soft is None:
            return without("too_few", f"no two systems share {MIN_SHARED} contexts")
        return SystemAgreement(
            measure,
            soft,
            count,
            len(x),
            missing,
            forced=forced,
            pairs=used,
            pairs_left_out=apart,
            permutations=permutations,
            seed=seed,
        )
    found = {"pearson": pearson, "spearman": spearman, "kendall": kendall}[measure](*means)
    return SystemAgreement(measure, found.statistic, count, len(x), missing, found.p, forced=forced)


def system_means(values: Floats, codes: Integers, systems: int) -> Floats:
    """Mean of each system's values, float64 (systems,)."""
    means: Floats = np.bincount(codes, values, minlength=systems) / np.bincount(codes, minlength=systems)
    return means
