"""Agree again: an annotated set that landed before is scored with further versions; its file may be gone."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from prefect import task

from ssrem.agreement.annotated import Annotated
from tasks.agreement.land import add_agreement, agreement_outputs
from tasks.maintenance.repair import mended
from tasks.stage.stage import Resources, open_stage


@task(name="agree again")
def agree_again(
    dataset: str,
    evaluators: Sequence[tuple[str, int]],
    home: str,
    *,
    resources: Resources | None = None,
) -> bool:
    """Score an annotated set that is in the home folder with further versions; False where that is done already."""
    place = mended(home)
    with place.reader() as connection:
        annotated = _landed_set(connection, dataset)
        scored = connection.execute(
            "SELECT DISTINCT evaluator, version FROM scores WHERE dataset = ? AND kind = 'response'",
            [dataset],
        ).fetchall()
    missing = [version for version in evaluators if version not in scored]
    if not missing:
        return False
    parameters = {"dataset": dataset, "evaluators": sorted(missing), "keep_ground_truth": False}
    with open_stage(place, "agree", parameters, {}, resources) as stage:
        add_agreement(stage, dataset, annotated, missing, False)
        stage.gate()
        stage.publish(agreement_outputs(dataset, missing))
    return True


def _landed_set(connection: duckdb.DuckDBPyConnection, dataset: str) -> list[Annotated]:
    """The annotated set as it was read, from the tables."""
    ratings: dict[str, dict[str, list[float]]] = {}
    for response, criterion, score in connection.execute(
        "SELECT response_id, criterion, score FROM annotations WHERE dataset = ? ORDER BY criterion, rater",
        [dataset],
    ).fetchall():
        ratings.setdefault(response, {}).setdefault(criterion, []).append(score)
    rows = connection.execute(
        "SELECT response_id, dialogue_id, context, response, reference, system FROM annotated WHERE dataset = ? "
        "ORDER BY response_id::BIGINT",
        [dataset],
    ).fetchall()
    return [
        Annotated(
            dialogue,
            tuple(context),
            response,
            reference,
            system,
            {c: tuple(s) for c, s in ratings[number].items()},
        )
        for number, dialogue, context, response, reference, system in rows
    ]
