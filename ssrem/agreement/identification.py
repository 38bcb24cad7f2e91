"""How well f tells true responses from false ones (Bak and Oh 2020, section 6, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ssrem.agreement import Z_95
from ssrem.samples import CONTEXT_ATTACK, Floats


@dataclass(frozen=True)
class KindRow:
    """One kind of response: mean f with its 95% interval over n responses, and how often GT ranks above it.

    above: share of `pairs` in which the true response has the higher f, ties counting half; None for GT
    itself and where there is no pair. mean, low and high are None where there is no response to average.
    """

    kind: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    above: float | None
    pairs: int


def identification(f: Mapping[str, Floats]) -> list[KindRow]:
    """One row a kind, in the order given, from f (n, k) by kind with 'GT' (n, 1) among them; NaN is missing.

    A response's several negatives of a kind are averaged first, so the interval (normal) counts responses.
    ValueError where GT is absent or the arrays do not fit it.
    """
    if "GT" not in f or f["GT"].ndim != 2 or f["GT"].shape[1] != 1:
        raise ValueError("identification needs f of the true responses under 'GT', of shape (n, 1)")
    truth = f["GT"]
    rows = []
    for kind, values in f.items():
        if values.ndim != 2 or len(values) != len(truth):
            raise ValueError(f"f of kind {kind} has shape {values.shape}, expected ({len(truth)}, k)")
        scored = ~np.isnan(values)
        some = scored.any(axis=1)
        means = np.where(scored, values, 0).sum(axis=1)[some] / scored.sum(axis=1)[some]
        mean, low, high = mean_interval(means)
        above, pairs = (None, 0) if kind == "GT" else _share_above(truth, values)
        rows.append(KindRow(kind, mean, low, high, int(some.sum()), above, pairs))
    return rows


def share_above(
    f: Mapping[str, Floats],
) -> tuple[float | None, float | None, float | None, int]:
    """Mean share of a response's negatives of all kinds that its true response is above, ties counting half, with its
    normal 95% interval, and the number of responses n; f as `identification` takes it. A copied context is no negative.
    """
    truth = f["GT"]
    negatives = [values for kind, values in f.items() if kind not in ("GT", CONTEXT_ATTACK)]
    difference = truth - np.concatenate(negatives, axis=1) if negatives else np.empty((len(truth), 0))
    known = ~np.isnan(difference)
    some = known.any(axis=1)
    wins = np.where(known, (difference > 0) + 0.5 * (difference == 0), 0.0).sum(axis=1)
    return *mean_interval(wins[some] / known[some].sum(axis=1)), int(some.sum())


def mean_interval(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Mean and normal 95% interval of independent values (n,); None if undefined: the interval below two values."""
    if len(values) == 0:
        return None, None, None
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = Z_95 * float(values.std(ddof=1)) / sqrt(len(values))
    return mean, mean - half, mean + half


def _share_above(truth: Floats, values: Floats) -> tuple[float | None, int]:
    difference = (truth - values)[~np.isnan(truth - values)]
    if len(difference) == 0:
        return None, 0
    wins = float((difference > 0).sum() + 0.5 * (difference == 0).sum())
    return wins / len(difference), len(difference)
