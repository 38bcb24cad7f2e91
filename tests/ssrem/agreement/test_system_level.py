"""System level: means by system, and too few systems."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.correlate import MIN_SYSTEMS, Figure, ScoredResponses, View, agreement_at
from ssrem.agreement.resample import weighted_statistic

RNG = np.random.default_rng(0)
SYSTEMS, CONTEXTS = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
HUMAN = RNG.integers(1, 6, 120) + 0.2 * SYSTEMS
SCORES = HUMAN + RNG.normal(0, 2, 120)


def agreement_of(scores: Any, human: Any, systems: Any, *, measure: Any, force: bool = False) -> Figure:
    """At system level; every response has a context of its own."""
    responses = ScoredResponses(scores, human, np.arange(len(scores)), systems)
    return agreement_at(responses, View(measure, "system", force=force))


def means(values: Any) -> Any:
    return [values[system == SYSTEMS].mean() for system in range(6)]


@pytest.mark.parametrize(
    ("measure", "theirs"),
    [("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)],
)
def test_it_is_scipy_of_the_means(measure: Any, theirs: Any) -> None:
    agreement = agreement_of(SCORES, HUMAN, SYSTEMS, measure=measure)
    expected = theirs(means(SCORES), means(HUMAN))
    assert agreement.statistic == pytest.approx(expected.statistic)
    assert agreement.p == pytest.approx(expected.pvalue)
    assert (agreement.groups, agreement.n, agreement.missing, agreement.forced) == (6, 120, 0, False)


def test_accuracy_is_the_share_of_pairs_ordered_alike() -> None:
    a, b = means(SCORES), means(HUMAN)
    alike = [np.sign(a[i] - a[j]) == np.sign(b[i] - b[j]) for i, j in combinations(range(6), 2)]
    agreement = agreement_of(SCORES, HUMAN, SYSTEMS, measure="accuracy")
    assert agreement.statistic == pytest.approx(np.mean(alike))
    assert agreement.p is None


def test_a_response_without_a_score_counts_on_neither_side() -> None:
    scores = SCORES.copy()
    scores[:3] = np.nan
    agreement = agreement_of(scores, HUMAN, SYSTEMS, measure="pearson")
    expected = stats.pearsonr(
        [SCORES[3:20].mean(), *means(SCORES)[1:]], [HUMAN[3:20].mean(), *means(HUMAN)[1:]]
    )
    assert agreement.statistic == pytest.approx(expected.statistic)
    assert (agreement.missing, agreement.n) == (3, 117)


def test_too_few_systems_are_refused_unless_forced_and_then_flagged() -> None:
    few = SYSTEMS < MIN_SYSTEMS - 1
    scores, human, systems = SCORES[few], HUMAN[few], SYSTEMS[few]
    refused = agreement_of(scores, human, systems, measure="pearson")
    assert (refused.statistic, refused.outcome, refused.groups) == (None, "too_few_systems", 4)
    assert refused.reason == "4 systems; 5 are needed unless forced"
    forced = agreement_of(scores, human, systems, measure="pearson", force=True)
    assert forced.statistic == pytest.approx(stats.pearsonr(means(SCORES)[:4], means(HUMAN)[:4]).statistic)
    assert forced.forced and forced.outcome == "ok"
    assert not agreement_of(SCORES, HUMAN, SYSTEMS, measure="pearson", force=True).forced
    two = SYSTEMS < 2
    assert agreement_of(SCORES[two], HUMAN[two], SYSTEMS[two], measure="pearson", force=True).outcome == (
        "too_few_systems"
    )
    assert agreement_of(SCORES[two], HUMAN[two], SYSTEMS[two], measure="accuracy", force=True).forced


def test_equal_means_have_no_figure() -> None:
    agreement = agreement_of(np.tile([1.0, 2.0], 60), HUMAN, SYSTEMS, measure="kendall")
    assert (agreement.statistic, agreement.outcome) == (None, "constant")


@pytest.mark.parametrize("measure", ["spearman", "kendall", "accuracy"])
def test_equal_means_are_ties_in_whatever_order_they_are_summed(measure: Any) -> None:
    draw = np.random.default_rng(0)
    human = np.tile(draw.normal(size=20), 6) + (SYSTEMS >= 3)  # two values of the means, three systems each
    turned = np.concatenate([draw.permutation(human[system == SYSTEMS]) for system in range(6)])
    assert len(set(np.bincount(SYSTEMS, turned).tolist())) > 2, "their sums differ by rounding"
    figures = [agreement_of(SCORES, values, SYSTEMS, measure=measure).statistic for values in (human, turned)]
    assert figures[0] == figures[1]
    responses = [ScoredResponses(SCORES, values, CONTEXTS, SYSTEMS) for values in (human, turned)]
    sums = [weighted_statistic(one, View(measure, "system"))(np.ones((1, 20))) for one in responses]
    assert [float(one[0]) for one in sums] == pytest.approx(figures)
