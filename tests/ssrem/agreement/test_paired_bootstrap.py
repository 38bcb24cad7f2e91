"""Paired bootstrap: that of the promotion gate, its p, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssrem.agreement.compare import GATE_RESAMPLES, Known, compare_with_champion, paired_bootstrap
from ssrem.agreement.correlate import MEASURES, View
from ssrem.agreement.resample import context_draws, evaluated, weighted_spearman

RNG = np.random.default_rng(0)
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
@pytest.mark.parametrize(
    ("level", "grouping"),
    [("segment", "pooled"), ("segment", "system"), ("segment", "context"), ("system", "pooled")],
)
def test_a_better_evaluator_is_found(measure: Any, level: Any, grouping: Any) -> None:
    systems = None if grouping == "context" else SYSTEMS
    view = View(measure, level, grouping)
    settings: Any = {"view": view, "systems": systems, "resamples": 300, "seed": 1}
    result = paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, **settings)
    assert result.outcome == "ok", result.reason
    assert result.difference == pytest.approx(result.first - result.second)  # type: ignore[operator]
    assert result.low <= result.difference <= result.high  # type: ignore[operator]
    assert (result.n, result.resamples, result.seed) == (240, 300, 1)
    turned = paired_bootstrap(BAD, GOOD, HUMAN, CONTEXTS, **settings)
    assert (turned.low, turned.high) == pytest.approx((-result.high, -result.low))  # type: ignore[operator]
    assert turned.p == pytest.approx(result.p)
    if level != "system":
        assert result.low > 0 and result.p == pytest.approx(2 / 301)  # type: ignore[operator]


def test_p_is_even_where_both_are_as_good_though_contexts_share_noise() -> None:
    small, codes = 0, np.repeat(np.arange(30), 4)
    for sample in range(150):
        shared, own = RNG.normal(size=(3, 30))[:, codes], RNG.normal(size=(3, 120))
        human, one, other = shared + own
        result = paired_bootstrap(
            human + one, human + other, human, codes, view=View("pearson"), resamples=199, seed=sample
        )
        small += result.p <= 0.05  # type: ignore[operator]
    assert 1 <= small <= 18  # 7.5 expected, standard deviation 2.7


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
    missing = paired_bootstrap(
        np.where(CONTEXTS == 3, np.nan, GOOD), BAD, HUMAN, CONTEXTS, view=View(), resamples=50, seed=0
    )
    assert (missing.n, missing.missing) == (234, 6)
    for view in (View(level="system"), View(grouping="system")):
        with pytest.raises(ValueError, match="needs the system"):
            paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, view=view, resamples=10, seed=0)


def test_contexts_may_be_turns() -> None:
    turns = [("hello", f"turn {code}") for code in CONTEXTS]
    one, other = (
        paired_bootstrap(GOOD, BAD, HUMAN, of, view=View(), resamples=100, seed=0) for of in (turns, CONTEXTS)
    )
    assert one.p == other.p is not None


@pytest.mark.parametrize("level", ["segment", "system"])
def test_what_is_resampled_once_gives_the_same_figures(level: Any) -> None:
    draw = np.random.default_rng(4)
    human = draw.integers(1, 6, 120).astype(float)
    scores = [human + draw.normal(size=120) * wide for wide in (1, 2, 3)]
    scores[2][5] = np.nan  # with it, other responses are compared
    settings: dict[str, Any] = {
        "human": human,
        "contexts": [str(n // 4) for n in range(120)],
        "systems": [str(n % 6) for n in range(120)],
        "view": View(level=level),
        "resamples": 200,
        "seed": 1,
    }
    known: Known = {}
    for first, second in ((0, 1), (1, 2), (0, 2), (1, 0)):
        pair = scores[first], scores[second]
        assert paired_bootstrap(*pair, **settings, known=known) == paired_bootstrap(*pair, **settings)
    assert len(known) == 5
