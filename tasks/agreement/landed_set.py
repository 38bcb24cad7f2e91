"""An annotated set in the published tables: writes its rows, and reads its scores and human scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.annotated import Annotated
from ssrem.agreement.inputs import Floats, Responses
from ssrem.agreement.raters.reliability import Ratings
from ssrem.evaluators.parts import PARTS, overall_part
from ssrem.samples import Sample
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.partition import PartitionKey

GROUND_TRUTH = "ground-truth"
"""How signatures name excluded ground-truth rows."""


DEFAULT_TEST = "paired-bootstrap"


@dataclass(frozen=True)
class Options:
    """How agreement of a version is computed. ground_truth_kept: with ground-truth rows too; systems_forced: at system
    level even of too few systems; permutations: of the test behind p_permuted, 0 for none."""

    ground_truth_kept: bool = False
    systems_forced: bool = False
    permutations: int = 0


@dataclass(frozen=True)
class ScoredSet:
    """An annotated set. sha256: of its content; contexts, systems, truth (n,): context and system of each response, and
    whether it is ground truth."""

    dataset: str
    sha256: str
    contexts: Sequence[str]
    systems: Sequence[str | None]
    truth: np.ndarray[Any, np.dtype[np.bool_]]

    def __len__(self) -> int:
        return len(self.contexts)

    def responses(self, scores: Floats, human: Floats, *, ground_truth_kept: bool) -> Responses:
        """The responses with a human score. scores, human: (n,), NaN for missing."""
        rated = ~np.isnan(human)
        excluded = rated & self.truth & (not ground_truth_kept)
        at = np.flatnonzero(rated & ~excluded).tolist()
        contexts, systems = [self.contexts[n] for n in at], [self.systems[n] for n in at]
        return Responses(scores[at], human[at], contexts, systems, int(excluded.sum()))


def landed_sets(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Every annotated set that has landed, by name, to the digest of its content."""
    return dict(
        connection.execute(
            "SELECT dataset, any_value(sha256) FROM rated_responses GROUP BY dataset ORDER BY dataset"
        ).fetchall()
    )


def response_rows(dataset: str, digest: str, annotated: Sequence[Annotated]) -> Iterator[dict[str, Any]]:
    """Rows of `rated_responses`."""
    for number, row in enumerate(annotated):
        yield {
            "dataset": dataset,
            "sha256": digest,
            "response_id": str(number),
            "dialogue_id": row.dialogue_id,
            "context": list(row.context),
            "response": row.response,
            "reference": row.reference,
            "system": row.system,
            "ground_truth": row.ground_truth,
        }


def rating_rows(dataset: str, annotated: Sequence[Annotated]) -> Iterator[dict[str, Any]]:
    """Rows of `ratings`."""
    for number, row in enumerate(annotated):
        for criterion, ratings in row.ratings.items():
            for rater, score in enumerate(ratings):
                if score is not None:
                    yield {
                        "dataset": dataset,
                        "response_id": str(number),
                        "criterion": criterion,
                        "rater": rater,
                        "score": score,
                    }


def samples_of(connection: duckdb.DuckDBPyConnection, dataset: str) -> list[Sample]:
    """The responses of the set, as evaluators get them."""
    rows = connection.execute(
        "SELECT context, response, reference FROM rated_responses WHERE dataset = ? "
        "ORDER BY response_id::BIGINT",
        [dataset],
    ).fetchall()
    return [Sample(tuple(context), response, reference) for context, response, reference in rows]


def scored_set(connection: duckdb.DuckDBPyConnection, dataset: str) -> ScoredSet | None:
    """The annotated set of that name; None if it has not landed."""
    rows = connection.execute(
        "SELECT sha256, array_to_string(context, chr(31)), system, ground_truth FROM rated_responses "
        "WHERE dataset = ? ORDER BY response_id::BIGINT",
        [dataset],
    ).fetchall()
    if not rows:
        return None
    digests, contexts, systems, truth = zip(*rows, strict=True)
    return ScoredSet(dataset, digests[0], contexts, systems, np.array(truth, dtype=bool))


