"""Figures of an annotated set as staged tables: `agreement`, `comparisons`, `rankings` and `rater_agreement`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ssrem.agreement.figures import SEED, figures
from ssrem.agreement.raters.figures import rater_figures, reliability_figures
from ssrem.agreement.raters.filters import without_outliers
from ssrem.tasks.agreement.landed_set import (
    GROUND_TRUTH,
    Options,
    ScoredSet,
    human_scores,
    ratings_of,
    scores_of,
    version_outputs,
)
from ssrem.tasks.agreement.pairwise import comparison_rows
from ssrem.tasks.scoring.signatures import Version, figure_row, signature_of, weights_of
from ssrem.tasks.stage.stage import Output, Stage
from ssrem.tasks.warehouse.partition import PartitionKey

SET_TABLES = ("comparisons", "rankings", "rater_agreement")
"""Tables whose partition covers all evaluators of an annotated set."""


def stage_figures(stage: Stage, data: ScoredSet, outdated: Sequence[Version]) -> list[Output]:
    """Stage the figures of the outdated versions and the tables of the whole set."""
    parameters, connection = stage.recipe.parameters, stage.connection
    if "scores" in stage.staged:  # together with the published scores of other versions
        connection.execute(
            "CREATE TEMP VIEW set_scores AS SELECT * FROM main.scores UNION ALL BY NAME "
            "SELECT p.* FROM published.scores AS p ANTI JOIN main.scores AS m USING (evaluator, version, dataset)"
        )
    else:
        connection.execute("CREATE TEMP VIEW set_scores AS SELECT * FROM scores")
    options = {
        (name, number): Options(
            [name, number] in parameters["ground_truth_kept"],
            parameters["systems_forced"],
            parameters["permutations"],
        )
        for name, number in parameters["evaluators"]
    }
    rows = [row for version in outdated for row in _figure_rows(stage, data, version, options[version])]
    stage.create_from_rows("agreement", rows)
    in_use = [(name, number) for name, number in parameters["in_use"]]
    with_truth = bool(in_use) and all(options[version].ground_truth_kept for version in in_use)
    scores = {version: scores_of(connection, data, version, "set_scores") for version in in_use}
    humans = human_scores(connection, data)
    compared, ranked = comparison_rows(
        data, scores, humans, ground_truth_kept=with_truth, test=parameters["test"], seed=SEED
    )
    stage.create_from_rows("comparisons", compared)
    stage.create_from_rows("rankings", ranked)
    all_kept = bool(options) and all(one.ground_truth_kept for one in options.values())
    stage.create_from_rows("rater_agreement", list(_rater_rows(stage, data, all_kept)))
    return [
        *version_outputs("agreement", data.dataset, outdated),
        *(Output(table, PartitionKey(dataset=data.dataset)) for table in SET_TABLES),
    ]


def _figure_rows(
    stage: Stage, data: ScoredSet, version: Version, options: Options
) -> Iterator[dict[str, Any]]:
    """Rows of `agreement` of a version: each part of its score with each human score."""
    connection, with_truth = stage.connection, options.ground_truth_kept
    weights = weights_of(connection, version)
    scores = scores_of(connection, data, version, "set_scores")
    for (criterion, aggregation), human in human_scores(connection, data).items():
        for score, values in scores.items():
            responses = data.responses(values, human, ground_truth_kept=with_truth)
            for figure in figures(
                responses,
                slow=aggregation == "mean",
                force=options.systems_forced,
                permutations=options.permutations if aggregation == "mean" else 0,
            ):
                signature = signature_of(
                    figure,
                    version,
                    weights,
                    (data.dataset, data.sha256),
                    (criterion, aggregation),
                    score,
                    [GROUND_TRUTH] if figure.excluded else [],
                )
                yield figure_row(version, figure, signature, **vars(options))


def _rater_rows(stage: Stage, data: ScoredSet, ground_truth_kept: bool) -> Iterator[dict[str, Any]]:
    """Rows of `rater_agreement`: of the responses that evaluators are compared on, and of all, before and after the
    removal of outliers."""
    for criterion, table in ratings_of(stage.connection, data).items():
        compared = table if ground_truth_kept else np.where(data.truth, np.nan, table)
        for responses, rated in (("compared", compared), ("all", table)):
            for outliers, left in (("kept", rated), ("removed", without_outliers(rated))):
                compared_with_outliers = responses == "compared" and outliers == "kept"
                counted = int((~np.isnan(left)).sum())
                about = {
                    "dataset": data.dataset,
                    "criterion": criterion,
                    "responses": responses,
                    "outliers": outliers,
                    "ratings": counted,
                    "removed": int((~np.isnan(rated)).sum()) - counted,
                }
                for figure in (
                    rater_figures(left, seed=SEED) if compared_with_outliers else reliability_figures(left)
                ):
                    yield {**about, **vars(figure), "reason": figure.reason or None}
