"""Bootstrap over contexts: resamples of them, and BCa intervals of agreement (bias-corrected and accelerated)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ssrem.agreement.coefficients import Weighted
from ssrem.agreement.inputs import (
    EQUAL,
    Agreement,
    Floats,
    Integers,
    Outcome,
    Responses,
    View,
    chosen_labels,
    columns,
    complete,
    numbered_within,
)
from ssrem.agreement.levels import agreement_at
from ssrem.agreement.weighted_levels import weighted_statistic

RESAMPLES = 2000
MIN_CLUSTERS = 5
"""Fewer contexts than this have too few distinct resamples for the ends of an interval."""

MAX_UNDEFINED = 0.1
"""With a larger share of undefined resamples, the others would be a biased selection."""

JACKKNIFE_GROUPS = 200
"""Most groups of contexts that are left out in turn: the acceleration of an interval needs no more."""

_CELLS = 250_000
"""Weights in a block: few enough to stay in the caches of a CPU."""
_KEPT_CELLS = 4_000_000
"""Weights of all draws up to which they are kept for the next figure: 32 MB."""


@dataclass(frozen=True)
class Interval:
    """low to high holds `statistic` at level `confidence`: BCa over `resamples` draws of `clusters` contexts.

    undefined: draws left out because they have no figure (a side does not vary in them). low and high are None unless
    outcome is 'ok', statistic is None where the data have none; reason says why in words.
    """

    statistic: float | None
    confidence: float
    clusters: int
    resamples: int
    seed: int
    low: float | None = None
    high: float | None = None
    undefined: int = 0
    outcome: Outcome = "ok"
    reason: str = ""


def agreement_interval(
    responses: Responses,
    view: View,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
    agreement: Agreement | None = None,
) -> Interval:
    """Interval of `agreement_at`, from responses (n,) resampled by context.

    agreement: the result of `agreement_at`, if it is known already. With grouping 'context' the coefficients of the
    contexts are resampled. Accuracy keeps the ε of the data, so the interval ignores the gain from choosing it. At
    system level only contexts are resampled: the interval holds for these systems, not for other ones. Errors as in
    `agreement_at`; ValueError where confidence is not within (0, 1), there is no resample, or the measure is soft
    accuracy.
    """
    check_resampling(confidence, resamples)
    agreement = agreement or agreement_at(responses, view)
    usable = complete(responses.scores, responses.human)
    clusters = numbered_within(responses.contexts, usable, "contexts")[1]
    count = len(np.unique(clusters))
    result = Interval(agreement.statistic, confidence, count, resamples, seed)
    if agreement.statistic is None:
        return replace(result, outcome=agreement.outcome, reason=agreement.reason)
    if count < MIN_CLUSTERS:
        few = f"{count} contexts to resample; {MIN_CLUSTERS} are needed"
        return replace(result, outcome="too_few", reason=few)
    x, y = columns(responses.scores, responses.human)[0].T
    systems = None if responses.systems is None else chosen_labels(responses.systems, usable)
    statistic = weighted_statistic(x, y, clusters, systems, view, agreement.epsilon or 0.0)
    return with_ends(result, *resampled(statistic, clusters, resamples, seed))


def with_ends(interval: Interval, draws: Floats, jackknife: Floats) -> Interval:
    """The interval with its ends, or why it has none.

    draws (r,), jackknife (groups,): the statistic on draws of the clusters, and without each group of them.
    """
    undefined = int(np.isnan(draws).sum())
    interval = replace(interval, undefined=undefined)
    if undefined > MAX_UNDEFINED * len(draws) or np.isnan(jackknife).any():
        reason = f"{undefined} of {len(draws)} resamples, or the data without one context, have no figure"
        return replace(interval, outcome="degenerate", reason=reason)
    assert interval.statistic is not None  # what has no statistic is not resampled
    ends = bca(interval.statistic, draws[~np.isnan(draws)], jackknife, interval.confidence)
    if isinstance(ends, str):
        return replace(interval, outcome="degenerate", reason=ends)
    return replace(interval, low=ends[0], high=ends[1])


def bca(
    estimate: float, replicates: Floats, jackknife: Floats, confidence: float = 0.95
) -> tuple[float, float] | str:
    """The two ends of a BCa interval (Efron 1987; Efron and Tibshirani 1993, section 14.3), or in words why there are
    none.

    estimate: on the data; replicates (r,): on resamples; jackknife (k,): with each cluster left out; all finite.
    confidence in (0, 1). Ties between estimate and replicates count half in the bias correction.
    """
    from scipy.special import ndtr, ndtri

    if np.ptp(replicates) < EQUAL:
        return "all resamples give the same figure"
    tied = np.abs(replicates - estimate) < EQUAL
    below = float((replicates < estimate)[~tied].sum() + tied.sum() / 2) / len(replicates)
    if below in (0.0, 1.0):
        return "all resamples lie on one side of the figure"
    bias = float(ndtri(below))
    influence = jackknife.mean() - jackknife
    spread = float((influence**2).sum())
    if spread < EQUAL**2:
        return "no context changes the figure by being left out"
    acceleration = float((influence**3).sum()) / (6 * spread**1.5)
    normal = ndtri([(1 - confidence) / 2, (1 + confidence) / 2]) + bias
    stretch = 1 - acceleration * normal
    if (stretch <= 0).any():
        return "single contexts decide the figure: its acceleration is too large for an interval"
    low, high = np.quantile(replicates, ndtr(bias + normal / stretch))
    return float(low), float(high)


def check_resampling(confidence: float, resamples: int) -> None:
    """ValueError where confidence is not within (0, 1), or there is no resample."""
    if not 0 < confidence < 1 or resamples < 1:
        raise ValueError(
            f"an interval needs a confidence within (0, 1) and resamples, not {confidence} and {resamples}"
        )


def cluster_draws(clusters: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights (r, n) in blocks, `resamples` rows in all: clusters (n,), numbers from 0, drawn with replacement.

    Responses to one context are not independent, so whole contexts are drawn.
    """
    if resamples * len(clusters) <= _KEPT_CELLS:
        yield from _kept_draws(clusters.astype(np.int64).tobytes(), resamples, seed)
    else:
        yield from _draws(clusters, resamples, seed)


