"""Measure: how far the scores of an annotated set agree with people, who is tied for best, and how people agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
from prefect import task

from ssrem.agreement.figures import RESAMPLES, SEED, figures
from ssrem.agreement.raters.ceiling import rater_figures
from tasks.agreement.pairwise import comparison_rows
from tasks.agreement.scored_set import (
    MeasuredSet,
    Version,
    human_scores,
    keeps_ground_truth,
    measured_set,
    ratings,
    scores_of,
    signature_of,
    weights_of,
)
from tasks.stage.ledger import Recipe, already_done, sources
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

OF_THE_SET = ("comparisons", "rankings", "rater_agreement")
"""Tables whose part is the annotated set's."""


@task(name="measure agreement")
def measure(
    dataset: str, home: str, *, force_systems: bool | None = None, resources: Resources | None = None
) -> bool:
    """Publish `agreement` of the versions that scored the set and have none of these scores yet, and the set's
    `comparisons`, `rankings` and `rater_agreement`; False where all are as they should be.

    force_systems: whether too few systems have figures at system level all the same; None: as it was for the set.
    """
    place = Warehouse.at(home)

    def recipe() -> Recipe:
        with place.reader() as connection:
            used = connection.execute(
                "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
            ).fetchall()
            measured = measured_set(connection, dataset)
            forced = _forced(connection, dataset) if force_systems is None else force_systems
        scored = _scored(place, dataset)
        parameters = {
            "measure": dataset,
            "in_use": [list(version) for version in used if version in scored],
            "resamples": RESAMPLES,
            "seed": SEED,
            **({"forced": True} if forced else {}),
        }
        scores = sources(place, ["scores"], [_key(version, dataset) for version in scored])
        return Recipe(parameters, {dataset: measured and measured.sha256, "tables": scores})

    def done(asked: Recipe) -> bool | None:
        absent = asked.inputs[dataset] is None
        return False if absent or _done(place, dataset, asked) else None

    def build(stage: Stage) -> Built[bool]:
        measured = measured_set(stage.connection, dataset)
        assert measured is not None
        parameters = stage.recipe.parameters
        versions = _unmeasured(place, dataset, stage.recipe)
        with progress(f"measuring agreement on {dataset}"):
            rows = [
                row
                for version in versions
                for row in _agreement(stage.connection, measured, version, "forced" in parameters)
            ]
            stage.create_from_rows("agreement", rows)
            in_use = [(name, number) for name, number in parameters["in_use"]]
            compared, ranked = comparison_rows(stage.connection, measured, in_use, seed=SEED)
            stage.create_from_rows("comparisons", compared)
            stage.create_from_rows("rankings", ranked)
            keep = _all_keep(stage.connection, measured, list(_scored(place, dataset)))
            stage.create_from_rows("rater_agreement", list(_raters(stage.connection, measured, keep)))
        outputs = [
            Output(
                "agreement",
                _key((name, number), dataset),
                f"evaluator = '{name}' AND version = {number}",
            )
            for name, number in versions
        ]
        of_the_set = [Output(table, PartitionKey(dataset=dataset)) for table in OF_THE_SET]
        return Built(True, [*outputs, *of_the_set])

    return run_stage(place, "measure", recipe, build, done=done, resources=resources)


def measure_all(home: str, *, resources: Resources | None = None) -> list[str]:
    """Measure every annotated set that is not as it should be; their names."""
    with Warehouse.at(home).reader() as connection:
        names = connection.execute("SELECT DISTINCT dataset FROM annotated ORDER BY dataset").fetchall()
    return [dataset for (dataset,) in names if measure(dataset, home, resources=resources)]


def _forced(connection: duckdb.DuckDBPyConnection, dataset: str) -> bool:
    """Whether the set's published figures have a system level of too few systems."""
    row = connection.execute("SELECT bool_or(forced) FROM agreement WHERE dataset = ?", [dataset]).fetchone()
    return bool(row and row[0])


def _key(version: Version, dataset: str) -> PartitionKey:
    return PartitionKey(dataset=dataset, evaluator=version[0], version=version[1])


def _scored(home: Warehouse, dataset: str) -> list[Version]:
    """The versions with intact scores of the set."""
    damaged = {damage.partition for damage in home.damage()}
    return sorted(
        (p.key.evaluator, p.key.version)
        for p in home.partitions()
        if p.table == "scores" and p.key.dataset == dataset and p not in damaged
        if p.key.evaluator is not None and p.key.version is not None
    )


def _done(home: Warehouse, dataset: str, recipe: Recipe) -> bool:
    return already_done(home, "measure", recipe) and not _unmeasured(home, dataset, recipe)


def _unmeasured(home: Warehouse, dataset: str, recipe: Recipe) -> list[Version]:
    """Versions whose `agreement` is missing, or was computed from other scores or with other draws."""
    damaged = {damage.partition for damage in home.damage()}
    run_of = {p.key: p.run for p in home.partitions() if p.table == "agreement" and p not in damaged}
    with home.reader() as connection:
        runs = {
            run: Recipe(json.loads(parameters), json.loads(inputs))
            for run, parameters, inputs in connection.execute(
                "SELECT run_id, parameters, inputs FROM runs WHERE stage = 'measure'"
            ).fetchall()
        }
    unmeasured = []
    for scores in recipe.inputs["tables"]:
        version = (scores["evaluator"], scores["version"])
        before = runs.get(run_of.get(_key(version, dataset), ""), Recipe({}, {}))
        same_draws = all(
            before.parameters.get(name) == recipe.parameters.get(name)
            for name in ("resamples", "seed", "forced")
        )
        if not same_draws or scores not in before.inputs.get("tables", ()):
            unmeasured.append(version)
    return unmeasured


def _agreement(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, version: Version, force: bool
) -> Iterator[dict[str, Any]]:
    keep = keeps_ground_truth(connection, measured, version)
    weights = weights_of(connection, version)
    scores = scores_of(connection, measured, version)
    for (criterion, aggregation), human in human_scores(connection, measured).items():
        for score, values in scores.items():
            responses = measured.responses(values, human, keep_ground_truth=keep)
            excluded = measured.excluded(human, keep_ground_truth=keep)
            for figure in figures(responses, slow=aggregation == "mean", force=force):
                signature = signature_of(
                    figure, measured, version, weights, (criterion, aggregation), score, excluded
                )
                yield {
                    "evaluator": version[0],
                    "version": version[1],
                    "dataset": measured.dataset,
                    "criterion": criterion,
                    "aggregation": aggregation,
                    "score": score,
                    **vars(figure),
                    "reason": figure.reason or None,
                    "signature": str(signature),
                }


def _all_keep(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, versions: Sequence[Version]
) -> bool:
    return bool(versions) and all(keeps_ground_truth(connection, measured, version) for version in versions)


def _raters(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, keep: bool
) -> Iterator[dict[str, Any]]:
    for criterion, table in ratings(connection, measured).items():
        rated = table if keep else np.where(measured.truth, np.nan, table)
        for found in rater_figures(rated, seed=SEED):
            yield {
                "dataset": measured.dataset,
                "criterion": criterion,
                **vars(found),
                "reason": found.reason or None,
            }
