"""Paired bootstrap: that of the promotion gate, its sides, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssrem.agreement.comparison.noninferiority import RESAMPLES, compare_agreement
from ssrem.agreement.comparison.paired_bootstrap import Known, paired_bootstrap
from ssrem.agreement.inputs import MEASURES
from ssrem.agreement.intervals.resampling import cluster_draws, evaluated, pooled

RNG = np.random.default_rng(0)
CONTEXTS = np.repeat(np.arange(40), 6)
SYSTEMS = np.tile(np.arange(6), 40)
HUMAN = RNG.integers(1, 6, 240) + 0.4 * SYSTEMS
GOOD, BAD = HUMAN + RNG.normal(0, 1, 240), HUMAN + RNG.normal(0, 6, 240)


def test_its_resamples_are_those_of_the_promotion_gate() -> None:
    # Weights and repeated rows are two ways to the same differences.
    gate = compare_agreement("set", BAD, GOOD, HUMAN, CONTEXTS, margin=0.05, seed=4)
    one, other = (pooled(x, HUMAN, "spearman") for x in (GOOD, BAD))
    differences = evaluated(lambda w: one(w) - other(w), cluster_draws(CONTEXTS, RESAMPLES, 4))
    assert np.quantile(differences, 0.05) == pytest.approx(gate.low, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "view", [{}, {"grouping": "system"}, {"grouping": "context"}, {"level": "system"}], ids=str
)
def test_a_better_evaluator_is_found(measure: Any, view: Any) -> None:
    systems = None if view.get("grouping") == "context" else SYSTEMS
    settings = {"measure": measure, "systems": systems, "resamples": 300, "seed": 1, **view}
    found = paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, **settings)
    assert found.outcome == "ok", found.reason
    assert found.difference == pytest.approx(found.first - found.second)  # type: ignore[operator]
    assert found.low <= found.difference <= found.high  # type: ignore[operator]
    assert (found.n, found.clusters, found.resamples, found.seed) == (240, 40, 300, 1)
    turned = paired_bootstrap(BAD, GOOD, HUMAN, CONTEXTS, **settings)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))  # type: ignore[operator]
    assert turned.p == pytest.approx(found.p)
    if view.get("level") != "system":
        assert found.low > 0 and found.p == pytest.approx(2 / 301)  # type: ignore[operator]


def test_sides_and_p_that_is_not_zero() -> None:
    settings: Any = {"resamples": 200, "seed": 0}
    assert paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, sides="greater", **settings).p == 1 / 201
    worse = paired_bootstrap(BAD, GOOD, HUMAN, CONTEXTS, sides="greater", **settings)
    assert (worse.p, worse.sides) == (1.0, "greater")


def test_p_is_even_where_both_are_as_good_though_contexts_share_noise() -> None:
    small, codes = 0, np.repeat(np.arange(30), 4)
    for sample in range(150):
        shared, own = RNG.normal(size=(3, 30))[:, codes], RNG.normal(size=(3, 120))
        human, one, other = shared + own
        found = paired_bootstrap(
            human + one, human + other, human, codes, measure="pearson", resamples=199, seed=sample
        )
        small += found.p <= 0.05  # type: ignore[operator]
    assert 1 <= small <= 18  # 7.5 expected, standard deviation 2.7


def test_what_cannot_be_compared_says_why() -> None:
    def outcome(*scores: Any, **settings: Any) -> str:
        found = paired_bootstrap(*scores, resamples=100, seed=0, **settings)
        assert found.p is None and found.low is None and found.reason
        return found.outcome

    assert outcome(GOOD, GOOD, HUMAN, CONTEXTS) == "degenerate"
    assert outcome(GOOD, np.ones(240), HUMAN, CONTEXTS) == "constant"
    assert outcome(GOOD, BAD, HUMAN, np.zeros(240)) == "too_few"
    few = SYSTEMS < 3
    at = {"level": "system", "systems": SYSTEMS[few]}
    assert outcome(GOOD[few], BAD[few], HUMAN[few], CONTEXTS[few], **at) == "too_few_systems"
    assert outcome(GOOD, BAD, HUMAN, np.arange(240), grouping="context") == "too_few"
    missing = paired_bootstrap(
        np.where(CONTEXTS == 3, np.nan, GOOD), BAD, HUMAN, CONTEXTS, resamples=50, seed=0
    )
    assert (missing.n, missing.missing, missing.clusters) == (234, 6, 39)
    for view in ({"level": "system"}, {"grouping": "system"}):
        with pytest.raises(ValueError, match="needs the system"):
            paired_bootstrap(GOOD, BAD, HUMAN, CONTEXTS, resamples=10, seed=0, **view)  # type: ignore[arg-type]


def test_contexts_may_be_turns() -> None:
    turns = [("hello", f"turn {code}") for code in CONTEXTS]
    one = paired_bootstrap(GOOD, BAD, HUMAN, turns, resamples=100, seed=0)
    assert one.clusters == 40 and one.p is not None


@pytest.mark.parametrize("level", ["segment", "system"])
def test_what_is_resampled_once_gives_the_same_figures(level: Any) -> None:
    draw = np.random.default_rng(4)
    human = draw.integers(1, 6, 120).astype(float)
    scores = [human + draw.normal(size=120) * wide for wide in (1, 2, 3)]
    scores[2][5] = np.nan  # with it, other responses are compared
    asked: dict[str, Any] = {
        "human": human,
        "contexts": [str(n // 4) for n in range(120)],
        "systems": [str(n % 6) for n in range(120)],
        "level": level,
        "resamples": 200,
        "seed": 1,
    }
    known: Known = {}
    for first, second in ((0, 1), (1, 2), (0, 2), (1, 0)):
        pair = scores[first], scores[second]
        assert paired_bootstrap(*pair, **asked, known=known) == paired_bootstrap(*pair, **asked)
    assert len(known) == 5