@lru_cache(maxsize=2)  # all figures of a set are drawn from the same contexts
def _kept_draws(clusters: bytes, resamples: int, seed: int) -> list[Floats]:
    return list(_draws(np.frombuffer(clusters, dtype=np.int64), resamples, seed))


def _draws(clusters: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    count = int(clusters.max(initial=-1)) + 1
    times = _times_drawn(count, resamples, seed)
    for block in _blocks(times, len(clusters)):
        weights = block.astype(np.float64)[:, clusters]
        weights.flags.writeable = False
        yield weights


@lru_cache(maxsize=1)
def _times_drawn(count: int, resamples: int, seed: int) -> Integers:
    """How often each of `count` clusters is drawn in each resample, (resamples, count)."""
    draw = np.random.default_rng(seed)
    rows = (np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(resamples))
    return np.stack([row.astype(np.uint16) for row in rows])


def leave_groups_out(clusters: Integers, seed: int) -> Iterator[Floats]:
    """Weights (r, n) of the jackknife, in blocks: each row leaves out one group of clusters.

    Each cluster is a group; if there are more than JACKKNIFE_GROUPS, they are divided at random into that number of
    groups, of nearly equal size.
    """
    count = int(clusters.max(initial=-1)) + 1
    groups = np.arange(count)
    if count > JACKKNIFE_GROUPS:
        groups = np.random.default_rng(seed).permutation(count) % JACKKNIFE_GROUPS
    out = np.arange(min(count, JACKKNIFE_GROUPS))
    group = groups[clusters]
    yield from (
        (group[None, :] != block[:, None]).astype(np.float64) for block in _blocks(out, len(clusters))
    )


def _blocks(rows: Integers, columns: int) -> Iterator[Integers]:
    step = max(1, _CELLS // max(1, columns))
    yield from (rows[start : start + step] for start in range(0, len(rows), step))


def evaluated(statistic: Weighted, blocks: Iterator[Floats]) -> Floats:
    """The statistic under every row of the blocks."""
    return np.concatenate([statistic(block) for block in blocks])


def resampled(statistic: Weighted, clusters: Integers, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The statistic on draws of the clusters (resamples,), and without each group of them (groups,)."""
    draws = evaluated(statistic, cluster_draws(clusters, resamples, seed))
    return draws, evaluated(statistic, leave_groups_out(clusters, seed))
