"""Agree again: an annotated set that landed before is scored with further versions; its file may be gone."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from prefect import task

from ssrem.agreement.annotated import Annotated
from tasks.agreement.land import add_agreement, agreement_outputs
from tasks.stage.ledger import Recipe
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Resources, Stage
from tasks.warehouse.home import Warehouse


@task(name="agree again")
def agree_again(
    dataset: str,
    evaluators: Sequence[tuple[str, int]],
    home: str,
    *,
    resources: Resources | None = None,
) -> bool:
    """Score an annotated set that is in the home folder with further versions; False where that is done already."""
    place = Warehouse.at(home)

    def missing() -> list[tuple[str, int]]:
        with place.reader() as connection:
            scored = connection.execute(
                "SELECT DISTINCT evaluator, version FROM scores WHERE dataset = ? AND kind = 'response'",
                [dataset],
            ).fetchall()
        return sorted(version for version in evaluators if version not in scored)

    def build(stage: Stage) -> Built[bool]:
        annotated, versions = _landed_set(stage.connection, dataset), missing()
        add_agreement(stage, dataset, annotated, versions, False)
        return Built(True, agreement_outputs(dataset, versions))

    return run_stage(
        place,
        "agree",
        lambda: Recipe({"dataset": dataset, "evaluators": missing(), "keep_ground_truth": False}, {}),
        build,
        done=lambda recipe: None if recipe.parameters["evaluators"] else False,
        resources=resources,
    )


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
