"""Compares two rows that were trained with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssrem.agreement.correlate import numbered
from ssrem.agreement.resample import context_draws, evaluated, weighted_spearman
from ssrem.samples import Floats, Labels

RESAMPLES = 2_000


@dataclass(frozen=True)
class Compared:
    """Spearman of one row less that of another, with its 95% interval and two-sided p by a percentile bootstrap."""

    difference: float
    low: float
    high: float
    p: float


def difference_over_seeds(one: Sequence[Floats], other: Sequence[Floats], labels: Labels) -> Compared:
    """The mean over seeds of Spearman with the human scores (n,) of `one`, less that of `other`: scores (n,) by seed.

    A resample draws contexts, the same for both rows, and as many seeds as a row has, for each row by itself, so that
    the interval covers other responses and other seeds. With one seed it covers other responses alone.
    """
    contexts = [" ".join(sample.context) for sample in labels.samples]
    clusters = numbered(contexts, len(contexts), "contexts")[1]
    draw = np.random.default_rng(1)
    value, replicates = 0.0, np.zeros(RESAMPLES)
    for sign, runs in ((1, one), (-1, other)):
        coefficients = [weighted_spearman(scores, labels.human, clusters) for scores in runs]
        whole = np.ones((1, int(clusters.max()) + 1))
        value += sign * float(np.mean([of(whole)[0] for of in coefficients]))
        resampled = np.stack([evaluated(of, context_draws(clusters, RESAMPLES, 0)) for of in coefficients])
        seeds = draw.integers(len(runs), size=(len(runs), RESAMPLES))
        replicates += sign * np.take_along_axis(resampled, seeds, axis=0).mean(axis=0)
    low, high = np.quantile(replicates, [0.025, 0.975])
    beyond = min(int((replicates <= 0).sum()), int((replicates >= 0).sum())) + 1
    return Compared(value, float(low), float(high), min(1.0, 2 * beyond / (RESAMPLES + 1)))
