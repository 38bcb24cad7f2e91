"""Pass and fail: thresholds chosen on one half of the contexts and tested on the other, and the share that passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssrem.agreement.inputs import Floats
from ssrem.validation.labels import Flags, LabelledSet
from ssrem.validation.rates import (
    Estimate,
    PassShare,
    Threshold,
    best_threshold,
    corrected_share,
    share,
    tested,
    threshold_for,
)

BALANCE = "best balance"
"""Aim of the threshold at which the difference of the two rates is largest."""


@dataclass(frozen=True)
class Passing:
    """Which responses pass. passed_from: the human score from which a response passes. thresholds: that of the best
    balance, then that of the wanted precision. reason: why there is none."""

    passed_from: float | None
    thresholds: Sequence[Threshold] = ()
    shares: Sequence[PassShare] = ()
    reason: str = ""


def pass_or_fail(
    data: LabelledSet, scores: Floats, precision: float | None, unlabelled: Floats | None
) -> Passing:
    """scores (n,), finite. unlabelled (m,): scores of responses that nobody labelled, each in a context of its own, NaN
    for none; their share is corrected by the rates on the testing half."""
    passed, calibrating, clusters = data.passed, data.calibrating, data.clusters
    if passed is None:
        return Passing(data.passed_from, reason=data.one_class)
    for half, of in (("chooses", calibrating), ("tests", ~calibrating)):
        if not (passed[of].any() and (~passed[of]).any()):
            return Passing(
                data.passed_from,
                reason=f"the half of the contexts that {half} a threshold lacks responses that people "
                f"{'fail' if passed[of].any() else 'pass'}",
            )
    own, labels = scores[calibrating], passed[calibrating]
    best = best_threshold(own, labels)
    if best is None:
        why = "no threshold passes what people pass more often than what they fail"
        thresholds, shares = [Threshold(BALANCE, None, reason=why)], []
    else:
        thresholds = [tested(BALANCE, best, scores, passed, calibrating, clusters)]
        passing = scores >= best
        shares = [
            PassShare(
                "the testing half",
                share(passing, ~calibrating, clusters),
                corrected_share(passing, passed, calibrating, ~calibrating, clusters),
                share(passed, ~calibrating, clusters),
            )
        ]
        if unlabelled is not None:
            shares.append(_of_unlabelled(data, passing, unlabelled[~np.isnan(unlabelled)] >= best))
    if precision is not None:
        score, highest = threshold_for(precision, own, labels)
        aim = f"precision {precision:g}"
        thresholds.append(
            tested(aim, score, scores, passed, calibrating, clusters)
            if score is not None
            else Threshold(
                aim, None, reason=f"no threshold reaches it; the highest precision is {highest:.2f}"
            )
        )
    return Passing(data.passed_from, thresholds, shares)


def _of_unlabelled(data: LabelledSet, passing: Flags, more: Flags) -> PassShare:
    """passing (n,), more (m,): which labelled and unlabelled responses the evaluator passes."""
    assert data.passed is not None
    n, m = len(passing), len(more)
    clusters = np.concatenate([data.clusters, data.clusters.max() + 1 + np.arange(m)])
    judged = np.concatenate([~data.calibrating, np.zeros(m, dtype=bool)])
    of = np.arange(n + m) >= n
    both, passed = np.concatenate([passing, more]), np.concatenate([data.passed, np.zeros(m, dtype=bool)])
    nobody = Estimate(None, reason="nobody labelled them")
    return PassShare(
        "the unlabelled responses",
        share(both, of, clusters),
        corrected_share(both, passed, judged, of, clusters),
        nobody,
    )
