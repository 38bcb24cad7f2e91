"""Rows of `comparisons` and `rankings`: every pair of the evaluators in use that scored an annotated set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.comparison.paired_bootstrap import paired_bootstrap
from ssrem.agreement.comparison.ranking import Ranking, ranking
from ssrem.agreement.figures import RESAMPLES, Responses
from ssrem.agreement.inputs import Floats, Level
from ssrem.agreement.system import MIN_SYSTEMS
from tasks.agreement.scored_set import MeasuredSet, Version, human_scores, keeps_ground_truth, scores_of

AGGREGATION = "mean"
DRAWS_A_PAIR = 50
"""After Holm's correction over m pairs, a p of 2 / (draws + 1) is below .05 only where there are 40 draws a pair."""

Rows = list[dict[str, Any]]


def comparison_rows(
    connection: duckdb.DuckDBPyConnection, measured: MeasuredSet, versions: Sequence[Version], *, seed: int
) -> tuple[Rows, Rows]:
    """Rows of `comparisons` and of `rankings`, of every criterion at both levels, by Spearman.

    Each evaluator counts with its own score (`own_score`), on the responses that all of them scored. Ground truth is
    left out, unless the correlations of all of them keep it.
    """
    own: dict[Version, tuple[str, Floats]] = {}
    for version in versions:
        if scores := scores_of(connection, measured, version):
            own[version] = own_score(scores)
    keep = bool(own) and all(keeps_ground_truth(connection, measured, version) for version in own)
    compared: Rows = []
    ranked: Rows = []
    for (criterion, aggregation), human in human_scores(connection, measured).items():
        if aggregation != AGGREGATION:
            continue
        sets = {
            version: measured.responses(values, human, keep_ground_truth=keep)
            for version, (_, values) in own.items()
        }
        for level in ("segment", "system") if sets else ():
            where = {
                "dataset": measured.dataset,
                "criterion": criterion,
                "aggregation": aggregation,
                "level": level,
                "test": "paired-bootstrap",
                "measure": "spearman",
            }
            found = _ranking(sets, "system" if level == "system" else "segment", seed)
            if found is not None:
                named = {version: score for version, (score, _) in own.items()}
                more = _rows(*found, where, named)
                compared += more[0]
                ranked += more[1]
    return compared, ranked


def own_score(scores: Mapping[str, Floats]) -> tuple[str, Floats]:
    """The score by which an evaluator is known: h where every response has one, else f, else g, as `ssrem score`."""
    for score in ("h", "f"):
        if score in scores and not np.isnan(scores[score]).any():
            return score, scores[score]
    score = "g" if "g" in scores and "f" not in scores else "f" if "f" in scores else next(iter(scores))
    return score, scores[score]


def _ranking(
    sets: Mapping[Version, Responses], level: Level, seed: int
) -> tuple[Ranking, dict[str, Version], int] | None:
    """The ranking, whom its names name, and the responses that all have a score for; None where a level is refused."""
    if level == "system":
        sets = {version: one.with_systems() for version, one in sets.items()}
    one = next(iter(sets.values()))
    if level == "system" and len(set(one.systems)) < MIN_SYSTEMS:
        return None
    pairs = len(sets) * (len(sets) - 1) // 2
    test = partial(
        paired_bootstrap,
        human=one.human,
        contexts=one.contexts,
        measure="spearman",
        level=level,
        systems=one.systems if level == "system" else None,
        resamples=max(RESAMPLES, DRAWS_A_PAIR * pairs),
        seed=seed,
        known={},
    )
    names = {f"{name}@{version}": (name, version) for name, version in sets}
    scores = {name: sets[version].scores for name, version in names.items()}
    shared = int((~np.isnan(np.stack(list(scores.values())))).all(axis=0).sum())
    return ranking(scores, test), names, shared


def _rows(
    found: Ranking,
    names: Mapping[str, Version],
    n: int,
    where: Mapping[str, Any],
    scores: Mapping[Version, str],
) -> tuple[Rows, Rows]:
    compared = []
    for pair in found.compared:
        first, second, one = names[pair.better], names[pair.worse], pair.difference
        compared.append(
            {
                **where,
                "first": first[0],
                "first_version": first[1],
                "first_score": scores[first],
                "second": second[0],
                "second_version": second[1],
                "second_score": scores[second],
                "first_statistic": one.first,
                "second_statistic": one.second,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p": one.p,
                "p_holm": pair.corrected,
                "n": one.n,
                "resamples": one.resamples,
                "seed": one.seed,
                "outcome": one.outcome,
                "reason": one.reason or None,
            }
        )
    ranked = [
        {
            **where,
            "evaluator": names[one.evaluator][0],
            "version": names[one.evaluator][1],
            "score": scores[names[one.evaluator]],
            "statistic": one.statistic,
            "place": None if one.statistic is None else place,
            "cluster": one.cluster,
            "n": n,
            "reason": one.reason or None,
        }
        for place, one in enumerate(found.ranked, 1)
    ]
    return compared, ranked
