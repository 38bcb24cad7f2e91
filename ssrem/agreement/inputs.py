"""What the functions of agreement take and return: responses with scores and labels, a view of them, and a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = Sequence[float] | Floats
Labels = Sequence[Any] | NDArray[Any]

Measure = Literal["pearson", "spearman", "kendall", "accuracy"]
MEASURES: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "accuracy")
SystemMeasure = Measure | Literal["soft_accuracy"]

Level = Literal["segment", "system"]
Grouping = Literal["pooled", "system", "context"]

Sides = Literal["two-sided", "greater"]
"""Alternative of a test that the first is better than the second. two-sided: they differ; greater: it is better."""

Outcome = Literal["ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate"]
"""ok: there are figures. Otherwise they are None, and a reason in words stands beside the outcome."""

EQUAL = 1e-10
"""Figures closer than this differ only by rounding."""

MIN_RESPONSES = 3
"""Fewer pairs of scores than this correlate perfectly or not at all."""


@dataclass(frozen=True)
class Responses:
    """Scores and human scores (n,), NaN for missing, with each response's context and system (None: not known).

    systems: None where systems do not matter. excluded: number of further responses with a human score that are not
    compared, such as ground truth.
    """

    scores: Floats
    human: Floats
    contexts: Labels
    systems: Labels | None = None
    excluded: int = 0

    def with_systems(self) -> Responses:
        """The responses whose system is known."""
        systems = [None] * len(self.scores) if self.systems is None else self.systems
        known = np.array([system is not None for system in systems], dtype=bool)
        return Responses(
            self.scores[known],
            self.human[known],
            chosen_labels(self.contexts, known),
            chosen_labels(systems, known),
            self.excluded,
        )


@dataclass(frozen=True)
class View:
    """Which figure to compute. grouping: at segment level; force: at system level, even of too few systems."""

    measure: SystemMeasure = "spearman"
    level: Level = "segment"
    grouping: Grouping = "pooled"
    force: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A group without a coefficient, and why."""

    group: str
    reason: str


@dataclass(frozen=True)
class Agreement:
    """How scores agree with human scores: one figure at segment or system level.

    statistic: in [-1, 1], for accuracies in [0, 1]; over `n` responses. p: in (0, 1], of no correlation, taking
    responses (system level: systems) as independent; None for accuracies and for means over groups, where
    `against_chance` gives one. missing: responses left out because a score is missing. groups: groups averaged
    (pooled: 1), at system level the systems; left_out: groups without a coefficient. epsilon: score differences that
    accuracy counts as a tie. forced: whether there were fewer systems than should be compared. Of soft accuracy: pairs
    of systems used, and left out because they share too few contexts; permutations and seed. statistic, p and epsilon
    are None unless outcome is 'ok'; reason says why in words.
    """

    measure: SystemMeasure
    statistic: float | None
    n: int
    missing: int
    groups: int
    p: float | None = None
    sides: Sides = "two-sided"
    left_out: tuple[LeftOut, ...] = ()
    epsilon: float | None = None
    forced: bool = False
    pairs: int | None = None
    pairs_left_out: int | None = None
    permutations: int | None = None
    seed: int | None = None
    outcome: Outcome = "ok"
    reason: str = ""


def columns(*values: Numbers) -> tuple[Floats, int]:
    """The rows in which no value is missing (NaN), float64 (m, k), and how many were left out.

    ValueError where the k values are not of one length, or one is infinite.
    """
    usable = complete(*values)
    return _stacked(*values)[usable], int((~usable).sum())


def complete(*values: Numbers) -> NDArray[np.bool_]:
    """Which rows have no value missing, (n,). ValueError as in `columns`."""
    usable: NDArray[np.bool_] = ~np.isnan(_stacked(*values).sum(axis=1))
    return usable


def numbered(labels: Labels, n: int, of: str) -> tuple[list[str], Integers]:
    """Distinct labels in sorted order of their text, and each row's place among them (n,).

    ValueError where there are not n of them, or one is None; `of` names them in it.
    """
    if len(labels) != n:
        raise ValueError(f"{len(labels)} {of} do not fit {n} scores")
    if any(label is None for label in labels):
        raise ValueError(f"some of the {of} are None: leave those responses out, or name them")
    names, codes = _numbered(tuple(map(str, labels)))
    return list(names), codes


@lru_cache(maxsize=16)  # all figures of a set have the same few labels
def _numbered(texts: tuple[str, ...]) -> tuple[tuple[str, ...], Integers]:
    names = tuple(sorted(set(texts)))
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place[text] for text in texts], dtype=np.int64)
    codes.flags.writeable = False
    return names, codes


def numbered_within(labels: Labels, rows: NDArray[np.bool_], of: str) -> tuple[list[str], Integers]:
    """`numbered` labels of the chosen rows (n,), of labels (n,)."""
    if len(labels) != len(rows):
        raise ValueError(f"{len(labels)} {of} do not fit {len(rows)} scores")
    return numbered(chosen_labels(labels, rows), int(rows.sum()), of)


def chosen_labels(labels: Labels, rows: NDArray[np.bool_]) -> list[Any]:
    """Labels of the chosen rows, of labels (n,) and rows (n,)."""
    return [label for label, chosen in zip(labels, rows.tolist(), strict=True) if chosen]


def unvarying(*values: Floats) -> bool:
    """Whether any of the arrays (m,) is constant."""
    return any(len(one) > 0 and bool((one == one[0]).all()) for one in values)


def _stacked(*values: Numbers) -> Floats:
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    if any(one.ndim != 1 or one.shape != arrays[0].shape for one in arrays):
        raise ValueError(f"shapes {', '.join(str(one.shape) for one in arrays)} are not rows of one length")
    rows = np.stack(arrays, axis=1)
    if np.isinf(rows).any():
        raise ValueError(f"{int(np.isinf(rows).any(axis=1).sum())} of {len(rows)} rows hold an infinity")
    return rows
