"""Figures over responses with 95% intervals, from a bootstrap that draws contexts instead of single responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import share_interval
from ssrem.agreement.correlate import Floats, Integers
from ssrem.agreement.figures import RESAMPLES, SEED
from ssrem.agreement.resample import Weighted, interval, ratio

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Estimate:
    """A value over n responses with its 95% interval, low to high; None where not computable, and reason says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""


NOTHING = Estimate(None)


def weighted_mean(values: Floats, of: Flags) -> Weighted:
    """Mean of the values (n,) of those responses that `of` (n,) marks, as a function of weights of responses (r, n)."""
    chosen, count = values * of, of.astype(np.float64)
    return lambda weights: ratio(weights @ chosen, weights @ count)


def over_contexts(statistic: Weighted, clusters: Integers, of: Flags) -> Estimate:
    """Estimate of a statistic, a function of weights of responses (r, n), with a BCa interval from resampled contexts.
    clusters: the context of each response (n,), as a number; of: which responses (n,) it is computed from."""
    value = float(statistic(np.ones((1, len(of))))[0])
    n = int(of.sum())
    if np.isnan(value):
        return Estimate(None, n=n, reason="it is not defined")
    codes = np.unique(clusters[of], return_inverse=True)[1]

    def among(weights: Floats) -> Floats:
        whole = np.zeros((len(weights), len(of)))
        whole[:, of] = weights[:, codes]
        return statistic(whole)

    ends = interval(value, among, codes, RESAMPLES, SEED)
    return Estimate(value, n=n, reason=ends) if isinstance(ends, str) else Estimate(value, *ends, n)


def share(hits: Flags, of: Flags, clusters: Integers) -> Estimate:
    """Share in [0, 1] of hits among the responses that `of` marks, with its interval over contexts; all arrays (n,).

    If the bootstrap has no interval, as with few contexts or where every resample gives the same share, such as 0 or 1,
    the interval is Wilson's (1927) for as many independent responses as there are contexts.
    """
    n = int(of.sum())
    if not n:
        return Estimate(None, reason="no response to count")
    estimate = over_contexts(weighted_mean(hits.astype(np.float64), of), clusters, of)
    if estimate.low is None and estimate.value is not None:
        contexts = len(np.unique(clusters[of]))
        return Estimate(estimate.value, *share_interval(estimate.value, contexts), n)
    return estimate
