"""Comparing evaluators: the promotion gate, paired bootstrap, PERM-BOTH against all permutations, and whole tables."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ssrem.agreement.compare import (
    GATE_RESAMPLES,
    Known,
    compare_with_champion,
    holm,
    paired_bootstrap,
    perm_both,
    ranking,
    significance_clusters,
)
from ssrem.agreement.correlate import MEASURES, ScoredResponses, View, agreement_at
from ssrem.agreement.resample import context_draws, evaluated, weighted_spearman

RNG = np.random.default_rng(0)


def noisy(human: Any, noise: float) -> Any:
    return human + noise * RNG.normal(size=len(human))


def compared(champion: Any, challenger: Any, groups: Any = None, margin: float = 0.01, **how: Any) -> Any:
    groups = np.arange(len(champion)) if groups is None else groups
    return compare_with_champion("set", champion, challenger, groups, margin=margin, **how)


def test_bound_of_a_mean_is_that_of_scipy() -> None:
    champion, challenger = RNG.random(400), RNG.random(400)
    comparison = compared(champion, challenger, np.arange(400).astype(str))
    how: dict[str, Any] = {"n_resamples": 10_000, "method": "percentile", "confidence_level": 0.9}
    theirs = stats.bootstrap((challenger - champion,), np.mean, rng=np.random.default_rng(1), **how)
    assert comparison.difference == pytest.approx(np.mean(challenger - champion))
    assert comparison.low == pytest.approx(theirs.confidence_interval.low, abs=0.004)


def test_agreement_is_spearman_of_scipy() -> None:
    human = RNG.integers(1, 6, 300).astype(float)
    champion, challenger = noisy(human, 1), noisy(human, 2)
    comparison = compared(champion, challenger, human=human, margin=0.05)
    assert comparison.champion == pytest.approx(stats.spearmanr(champion, human).statistic)
    assert comparison.challenger == pytest.approx(stats.spearmanr(challenger, human).statistic)
    assert comparison.low < comparison.difference and comparison.not_worse is False
    same = compared(champion, champion, human=human, margin=0.0)
    assert (same.difference, same.low, same.not_worse) == (0.0, 0.0, True)
    assert compared(challenger, noisy(human, 0.5), human=human, margin=0.0).not_worse


def test_responses_of_one_group_are_drawn_together_in_whatever_order_they_stand() -> None:
    shift = np.repeat(RNG.normal(size=20), 20)  # each group's responses all differ by the same
    alone = compared(np.zeros(400), shift)
    together = compared(np.zeros(400), shift, np.repeat(np.arange(20), 20))
    assert (together.groups, together.n) == (20, 400)
    assert together.difference == pytest.approx(alone.difference)
    assert together.difference - together.low > 3 * (alone.difference - alone.low)
    champion, challenger = RNG.random(100), RNG.random(100)
    groups = np.arange(100) // 4
    one = compared(champion, challenger, groups)
    assert one == compared(champion, challenger, groups)
    assert compared(champion[::-1], challenger[::-1], groups[::-1]).low == pytest.approx(one.low)


def test_what_the_gate_cannot_compare_says_so() -> None:
    constant, varied = np.ones(50), np.arange(50.0)
    for champion, challenger, human, not_worse, says in (
        (varied, constant, varied, False, "challenger's scores are constant"),
        (constant, varied, varied, None, "constant"),
        (varied, varied, constant, None, "people's, are constant"),
        (varied[:10], varied[:10], varied[:10], None, "too few to compare: 10 responses"),
    ):
        comparison = compared(champion, challenger, human=human, margin=0.05)
        assert comparison.not_worse is not_worse and comparison.low is None
        assert says in comparison.outcome


CONTEXTS = np.repeat(np.arange(40), 6)
SYSTEMS = np.tile(np.arange(6), 40)
HUMAN = RNG.integers(1, 6, 240) + 0.4 * SYSTEMS
GOOD, BAD = HUMAN + RNG.normal(0, 1, 240), HUMAN + RNG.normal(0, 6, 240)


def test_its_resamples_are_those_of_the_promotion_gate() -> None:
    # Weights and repeated rows are two ways to the same differences.
    gate = compare_with_champion("set", BAD, GOOD, CONTEXTS, human=HUMAN, margin=0.05, seed=4)
    one, other = (weighted_spearman(x, HUMAN, CONTEXTS) for x in (GOOD, BAD))
    differences = evaluated(lambda w: one(w) - other(w), context_draws(CONTEXTS, GATE_RESAMPLES, 4))
    assert np.quantile(differences, 0.05) == pytest.approx(gate.low, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("place", ["segment pooled", "segment system", "segment context", "system pooled"])
def test_a_better_evaluator_is_found(measure: Any, place: Any) -> None:
    level, grouping = place.split()
    settings: Any = {"view": View(measure, level, grouping), "resamples": 200, "seed": 1}
    settings["systems"] = None if grouping == "context" else SYSTEMS
    result: Any = paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, **settings)
    assert (result.outcome, result.n, result.resamples, result.seed) == ("ok", 240, 200, 1), result.reason
    assert result.difference == pytest.approx(result.first - result.second)
    assert result.low <= result.difference <= result.high
    turned = paired_bootstrap(BAD, GOOD, HUMAN, CONTEXTS, **settings)
    assert (turned.low, turned.high, turned.p) == pytest.approx((-result.high, -result.low, result.p))
    if level != "system":
        assert result.low > 0 and result.p == pytest.approx(2 / 201)


def test_p_is_even_where_both_are_as_good_though_contexts_share_noise() -> None:
    small, codes, draw = 0, np.repeat(np.arange(30), 4), np.random.default_rng(0)
    settings: Any = {"contexts": codes, "view": View("pearson"), "resamples": 99}
    for sample in range(60):
        shared, own = draw.normal(size=(3, 30))[:, codes], draw.normal(size=(3, 120))
        human, one, other = 3 * shared + own
        result: Any = paired_bootstrap(human + one, human + other, human, **settings, seed=sample)
        small += result.p <= 0.05
    assert 1 <= small <= 9  # 3 expected, standard deviation 1.7; 15 where responses are drawn


def test_what_cannot_be_compared_says_why() -> None:
    def outcome(*scores: Any, **settings: Any) -> str:
        result = paired_bootstrap(*scores, **{"view": View(), **settings}, resamples=100, seed=0)
        assert result.p is None and result.low is None and result.reason
        return result.outcome

    assert outcome(GOOD, GOOD, HUMAN, CONTEXTS) == "degenerate"
    assert outcome(GOOD, np.ones(240), HUMAN, CONTEXTS) == "constant"
    assert outcome(GOOD, BAD, HUMAN, np.zeros(240)) == "too_few"
    few = SYSTEMS < 3
    three = GOOD[few], BAD[few], HUMAN[few], CONTEXTS[few]
    assert outcome(*three, view=View(level="system"), systems=SYSTEMS[few]) == "too_few_systems"
    assert outcome(GOOD, BAD, HUMAN, np.arange(240), view=View(grouping="context")) == "too_few"
    settings: Any = {"view": View(), "resamples": 50, "seed": 0}
    missing = paired_bootstrap(np.where(CONTEXTS == 3, np.nan, GOOD), BAD, HUMAN, CONTEXTS, **settings)
    assert (missing.n, missing.missing) == (234, 6)
    for view in (View(level="system"), View(grouping="system")):
        with pytest.raises(ValueError, match="needs the system"):
            paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, **{**settings, "view": view})
    with pytest.raises(ValueError, match="0 resamples; give 1 or more"):
        paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, **{**settings, "resamples": 0})
    for wrong in ({"level": "turn"}, {"grouping": "dialogue"}, {"measure": "rho"}):
        with pytest.raises(ValueError, match=f"no {next(iter(wrong))} "):
            View(**wrong)
    turns = [("hello", f"turn {code}") for code in CONTEXTS]  # contexts may be turns
    one, other = (paired_bootstrap(GOOD, BAD, HUMAN, of, **settings).p for of in (turns, CONTEXTS))
    assert one == other is not None


@pytest.mark.parametrize("level", ["segment", "system"])
def test_what_is_resampled_once_gives_the_same_figures(level: Any) -> None:
    draw, at = np.random.default_rng(4), np.arange(120)
    human = draw.integers(1, 6, 120).astype(float)
    scores = [human + draw.normal(size=120) * wide for wide in (1, 2, 3)]
    scores[2][5] = np.nan  # with it, other responses are compared
    settings: Any = {"human": human, "contexts": (at // 4).astype(str), "systems": (at % 6).astype(str)}
    settings |= {"view": View(level=level), "resamples": 100, "seed": 1}
    known: Known = {}
    for first, second in ((0, 1), (1, 2), (0, 2), (1, 0)):
        pair = scores[first], scores[second]
        assert paired_bootstrap(*pair, **settings, known=known) == paired_bootstrap(*pair, **settings)
    assert len(known) == 5


OF_TEN = np.repeat(np.arange(5), 2)
TEN = RNG.integers(1, 6, 10) + 0.5 * OF_TEN
FIRST, SECOND = TEN + RNG.normal(0, 1, 10), 7 * (TEN + RNG.normal(0, 3, 10))


def exact(agreement: Any) -> float:
    """Share of all 2^10 swaps that are at least as extreme, of standardised scores."""
    a, b = stats.zscore(FIRST), stats.zscore(SECOND)
    swaps = product([False, True], repeat=10)
    agreements = np.array([agreement(np.where(swap, b, a)) for swap in swaps])
    null = agreements - agreements[::-1]  # in this order, the last undoes the first
    return float((abs(null) >= abs(null[0]) - 1e-9).mean())


def pooled(x: Any, human: Any = TEN) -> float:
    return float(np.corrcoef(x, human)[0, 1])


def by_means(x: Any) -> float:
    return pooled(*(one.reshape(5, 2).mean(axis=1) for one in (x, TEN)))


def tau_b(x: Any) -> float:
    a, b = (np.sign(one[:, None] - one) for one in (x, TEN))
    return float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))


def test_it_is_all_permutations() -> None:
    at_systems = {"level": "system", "systems": OF_TEN}
    cases = ((pooled, "pearson", {}), (tau_b, "kendall", {}), (by_means, "pearson", at_systems))
    for agreement, measure, how in cases:
        settings: Any = {"measure": measure, "permutations": 4000, "seed": 0, **how}
        result = perm_both(FIRST, SECOND, TEN, **settings)
        assert result.p == pytest.approx(exact(agreement), abs=0.025)
        assert (result.first, result.second) == pytest.approx((agreement(FIRST), agreement(SECOND)))
        assert (result.resamples, result.seed) == (4000, 0)
        for size in (1e160, 1e-160):
            assert perm_both(FIRST, SECOND, TEN * size, **settings).p == result.p


def test_means_that_differ_by_rounding_are_tied() -> None:
    draw = np.random.default_rng(1)
    systems = np.repeat(np.arange(6), 5)
    human = draw.integers(3, 16, 30) / 3
    first, second = draw.random(30), human + draw.normal(size=30)
    human[:10] = np.tile(human[:5], 2)[[0, 1, 2, 3, 4, 9, 7, 8, 5, 6]]  # two systems with the same sum
    result = perm_both(first, second, human, level="system", systems=systems, permutations=9, seed=0)
    whole = agreement_at(ScoredResponses(first, human, systems, systems), View(level="system"))
    assert result.first == pytest.approx(whole.statistic)


def test_p_never_is_zero_and_the_seed_repeats_it() -> None:
    human = np.arange(200.0)
    good, bad = human + RNG.normal(size=200), RNG.normal(size=200)
    result = perm_both(good, bad, human, permutations=499, seed=3)
    assert result.p == pytest.approx(1 / 500)
    assert result == perm_both(good, bad, human, permutations=499, seed=3)
    same = perm_both(good, good, human, permutations=499, seed=3)
    assert (same.difference, same.p) == (0.0, 1.0)


def test_p_is_even_where_both_are_as_good() -> None:
    small, draw = 0, np.random.default_rng(0)
    for sample in range(80):
        human, one, other = draw.normal(size=(3, 40))
        result: Any = perm_both(one + human, other + human, human, permutations=99, seed=sample)
        small += result.p <= 0.05
    assert 1 <= small <= 10  # 4 expected, standard deviation 2


def test_what_cannot_be_tested_says_why() -> None:
    def outcome(*scores: Any, **settings: Any) -> tuple[Any, ...]:
        result = perm_both(*scores, seed=0, permutations=50, **settings)
        assert result.p is None and result.first is None and result.reason
        return result.outcome, result.n, result.missing

    assert outcome(np.where(np.arange(10) < 8, np.nan, FIRST), SECOND, TEN) == ("too_few", 2, 8)
    assert outcome(np.ones(10), SECOND, TEN) == ("constant", 10, 0)
    few = OF_TEN < 4
    at = {"level": "system", "systems": OF_TEN[few]}
    assert outcome(FIRST[few], SECOND[few], TEN[few], **at)[0] == "too_few_systems"
    refused: Any = {"paired bootstrap": {"measure": "accuracy"}, "needs the system": {"level": "system"}}
    refused["no measure 'spearmann'; the measures are "] = {"measure": "spearmann"}
    refused["no level 'systems'; the levels are segment, system"] = {"level": "systems"}
    refused["0 permutations; give 1 or more"] = {"permutations": 0}
    for message, how in refused.items():
        with pytest.raises(ValueError, match=message):
            perm_both(FIRST, SECOND, TEN, **how, seed=0)
    assert perm_both(FIRST, SECOND, TEN, measure="accuracy", level="system", systems=OF_TEN, seed=0).p


def test_holm_is_that_of_statsmodels() -> None:
    draws = [RNG.random(1 + at % 12) ** (1 + at % 4) for at in range(40)]
    for p in [np.round(draws[0], 1), np.zeros(3), np.ones(2), np.full(5, 0.03), *draws]:
        with patch("gc.collect"):  # which it calls, and which takes most of a second after many other tests
            expected = multipletests(p, method="holm")[1]
        assert holm(p.tolist()) == pytest.approx(expected)
        gap = len(p) // 2
        untested: list[float | None] = [*p[:gap], None, *p[gap:]]  # no test does not count
        corrected = holm(untested)
        assert corrected[gap] is None and [*corrected[:gap], *corrected[gap + 1 :]] == pytest.approx(expected)
    assert (holm([]), holm([None])) == ([], [None])


def test_a_line_runs_where_all_above_beat_all_below() -> None:
    for apart, expected in (
        ("ab ac ad bc bd cd", [1, 2, 3, 4]),
        ("ac ad bc bd", [1, 1, 2, 2]),
        ("ac ad bd", [1, 1, 1, 1]),  # b and c are not told apart: no line may run between them, nor elsewhere
        ("ab ac ad bd cd", [1, 2, 2, 3]),
        ("", [1, 1, 1, 1]),
    ):
        found = significance_clusters("abcd", lambda *pair, apart=apart: "".join(pair) in apart.split())
        assert found == expected


def test_who_scored_few_does_not_decide_what_is_compared() -> None:
    human = RNG.normal(size=100)
    scores: dict[str, Any] = {name: human + RNG.normal(size=100) for name in ("one", "other", "few")}
    scores["few"][:40] = scores["other"][:5] = np.nan
    table = ranking(scores, partial(perm_both, human=human, permutations=49, seed=0))
    (pair,) = table.compared
    assert {pair.better, pair.worse} == {"one", "other"} and pair.difference.n == 95
    last, reason = table.ranked[-1], "it scored 60 responses, another evaluator 100"
    assert (last.evaluator, last.statistic, last.reason) == ("few", None, reason)


def test_a_table() -> None:
    draw = np.random.default_rng(0)  # its own, since the tests of a file may run in parts
    human = draw.normal(size=300)
    noise = {"best": 0.3, "good": 1.0, "as good": 1.0}
    scores: dict[str, Any] = {name: human + one * draw.normal(size=300) for name, one in noise.items()}
    scores = {"bad": draw.normal(size=300), "constant": np.ones(300), **scores}
    scores["bad"][0] = np.nan
    table = ranking(scores, partial(perm_both, human=human, measure="pearson", permutations=499, seed=0))
    assert [one.evaluator for one in table.ranked][0::3] == ["best", "bad"]
    assert [one.cluster for one in table.ranked] == [1, 2, 2, 3, None]
    last = table.ranked[-1]
    assert (last.evaluator, last.reason) == ("constant", "its scores are all the same")
    assert len(table.compared) == 6
    assert holm([pair.difference.p for pair in table.compared]) == [pair.corrected for pair in table.compared]
    reached = {one.evaluator: one.statistic for one in table.ranked}
    for pair in table.compared:
        found: Any = pair.difference
        assert found.n == 299 and found.difference >= 0
        assert (found.first, found.second) == pytest.approx((reached[pair.better], reached[pair.worse]))


def test_intervals_turn_with_the_pair() -> None:
    human = RNG.normal(size=60)
    scores = {"a": human + RNG.normal(0, 3, 60), "b": human + RNG.normal(0, 0.5, 60)}
    test = partial(paired_bootstrap, human=human, contexts=np.arange(60), view=View(), resamples=200, seed=0)
    (pair,) = ranking(scores, test).compared
    found, straight = pair.difference, test(scores["b"], scores["a"])
    assert (pair.better, pair.worse, found.difference) == ("b", "a", straight.difference)
    assert (found.low, found.high) == pytest.approx((straight.low, straight.high))


def test_a_table_of_what_cannot_be_told_apart() -> None:
    human = RNG.normal(size=30)
    noise, test = human + RNG.normal(size=30), partial(perm_both, human=human, seed=0)
    same = ranking({"a": noise, "b": noise + 1}, test)
    assert [one.cluster for one in same.ranked] == [1, 1] and same.compared[0].corrected == 1
    alone = ranking({"a": noise}, test).ranked[0]
    assert alone.cluster is None and "no other" in alone.reason
    few = ranking({"a": noise[:2], "b": human[:2]}, partial(perm_both, human=human[:2], seed=0))
    assert few.compared == () and "2 responses" in few.ranked[0].reason
