"""An annotated set with its scores, as the published tables hold it: what figures of agreement are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.figures import Figure, Responses
from ssrem.agreement.inputs import Floats
from ssrem.agreement.raters.reliability import Ratings
from ssrem.agreement.signature import Signature, digest, versions

SCORES = ("f", "g", "h")
Version = tuple[str, int]

FORCED = "system-forced"
"""What a signature calls the system level of too few systems."""

GROUND_TRUTH = "ground-truth"
"""What a signature says is left out where ground-truth rows are."""


@dataclass(frozen=True)
class MeasuredSet:
    """An annotated set: digest of its content; of each response (n,) its context, system, and whether it is true."""

    dataset: str
    sha256: str
    contexts: Sequence[str]
    systems: Sequence[str | None]
    truth: np.ndarray[Any, np.dtype[np.bool_]]

    def __len__(self) -> int:
        return len(self.contexts)

    def responses(self, scores: Floats, human: Floats, *, keep_ground_truth: bool) -> Responses:
        """Those with a human score; scores and human (n,), NaN for missing."""
        at = np.flatnonzero(~np.isnan(human) & (keep_ground_truth | ~self.truth)).tolist()
        return Responses(scores[at], human[at], [self.contexts[n] for n in at], [self.systems[n] for n in at])

    def excluded(self, human: Floats, *, keep_ground_truth: bool) -> tuple[str, ...]:
        """What a signature names as left out of the responses with a human score (n,)."""
        return (GROUND_TRUTH,) if not keep_ground_truth and (self.truth & ~np.isnan(human)).any() else ()


def measured_set(connection: duckdb.DuckDBPyConnection, dataset: str) -> MeasuredSet | None:
    """The set of that name, None where none is published."""
    rows = connection.execute(
        "SELECT sha256, array_to_string(context, chr(31)), system, ground_truth FROM annotated WHERE dataset = ? "
        "ORDER BY response_id::BIGINT",
        [dataset],
    ).fetchall()
    if not rows:
        return None
    return MeasuredSet(
        dataset,
        rows[0][0],
        [row[1] for row in rows],
        [row[2] for row in rows],
        np.array([row[3] for row in rows], dtype=bool),
    )


def human_scores(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet
) -> dict[tuple[str, str], Floats]:
    """(criterion, aggregation) to the human score of each response (n,), NaN for missing."""
    found: dict[tuple[str, str], Floats] = {}
    for criterion, aggregation, number, score in connection.execute(
        "SELECT criterion, aggregation, response_id::BIGINT, score FROM human_scores WHERE dataset = ? ORDER BY ALL",
        [measured.dataset],
    ).fetchall():
        found.setdefault((criterion, aggregation), np.full(len(measured), np.nan))[number] = score
    return found


def ratings(connection: duckdb.DuckDBPyConnection, measured: MeasuredSet) -> dict[str, Ratings]:
    """Criterion to its ratings (raters, n), NaN for missing; a rater is a place in the responses' lists of scores."""
    rows = connection.execute(
        "SELECT criterion, rater, response_id::BIGINT, score FROM annotations WHERE dataset = ? ORDER BY ALL",
        [measured.dataset],
    ).fetchall()
    raters: dict[str, int] = {}
    for criterion, rater, *_ in rows:
        raters[criterion] = max(raters.get(criterion, 0), rater + 1)
    found = {criterion: np.full((count, len(measured)), np.nan) for criterion, count in raters.items()}
    for criterion, rater, number, score in rows:
        found[criterion][rater, number] = score
    return found


def scores_of(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, version: Version
) -> dict[str, Floats]:
    """Score (f, g, h) to its values (n,), NaN for missing, of those that the version gives of any response."""
    found = {score: np.full(len(measured), np.nan) for score in SCORES}
    for number, *values in connection.execute(
        "SELECT response_id::BIGINT, f, g, h FROM scores WHERE evaluator = ? AND version = ? AND dataset = ? "
        "AND kind = 'response'",
        [*version, measured.dataset],
    ).fetchall():
        for score, value in zip(SCORES, values, strict=True):
            if value is not None:
                found[score][number] = value
    return {score: values for score, values in found.items() if not np.isnan(values).all()}


def keeps_ground_truth(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, version: Version
) -> bool:
    """Whether the version's `correlations` are with ground-truth rows: figures beside them rest on the same rows."""
    row = connection.execute(
        "SELECT max(excluded) FROM correlations WHERE evaluator = ? AND version = ? AND dataset = ? "
        "AND level <> 'conversation'",
        [*version, measured.dataset],
    ).fetchone()
    return bool(row and row[0] == 0)


def weights_of(connection: duckdb.DuckDBPyConnection, version: Version) -> str:
    """Digest of the evaluator's own signature."""
    row = connection.execute(
        "SELECT signature FROM evaluators WHERE evaluator = ? AND version = ?", list(version)
    ).fetchone()
    assert row is not None  # scores refer to it
    return digest(row[0])


def signature_of(
    figure: Figure,
    measured: MeasuredSet,
    version: Version,
    weights: str,
    asked: tuple[str, str],
    score: str,
    excluded: tuple[str, ...],
) -> Signature:
    """The signature of a figure. asked: criterion and aggregation."""
    return Signature(
        evaluator=f"{version[0]}@{version[1]}",
        weights=weights,
        score=score,
        dataset=measured.dataset,
        data=measured.sha256[:16],
        criterion=asked[0],
        aggregation=asked[1],
        level=FORCED if figure.forced else figure.level,
        grouping=figure.grouping,
        measure=figure.measure,
        excluded=excluded,
        n=figure.n,
        resamples=figure.resamples,
        seed=figure.seed,
        **versions(),
    )
