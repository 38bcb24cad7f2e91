"""System level: means by system, soft accuracy, and too few systems."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.accuracy import soft_accuracy
from ssrem.agreement.inputs import Agreement, Responses, View
from ssrem.agreement.levels import MIN_SYSTEMS, system_level

RNG = np.random.default_rng(0)
SYSTEMS, CONTEXTS = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
HUMAN = RNG.integers(1, 6, 120) + 0.2 * SYSTEMS
SCORES = HUMAN + RNG.normal(0, 2, 120)


def agreement_of(
    scores: Any,
    human: Any,
    systems: Any,
    *,
    measure: Any,
    contexts: Any = None,
    force: bool = False,
    seed: int = 0,
) -> Agreement:
    """At system level; by default every response has a context of its own."""
    responses = Responses(scores, human, np.arange(len(scores)) if contexts is None else contexts, systems)
    return system_level(responses, View(measure, "system", force=force), seed=seed)


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


def test_soft_accuracy_is_that_of_all_permutations() -> None:
    # Six contexts: all 64 sign flips can be gone through, and 4,000 drawn ones come close.
    systems, contexts = np.repeat(np.arange(3), 6), np.tile(np.arange(6), 3)
    scores, human = RNG.normal(size=(2, 18))
    apart = []
    for i, j in combinations(range(3), 2):
        sure = []
        for values in (scores, human):
            difference = values[systems == i] - values[systems == j]
            null = np.array(list(product([-1, 1], repeat=6))) @ difference
            sure.append(np.mean(null > difference.sum() + 1e-9) + 0.5 / 64)
        apart.append(abs(sure[0] - sure[1]))
    agreement = soft_accuracy(scores, human, systems, contexts, permutations=4000, seed=1)
    assert agreement == (pytest.approx(1 - np.mean(apart), abs=0.02), 3, 0)


def test_soft_accuracy_of_equals_opposites_and_in_any_order() -> None:
    def soft(scores: Any, human: Any, systems: Any = SYSTEMS) -> Any:
        return agreement_of(scores, human, systems, measure="soft_accuracy", contexts=CONTEXTS, seed=3)

    assert soft(HUMAN, HUMAN).statistic == 1.0
    apart = np.arange(120.0) // 20  # every system above the one before in every context
    assert soft(apart, -apart).statistic == pytest.approx(0, abs=0.01)
    agreement = soft(SCORES, HUMAN)
    assert 0 < agreement.statistic < 1 and (agreement.permutations, agreement.seed) == (1000, 3)
    assert soft(SCORES, HUMAN, 5 - SYSTEMS).statistic == pytest.approx(agreement.statistic, abs=1e-12)
    assert soft(SCORES * 10 + 3, HUMAN).statistic == agreement.statistic


def test_soft_accuracy_pairs_only_what_two_systems_share() -> None:
    scores = SCORES.copy()
    scores[(SYSTEMS == 0) & (CONTEXTS < 16)] = np.nan  # shares four contexts with any other
    agreement = agreement_of(scores, HUMAN, SYSTEMS, measure="soft_accuracy", contexts=CONTEXTS)
    assert (agreement.pairs, agreement.pairs_left_out, agreement.groups) == (10, 5, 6)
    rest = SYSTEMS > 0
    without = agreement_of(
        SCORES[rest], HUMAN[rest], SYSTEMS[rest], measure="soft_accuracy", contexts=CONTEXTS[rest]
    )
    assert agreement.statistic == without.statistic
    alone = agreement_of(SCORES, HUMAN, SYSTEMS, measure="soft_accuracy", contexts=np.arange(120))
    assert (alone.statistic, alone.outcome, alone.reason) == (
        None,
        "too_few",
        "no two systems share 5 contexts",
    )
    with pytest.raises(ValueError, match="needs the system"):
        agreement_of(SCORES, HUMAN, None, measure="soft_accuracy")


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
