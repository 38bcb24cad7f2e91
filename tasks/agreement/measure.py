"""Measure: how far the scores of an annotated set agree with people, who is tied for best, and how people agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
from tasks.maintenance.repair import mended
from tasks.stage.ledger import already_done, made_by
from tasks.stage.progress import progress
from tasks.stage.stage import Output, Resources, open_stage
from tasks.warehouse.home import Warehouse

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
    place = mended(home)

    def asked() -> tuple[dict[str, Any], dict[str, Any]]:
        with place.reader() as connection:
            used = connection.execute(
                "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
            ).fetchall()
            found = measured_set(connection, dataset)
            forced = _forced(connection, dataset) if force_systems is None else force_systems
        scored = _scored(place, dataset)
        parameters = {
            "measure": dataset,
            "in_use": [list(version) for version in used if version in scored],
            "resamples": RESAMPLES,
            "seed": SEED,
            **({"forced": True} if forced else {}),
        }
        keys = [_key(version, dataset) for version in scored]
        # Called so, an upgrade tells that what was made of them counts as made.
        return parameters, {dataset: found and found.sha256, "tables": made_by(place, "scores", keys)}

    parameters, inputs = asked()
    if inputs[dataset] is None or _done(place, dataset, parameters, inputs):
        return False
    with open_stage(place, "measure", parameters, inputs, resources) as stage:
        parameters, inputs = asked()  # under the lock
        stage.parameters, stage.inputs = parameters, inputs
        if _done(place, dataset, parameters, inputs):
            return False
        found = measured_set(stage.connection, dataset)
        assert found is not None
        versions = _unmeasured(place, dataset, parameters, inputs)
        with progress(f"measuring agreement on {dataset}"):
            rows = [
                row
                for version in versions
                for row in _agreement(stage.connection, found, version, "forced" in parameters)
            ]
            stage.create_from_rows("agreement", rows)
            in_use = [(name, number) for name, number in parameters["in_use"]]
            compared, ranked = comparison_rows(stage.connection, found, in_use, seed=SEED)
            stage.create_from_rows("comparisons", compared)
            stage.create_from_rows("rankings", ranked)
            keep = _all_keep(stage.connection, found, list(_scored(place, dataset)))
            stage.create_from_rows("rater_agreement", list(_raters(stage.connection, found, keep)))
        stage.gate()
        stage.publish(
            [
                *(
                    Output(
                        "agreement",
                        _key((name, number), dataset),
                        f"evaluator = '{name}' AND version = {number}",
                    )
                    for name, number in versions
                ),
                *(Output(table, dataset) for table in OF_THE_SET),
            ]
        )
    return True


def measure_all(home: str, *, resources: Resources | None = None) -> list[str]:
    """Measure every annotated set that is not as it should be; their names."""
    with Warehouse.at(home).reader() as connection:
        names = connection.execute("SELECT DISTINCT dataset FROM annotated ORDER BY dataset").fetchall()
    return [dataset for (dataset,) in names if measure(dataset, home, resources=resources)]


def _forced(connection: duckdb.DuckDBPyConnection, dataset: str) -> bool:
    """Whether the set's published figures have a system level of too few systems."""
    row = connection.execute("SELECT bool_or(forced) FROM agreement WHERE dataset = ?", [dataset]).fetchone()
    return bool(row and row[0])


def _key(version: Version, dataset: str) -> str:
    return f"{version[0]}@{version[1]}@{dataset}@annotated"


def _scored(home: Warehouse, dataset: str) -> list[Version]:
    """The versions with whole scores of the set."""
    damaged = {one.part for one in home.damage()}
    found = []
    for part in home.parts():
        if part.table == "scores" and part.key.endswith(f"@{dataset}@annotated") and part not in damaged:
            name, version, _ = part.key.split("@", 2)
            if _key((name, int(version)), dataset) == part.key:
                found.append((name, int(version)))
    return sorted(found)


def _done(home: Warehouse, dataset: str, parameters: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
    return already_done(home, "measure", parameters, inputs) and not _unmeasured(
        home, dataset, parameters, inputs
    )


def _unmeasured(
    home: Warehouse, dataset: str, parameters: Mapping[str, Any], inputs: Mapping[str, Any]
) -> list[Version]:
    """Versions whose `agreement` is not there, or was made of other scores or with other draws."""
    damaged = {one.part for one in home.damage()}
    made = {p.key: p.run for p in home.parts() if p.table == "agreement" and p not in damaged}
    with home.reader() as connection:
        runs = {
            run: (json.loads(asked), json.loads(read))
            for run, asked, read in connection.execute(
                "SELECT run_id, parameters, inputs FROM runs WHERE stage = 'measure'"
            ).fetchall()
        }
    found = []
    for line in inputs["tables"]:
        key = line.partition(" ")[2].rpartition(" ")[0]  # names of sets may hold blanks
        asked, read = runs.get(made.get(key, ""), ({}, {}))
        drawn = all(asked.get(name) == parameters.get(name) for name in ("resamples", "seed", "forced"))
        if not drawn or line not in read.get("tables", ()):
            name, version, _ = key.split("@", 2)
            found.append((name, int(version)))
    return found


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
