"""What the functions of agreement take and how they say that there is no figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = Sequence[float] | Floats
Labels = Sequence[Any] | NDArray[Any]

Measure = Literal["pearson", "spearman", "kendall", "accuracy"]
EQUAL = 1e-10
"""Figures closer than this differ by rounding alone."""

MEASURES: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "accuracy")

Sides = Literal["two-sided", "greater"]
"""Of a test that first is better than second. two-sided: they differ; greater: first is better."""

Outcome = Literal["ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate"]
"""ok: there are figures. Otherwise they are None, and a reason in words stands beside the outcome."""


def columns(*values: Numbers) -> tuple[Floats, int]:
    """The rows in which no value is missing (NaN), float64 (m, k), and how many were left out.

    ValueError where the k values are not of one length, or one is infinite.
    """
    rows = _stacked(*values)
    there = complete(*values)
    return rows[there], int((~there).sum())


def complete(*values: Numbers) -> NDArray[np.bool_]:
    """Which rows have no value missing, (n,). ValueError as in `columns`."""
    there: NDArray[np.bool_] = ~np.isnan(_stacked(*values).sum(axis=1))
    return there


def numbered(labels: Labels, n: int, of: str) -> tuple[list[str], Integers]:
    """Distinct labels in sorted order of their text, and each row's place among them (n,).

    ValueError where there are not n of them, or one is None; `of` names them in it.
    """
    if len(labels) != n:
        raise ValueError(f"{len(labels)} {of} do not fit {n} scores")
    if any(label is None for label in labels):
        raise ValueError(f"some of the {of} are None: leave those responses out, or name them")
    texts = [str(label) for label in labels]
    names = sorted(set(texts))
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place[text] for text in texts], dtype=np.int64)


def those(labels: Labels, there: NDArray[np.bool_], of: str) -> tuple[list[str], Integers]:
    """`numbered` labels of the rows that are there (n,), of labels (n,)."""
    if len(labels) != len(there):
        raise ValueError(f"{len(labels)} {of} do not fit {len(there)} scores")
    kept = [label for label, keep in zip(labels, there, strict=True) if keep]
    return numbered(kept, len(kept), of)


def unvarying(*values: Floats) -> bool:
    """Whether any of the values (m,) is the same throughout."""
    return any(len(one) > 0 and bool((one == one[0]).all()) for one in values)


def _stacked(*values: Numbers) -> Floats:
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    if any(one.ndim != 1 or one.shape != arrays[0].shape for one in arrays):
        raise ValueError(f"shapes {', '.join(str(one.shape) for one in arrays)} are not rows of one length")
    rows = np.stack(arrays, axis=1)
    if np.isinf(rows).any():
        raise ValueError(f"{int(np.isinf(rows).any(axis=1).sum())} of {len(rows)} rows hold an infinity")
    return rows