def human_scores(connection: duckdb.DuckDBPyConnection, data: ScoredSet) -> dict[tuple[str, str], Floats]:
    """(criterion, aggregation) to the human score of each response (n,), NaN for missing."""
    scores: dict[tuple[str, str], Floats] = {}
    for criterion, aggregation, number, score in connection.execute(
        "SELECT criterion, aggregation, response_id::BIGINT, score FROM human_scores WHERE dataset = ? ORDER BY ALL",
        [data.dataset],
    ).fetchall():
        scores.setdefault((criterion, aggregation), np.full(len(data), np.nan))[number] = score
    return scores


def ratings_of(connection: duckdb.DuckDBPyConnection, data: ScoredSet) -> dict[str, Ratings]:
    """Criterion to its ratings (raters, n), NaN for missing; raters as in the table `ratings`."""
    rows = connection.execute(
        "SELECT criterion, rater, response_id::BIGINT, score FROM ratings WHERE dataset = ? ORDER BY ALL",
        [data.dataset],
    ).fetchall()
    raters: dict[str, int] = {}
    for criterion, rater, *_ in rows:
        raters[criterion] = max(raters.get(criterion, 0), rater + 1)
    tables = {criterion: np.full((count, len(data)), np.nan) for criterion, count in raters.items()}
    for criterion, rater, number, score in rows:
        tables[criterion][rater, number] = score
    return tables


def scores_of(
    connection: duckdb.DuckDBPyConnection, data: ScoredSet, version: Version, table: str = "scores"
) -> dict[str, Floats]:
    """Part (f, g, h) → its values (n,), NaN for missing, for the parts that the version has of any response."""
    scores = {part: np.full(len(data), np.nan) for part in PARTS}
    for number, *values in connection.execute(
        f"SELECT response_id::BIGINT, {', '.join(PARTS)} FROM {table} "
        "WHERE evaluator = ? AND version = ? AND dataset = ? AND kind = 'response'",
        [*version, data.dataset],
    ).fetchall():
        for part, value in zip(PARTS, values, strict=True):
            if value is not None and isfinite(value):  # the gate refuses scores that are not
                scores[part][number] = value
    return {part: values for part, values in scores.items() if not np.isnan(values).all()}


def overall_part_of(connection: duckdb.DuckDBPyConnection, version: Version, dataset: str) -> str:
    """Which of f, g and h is the version's score of the annotated set."""
    row = connection.execute(
        "SELECT count(f), count(g), count(h) FROM scores "
        "WHERE evaluator = ? AND version = ? AND dataset = ? AND kind = 'response'",
        [*version, dataset],
    ).fetchone()
    return overall_part(dict(zip(PARTS, row or (0, 0, 0), strict=True)))


def published_options(connection: duckdb.DuckDBPyConnection, dataset: str) -> dict[Version, Options]:
    """The options with which the published figures of each version were computed."""
    rows = connection.execute(
        "SELECT DISTINCT evaluator, version, ground_truth_kept, systems_forced, permutations FROM agreement "
        "WHERE dataset = ? AND level <> 'conversation' ORDER BY ALL",
        [dataset],
    ).fetchall()
    return {(name, version): Options(*options) for name, version, *options in rows}


def published_test(connection: duckdb.DuckDBPyConnection, dataset: str) -> str:
    """The test with which the evaluators were compared on the set in the last run; `DEFAULT_TEST` before the first."""
    row = connection.execute("SELECT any_value(test) FROM rankings WHERE dataset = ?", [dataset]).fetchone()
    return (row and row[0]) or DEFAULT_TEST


def version_outputs(table: str, dataset: str, versions: Sequence[Version]) -> list[Output]:
    """The partitions of a staged table that has one for each evaluator version."""
    return [
        Output(
            table,
            PartitionKey(dataset=dataset, evaluator=name, version=number),
            f"evaluator = '{name}' AND version = {number}",
        )
        for name, number in versions
    ]
