"""How well f tells true responses from false ones, and how alike the turns of a set are (Bak and Oh 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement import mean_interval
from ssrem.agreement.correlate import Floats, Integers
from ssrem.samples import CONTEXT_ATTACK


@dataclass(frozen=True)
class KindRow:
    """One kind of response: mean f with its 95% interval over n responses, and how often GT ranks above it.

    above: share of the candidates that have a lower f than the true response, ties counting half; None for GT, the true
    responses themselves, and where there are none. mean, low and high are None where there is no response to average.
    """

    kind: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    above: float | None


def identification(f: Mapping[str, Floats]) -> list[KindRow]:
    """One row per kind of response, in the order of `f`. f: kind → values (n, k), NaN for missing, k = 1 for kind 'GT'.

    A response's several negatives of a kind are averaged first, so the normal interval counts responses, not negatives.
    ValueError where GT, the true responses, is absent or the arrays do not fit it.
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
        difference = truth - values
        apart = difference[~np.isnan(difference)]
        wins = np.heaviside(apart, 0.5)
        above = None if kind == "GT" or len(apart) == 0 else float(wins.mean())
        rows.append(KindRow(kind, mean, low, high, int(some.sum()), above))
    return rows


def share_above(
    f: Mapping[str, Floats],
) -> tuple[float | None, float | None, float | None, int]:
    """Mean share of a response's negatives, of all kinds, that score below the true response, with the ends of its
    normal 95% interval, cut to [0, 1], and the number of responses. Ties count half. A copied context is no
    negative. f: as `identification` takes it."""
    truth = f["GT"]
    negatives = [values for kind, values in f.items() if kind not in ("GT", CONTEXT_ATTACK)]
    difference = truth - np.concatenate(negatives, axis=1) if negatives else np.empty((len(truth), 0))
    known = ~np.isnan(difference)
    some = known.any(axis=1)
    wins = np.where(known, np.heaviside(difference, 0.5), 0.0).sum(axis=1)
    share, *ends = mean_interval(wins[some] / known[some].sum(axis=1))
    low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in ends)
    return share, low, high, int(some.sum())


_CHUNK = 2_000
"""Number of members whose vectors are summed at once: few enough to stay in the processor's cache."""

_PIECE = 50_000
"""Largest number of members of one set that are summed at once; a larger set is summed piece by piece."""


@dataclass(frozen=True)
class SetMeans:
    """Sets with two usable members or more: ids (s,), mean pairwise cosine (s,) and number of usable members n (s,)."""

    set_id: Integers
    mean: Floats
    n: Integers


@dataclass(frozen=True)
class Summary:
    """Mean over speakers of each speaker's mean similarity, its normal 95% interval, and the number of speakers, sets
    and pairs it is computed from. mean is None without speakers, low and high below two."""

    mean: float | None
    low: float | None
    high: float | None
    speakers: int
    sets: int
    pairs: int


def set_similarity(vectors: NDArray[Any], set_id: Integers, rows: Integers) -> SetMeans:
    """Mean cosine over all pairs within each set, exactly, without making the pairs.

    vectors: (n, d); set_id: the set of each member (m,), the members of a set standing together; rows: the row of each
    member in vectors (m,). The mean cosine of k unit vectors v is (‖Σv‖² - k) / (k(k - 1)). Zero vectors are no
    members; sets with fewer than two members are left out. Time is linear in m; memory holds one chunk, or one piece of
    a larger set. ValueError where a set's members stand apart, or shapes differ.
    """
    if set_id.shape != rows.shape or set_id.ndim != 1:
        raise ValueError(f"set_id of shape {set_id.shape} does not fit rows of shape {rows.shape}")
    starts = np.flatnonzero(np.concatenate([[True], set_id[1:] != set_id[:-1]])) if len(set_id) else set_id
    ids = set_id[starts]
    if len(np.unique(ids)) != len(ids):
        raise ValueError("set_id is not grouped: the members of a set must stand together")
    ends = np.append(starts[1:], len(rows))
    counts = np.zeros(len(ids), dtype=np.int64)
    squares = np.zeros(len(ids))
    begin = 0
    while begin < len(ids):
        # A chunk holds whole sets, one at least, so that a set's mean does not depend on the sets beside it.
        end = max(begin + 1, int(np.searchsorted(ends, starts[begin] + _CHUNK, side="right")))
        sums: Floats = np.zeros((end - begin, vectors.shape[1]))
        for first in range(starts[begin], ends[end - 1], _PIECE):
            last = min(first + _PIECE, int(ends[end - 1]))
            units, known = _unit(vectors[rows[first:last]])
            cuts = np.maximum(starts[begin:end] - first, 0)
            sums += np.add.reduceat(units, cuts, axis=0)
            counts[begin:end] += np.add.reduceat(known.astype(np.int64), cuts)
        squares[begin:end] = np.einsum("sd,sd->s", sums, sums)
        begin = end
    usable = counts >= 2
    n = counts[usable]
    mean = (squares[usable] - n) / (n * (n - 1))
    return SetMeans(ids[usable], np.clip(mean, -1.0, 1.0), n)


def summarise(kinds: Mapping[str, SetMeans], owners: Mapping[str, Integers]) -> dict[str, Summary]:
    """Kind of set → its summary, as in Table 2 of the paper. owners: kind → the speaker of each set (s,), as a number.

    A speaker counts once, with the mean over their sets of a kind. Only speakers count who have a set of every kind
    that anyone has: means over all sets would compare different people (those who meet often have more SP).
    """
    by_speaker = {kind: _speaker_means(sets.mean, owners[kind]) for kind, sets in kinds.items()}
    present = [set(ids.tolist()) for ids, _ in by_speaker.values() if len(ids)]
    common = np.array(sorted(set.intersection(*present)) if present else [], dtype=np.int64)
    summaries = {}
    for kind, (ids, means) in by_speaker.items():
        mean, low, high = mean_interval(means[np.isin(ids, common)])
        sizes = kinds[kind].n[np.isin(owners[kind], common)]
        speakers = len(common) if len(ids) else 0
        summaries[kind] = Summary(
            mean, low, high, speakers, len(sizes), int((sizes * (sizes - 1) // 2).sum())
        )
    return summaries


def _speaker_means(values: Floats, owner: Integers) -> tuple[Integers, Floats]:
    ids, place = np.unique(owner, return_inverse=True)
    return ids, np.bincount(place, weights=values, minlength=len(ids)) / np.maximum(np.bincount(place), 1)


def _unit(vectors: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    exact = vectors.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1)
    known = norms > 0
    return exact / np.where(known, norms, 1.0)[:, None], known
