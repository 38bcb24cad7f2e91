"""Every figure of agreement that is published, and the signature that says what it was computed from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from urllib.parse import quote

import ssrem
from ssrem.agreement import CONFIDENCE
from ssrem.agreement.correlate import (
    CORRELATIONS,
    MEASURES,
    Figure,
    Floats,
    Grouping,
    Level,
    ScoredResponses,
    View,
    agreement_at,
)
from ssrem.agreement.resample import interval, weighted_statistic

RESAMPLES = 1000
SEED = 0

LEVELS: tuple[Level, ...] = ("segment", "system")
GROUPINGS: tuple[Grouping, ...] = ("pooled", "system", "context")


def figures(responses: ScoredResponses, *, slow: bool = True, force: bool = False) -> Iterator[Figure]:
    """Yield all figures: at segment level pooled, by system (where one is known) and by context; and at system level.

    force: compute the system level even of too few systems; its figures then say `forced`.
    slow: also compute the intervals of Kendall and accuracy, pooled and by system, which take most of the time.
    """
    for grouping in GROUPINGS:
        used = responses.of_systems if grouping == "system" else responses
        if grouping == "system" and not len(used.scores):
            continue
        for measure in MEASURES:
            fast = grouping == "context" or measure in ("pearson", "spearman")
            view = View(measure, "segment", grouping)
            yield figure(used, view, resamples=RESAMPLES if slow or fast else None, seed=SEED)
    for measure in MEASURES:
        view = View(measure, "system", force=force)
        yield figure(responses.of_systems, view, resamples=RESAMPLES, seed=SEED)


def conversation_figures(scores: Floats, ratings: Floats, *, excluded: int) -> Iterator[Figure]:
    """Correlations of the mean scores of conversations with one rating of each (n,), both finite.

    Conversations are independent, so the intervals are analytic (see `pearson`) and nothing is resampled.
    """
    for correlate in CORRELATIONS.values():
        yield replace(correlate(scores, ratings), level="conversation", excluded=excluded)


def figure(responses: ScoredResponses, view: View, *, resamples: int | None, seed: int) -> Figure:
    """One figure, with its interval unless resamples is None. ValueError as in `agreement_at`."""
    one = agreement_at(responses, view)
    if resamples is None or one.statistic is None:
        return one
    statistic = weighted_statistic(responses, view, one.epsilon or 0.0)
    ends = interval(one.statistic, statistic, responses.unit, resamples, seed)
    one = replace(one, resamples=resamples, seed=seed)
    if isinstance(ends, str):
        return replace(one, reason=ends)
    return replace(one, low=ends[0], high=ends[1], confidence=CONFIDENCE)


# The signature of a figure

FORMAT = "ssrem-agreement/4"
"""The number rises when figures change: since 4, contexts that continue one another are resampled together."""
_NONE = "-"
_SAFE = "@+.,=/_~"


@dataclass(frozen=True)
class Signature:
    """All that determines a figure of agreement.

    evaluator: 'name@version'; weights: 12 or more hex digits of the digest of its own signature (see `digest`). score:
    f, g or h. data: hex digits of the digest of the annotated set's content. excluded: what was left out, sorted. n:
    number of responses, also at system level. resamples and seed are None where nothing was drawn. The last three
    fields are the versions of these packages.
    """

    evaluator: str
    weights: str
    score: str
    dataset: str
    data: str
    criterion: str
    aggregation: str
    level: str
    grouping: str
    measure: str
    excluded: tuple[str, ...]
    n: int
    resamples: int | None
    seed: int | None
    ssrem: str
    numpy: str
    scipy: str

    def __str__(self) -> str:
        return "|".join(
            [FORMAT, *(f"{field.name}:{_written(getattr(self, field.name))}" for field in fields(self))]
        )


def digest(text: str) -> str:
    """The first 12 hex digits of the SHA-256 of a text, such as an evaluator's signature."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Cached: reading a package's metadata takes milliseconds, and a table has hundreds of figures.
_installed = cache(version)


def versions() -> dict[str, str]:
    """Installed versions of ssrem, NumPy and SciPy, keyed by the fields of `Signature`."""
    return {"ssrem": ssrem.__version__, "numpy": _installed("numpy"), "scipy": _installed("scipy")}


def _written(value: object) -> str:
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return _NONE if value in (None, ()) else quote(text, safe=_SAFE)
