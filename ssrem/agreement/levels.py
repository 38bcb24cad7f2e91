"""Agreement with human scores, pooled or averaged over groups (segment level), or of systems (system level)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.accuracy import MAX_PAIRS, MIN_SHARED, calibrated_accuracy, pair_count, soft_accuracy
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

MIN_SYSTEMS = 5
"""From two systems every coefficient is 1 or -1, and from four chance alone gives 1 once in 24 times."""


def agreement_at(responses: Responses, view: View, *, permutations: int = 1000, seed: int = 0) -> Agreement:
    """The agreement by `segment_level` or `system_level`, as the view says; permutations, seed: of soft accuracy.
    ValueError as there."""
    if view.level == "segment":
        return segment_level(responses, view)
    return system_level(responses, view, permutations=permutations, seed=seed)


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
