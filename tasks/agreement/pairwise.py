"""Rows of `comparisons` and `rankings`: every pair of the evaluators in use that scored an annotated set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ssrem.agreement.figures import LEVELS, RESAMPLES
from ssrem.agreement.inputs import Floats, Level, Numbers, Responses, View, numbered_within
from ssrem.agreement.levels import MIN_SYSTEMS
from ssrem.agreement.paired_bootstrap import paired_bootstrap
from ssrem.agreement.ranking import Ranking, ranking
from ssrem.agreement.significance import PERMUTATIONS, Difference, perm_both, williams
from ssrem.evaluators.parts import overall_part
from ssrem.tasks.agreement.landed_set import DEFAULT_TEST, ScoredSet
from ssrem.tasks.scoring.signatures import Version

AGGREGATION = "mean"
DRAWS_A_PAIR = 50
"""Draws per pair: with Holm's correction over m pairs, the smallest p, 2 / (draws + 1), is below .05 from 40 a pair."""

Rows = list[dict[str, Any]]
Compare = Callable[[Numbers, Numbers], Difference]
"""The difference between two evaluators, from the scores (n,) of both."""


def _by_bootstrap(data: Responses, level: Level, draws: int, seed: int) -> Compare:
    return partial(
        paired_bootstrap,
        human=data.human,
        contexts=data.contexts,
        view=View("spearman", level),
        systems=data.systems if level == "system" else None,
        resamples=max(RESAMPLES, draws),
        seed=seed,
        known={},
    )


def _by_permutation(data: Responses, level: Level, draws: int, seed: int) -> Compare:
    return partial(
        perm_both,
        human=data.human,
        measure="spearman",
        level=level,
        systems=data.systems if level == "system" else None,
        permutations=max(PERMUTATIONS, draws),
        seed=seed,
    )


def _by_williams(data: Responses, level: Level, draws: int, seed: int) -> Compare:
    """Williams' test; at system level, of the systems' means."""
    if level == "segment":
        return partial(williams, human=data.human, measure="spearman")

    def of_means(first: Numbers, second: Numbers) -> Difference:
        columns = np.stack([np.asarray(one, dtype=np.float64) for one in (first, second, data.human)])
        usable = np.asarray(~np.isnan(columns).any(axis=0), dtype=np.bool_)
        _, codes = numbered_within(data.systems or (), usable, "systems")
        means = [np.bincount(codes, column[usable]) / np.bincount(codes) for column in columns]
        return williams(means[0], means[1], means[2], measure="spearman")

    return of_means


TESTS: dict[str, Callable[[Responses, Level, int, int], Compare]] = {
    DEFAULT_TEST: _by_bootstrap,
    "perm-both": _by_permutation,
    "williams": _by_williams,
}
"""Name of a test → function that binds it to human scores, a level, a number of draws and a seed."""


def comparison_rows(
    data: ScoredSet,
    scores: Mapping[Version, Mapping[str, Floats]],
    humans: Mapping[tuple[str, str], Floats],
    *,
    ground_truth_kept: bool,
    test: str,
    seed: int,
) -> tuple[Rows, Rows]:
    """Rows of `comparisons` and of `rankings`, for every criterion at both levels, by Spearman's ρ.

    scores: version to the values (n,) of its parts; a version without scores is left out. humans: (criterion,
    aggregation) to human scores (n,). Each evaluator is compared by its overall score, as `ssrem score` gives it, on
    the responses that all of them scored. test: one of `TESTS`.
    """
    parts = {
        version: overall_part({part: int((~np.isnan(v)).sum()) for part, v in values.items()})
        for version, values in scores.items()
        if values
    }
    compared: Rows = []
    ranked: Rows = []
    for (criterion, aggregation), human in humans.items():
        if aggregation != AGGREGATION or not parts:
            continue
        sets = {
            version: data.responses(scores[version][part], human, ground_truth_kept=ground_truth_kept)
            for version, part in parts.items()
        }
        for level in LEVELS:
            where = {
                "dataset": data.dataset,
                "criterion": criterion,
                "aggregation": aggregation,
                "level": level,
                "test": test,
                "measure": "spearman",
            }
            result = _ranking(sets, level, test, seed)
            if result is not None:
                of_pairs, of_versions = _rows(*result, where, parts)
                compared += of_pairs
                ranked += of_versions
    return compared, ranked


def _ranking(
    sets: Mapping[Version, Responses], level: Level, test: str, seed: int
) -> tuple[Ranking, dict[str, Version], int] | None:
    """The ranking, name → version, and the number of responses that all scored; None for too few systems."""
    if level == "system":
        sets = {version: one.with_systems() for version, one in sets.items()}
    one = next(iter(sets.values()))
    if level == "system" and len(set(one.systems or ())) < MIN_SYSTEMS:
        return None
    pairs = len(sets) * (len(sets) - 1) // 2
    compare = TESTS[test](one, level, DRAWS_A_PAIR * pairs, seed)
    names = {f"{name}@{version}": (name, version) for name, version in sets}
    scores = {name: sets[version].scores for name, version in names.items()}
    shared = int((~np.isnan(np.stack(list(scores.values())))).all(axis=0).sum())
    return ranking(scores, compare), names, shared


def _rows(
    result: Ranking,
    names: Mapping[str, Version],
    n: int,
    where: Mapping[str, Any],
    scores: Mapping[Version, str],
) -> tuple[Rows, Rows]:
    """Rows of `comparisons` and of `rankings`; keys that are not columns of these tables are ignored."""

    def side(which: str, evaluator: str, statistic: float | None) -> dict[str, Any]:
        version = names[evaluator]
        values = {"version": version[1], "score": scores[version], "statistic": statistic}
        return {which: version[0], **{f"{which}_{column}": value for column, value in values.items()}}

    compared = [
        {
            **where,
            **vars(pair.difference),
            **side("first", pair.better, pair.difference.first),
            **side("second", pair.worse, pair.difference.second),
            "p_holm": pair.corrected,
            "reason": pair.difference.reason or None,
        }
        for pair in result.compared
    ]
    ranked = [
        {
            **where,
            **vars(one),
            "evaluator": names[one.evaluator][0],
            "version": names[one.evaluator][1],
            "score": scores[names[one.evaluator]],
            "place": None if one.statistic is None else place,
            "n": n,
            "reason": one.reason or None,
        }
        for place, one in enumerate(result.ranked, 1)
    ]
    return compared, ranked
