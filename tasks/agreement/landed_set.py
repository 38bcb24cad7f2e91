"""An annotated set as rows of `rated_responses` and `ratings`, and read back from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from ssrem.agreement.annotated import Annotated


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
                yield {
                    "dataset": dataset,
                    "response_id": str(number),
                    "criterion": criterion,
                    "rater": rater,
                    "score": score,
                }


def landed_set(connection: duckdb.DuckDBPyConnection, dataset: str) -> list[Annotated]:
    """The annotated set as it was read from its file."""
    ratings: dict[str, dict[str, list[float]]] = {}
    for response, criterion, score in connection.execute(
        "SELECT response_id, criterion, score FROM ratings WHERE dataset = ? ORDER BY criterion, rater",
        [dataset],
    ).fetchall():
        ratings.setdefault(response, {}).setdefault(criterion, []).append(score)
    rows = connection.execute(
        "SELECT response_id, dialogue_id, context, response, reference, system FROM rated_responses "
        "WHERE dataset = ? ORDER BY response_id::BIGINT",
        [dataset],
    ).fetchall()
    return [
        Annotated(
            dialogue,
            tuple(context),
            response,
            reference,
            system,
            {criterion: tuple(scores) for criterion, scores in ratings[number].items()},
        )
        for number, dialogue, context, response, reference, system in rows
    ]
