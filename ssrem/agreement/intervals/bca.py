"""Bias-corrected and accelerated bootstrap intervals (Efron 1987; Efron and Tibshirani 1993, section 14.3)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from ssrem.agreement.inputs import EQUAL, Floats


def bca(
    estimate: float, replicates: Floats, jackknife: Floats, confidence: float = 0.95
) -> tuple[float, float] | str:
    """The two ends, or in words why there are none.

    estimate: on the data; replicates (r,): on resamples; jackknife (k,): with each cluster left out; all finite.
    confidence in (0, 1). Ties between estimate and replicates count half in the bias correction.
    """
    if np.ptp(replicates) < EQUAL:
        return "all resamples give the same figure"
    tied = np.abs(replicates - estimate) < EQUAL
    below = float((replicates < estimate)[~tied].sum() + tied.sum() / 2) / len(replicates)
    if below in (0.0, 1.0):
        return "all resamples lie on one side of the figure"
    bias = float(ndtri(below))
    off = jackknife.mean() - jackknife
    spread = float((off**2).sum())
    if spread < EQUAL**2:
        return "no context changes the figure by being left out"
    acceleration = float((off**3).sum()) / (6 * spread**1.5)
    normal = ndtri([(1 - confidence) / 2, (1 + confidence) / 2]) + bias
    stretch = 1 - acceleration * normal
    if (stretch <= 0).any():
        return "single contexts decide the figure: its acceleration is too large for an interval"
    low, high = np.quantile(replicates, ndtr(bias + normal / stretch))
    return float(low), float(high)
