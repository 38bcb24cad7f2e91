"""BCa intervals: SciPy's, coverage, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.correlate import MEASURES, Figure, ScoredResponses, View, agreement_at
from ssrem.agreement.figures import figure
from ssrem.agreement.resample import (
    DRAWS,
    JACKKNIFE_GROUPS,
    bca,
    context_draws,
    leave_groups_out,
)

PEARSON = View("pearson")
RNG = np.random.default_rng(0)
CONTEXTS = np.repeat(np.arange(30), 6)
SYSTEMS = np.tile(np.arange(6), 30)
HUMAN = RNG.integers(1, 6, 180) + 0.3 * SYSTEMS
SCORES = HUMAN + RNG.normal(0, 2, 180) + np.repeat(RNG.normal(size=30), 6)


def interval_of(responses: ScoredResponses, view: View, resamples: int = DRAWS, seed: int = 0) -> Figure:
    return figure(responses, view, resamples=resamples, seed=seed)


def test_it_is_scipys_where_every_response_is_its_own_context() -> None:
    x, y = SCORES[:60], HUMAN[:60]
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b, axis: stats.pearsonr(a, b, axis=axis).statistic,
        paired=True,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    interval = interval_of(ScoredResponses(x, y, np.arange(60)), PEARSON, resamples=20_000, seed=0)
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_pairs_of_one_context_are_drawn_together() -> None:
    """An interval of groups that share units is the one of the units, and wider than that of the groups."""
    draw = np.random.default_rng(2)
    units = np.repeat(np.arange(20), 30)  # 15 pairs a unit
    pairs = np.repeat(np.arange(300), 2)
    human = np.tile([0.0, 1.0], 300)
    right = np.repeat(draw.random(20) < 0.6, 15) ^ (draw.random(300) < 0.1)
    scores = np.where(np.repeat(right, 2), human, 1 - human)
    view = View("accuracy", "segment", "context")
    by_unit = interval_of(ScoredResponses(scores, human, pairs, units=units), view)
    by_pair = interval_of(ScoredResponses(scores, human, pairs), view)
    assert by_unit.statistic == by_pair.statistic
    assert by_unit.low is not None and by_unit.high is not None
    assert by_pair.low is not None and by_pair.high is not None
    assert by_unit.high - by_unit.low > 2 * (by_pair.high - by_pair.low)
    shares = right.reshape(20, 15).mean(axis=1)
    error = shares.std(ddof=1) / 20**0.5
    assert by_unit.high - by_unit.low == pytest.approx(2 * stats.t.ppf(0.975, 19) * error, rel=0.15)


@pytest.mark.parametrize("values", [RNG.exponential(size=40), RNG.integers(0, 2, 12).astype(float)])
def test_the_ends_are_scipys_from_the_same_resamples(values: Any) -> None:
    """The mean of skewed values, and one that many resamples share, with SciPy's replicates and its jackknife.

    At the confidence that makes SciPy's normal quantile ours, that of t, which few contexts need.
    """
    count = len(values)
    quantile = stats.t.ppf(0.975, count - 1) * (count / (count - 1)) ** 0.5
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        method="BCa",
        rng=np.random.default_rng(2),
        confidence_level=2 * stats.norm.cdf(quantile) - 1,
    )
    without = np.array([np.delete(values, i).mean() for i in range(len(values))])
    ends = bca(values.mean(), theirs.bootstrap_distribution, without)
    assert ends == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)


def test_contexts_are_drawn_with_replacement_and_the_seed_repeats_them() -> None:
    codes = np.array([0, 1, 1, 2, 0])
    weights = np.concatenate(list(context_draws(codes, 500, 7)))
    assert weights.shape == (500, 3) and (weights.sum(axis=1) == 3).all()
    assert weights.mean(axis=0) == pytest.approx(1, abs=0.15)
    assert (weights == np.concatenate(list(context_draws(codes, 500, 7)))).all()
    assert not (weights == np.concatenate(list(context_draws(codes, 500, 8)))).all()
    assert np.concatenate(list(leave_groups_out(codes, 7))).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_of_many_contexts_groups_are_left_out() -> None:
    codes = np.repeat(np.arange(950), 2)
    without = np.concatenate(list(leave_groups_out(codes, 7)))
    assert without.shape == (JACKKNIFE_GROUPS, 950)
    assert ((without == 0).sum(axis=0) == 1).all()  # each context is left out once
    assert set((without == 0).sum(axis=1).tolist()) == {4, 5}
    values = np.random.default_rng(0).gamma(1.0, size=950)
    mean, each = without @ values / without.sum(axis=1), (values.sum() - values) / 949
    skewness = [float(((a.mean() - a) ** 3).sum() / ((a.mean() - a) ** 2).sum() ** 1.5) for a in (mean, each)]
    assert skewness[0] == pytest.approx(skewness[1], abs=0.06)  # six times the acceleration


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("grouping", ["pooled", "system", "context"])
def test_it_holds_its_statistic_and_repeats(measure: Any, grouping: Any) -> None:
    def interval(seed: int, order: Any = slice(None)) -> Any:
        responses = ScoredResponses(SCORES[order], HUMAN[order], CONTEXTS[order], SYSTEMS[order])
        return interval_of(responses, View(measure, "segment", grouping), resamples=300, seed=seed)

    one = interval(1)
    assert one.outcome == "ok", one.reason
    assert one.low < one.statistic < one.high
    assert (one.resamples, one.seed, one.confidence) == (300, 1, 0.95)
    plain = agreement_at(
        ScoredResponses(SCORES, HUMAN, CONTEXTS, SYSTEMS), View(measure, "segment", grouping)
    )
    assert one.statistic == plain.statistic
    assert interval(1) == one and interval(2).low != one.low
    turned = interval(1, slice(None, None, -1))  # a context is a context wherever its responses stand
    assert (turned.low, turned.high) == pytest.approx((one.low, one.high), abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_system_level(measure: Any) -> None:
    view = View(measure, "system")
    interval = interval_of(ScoredResponses(SCORES, HUMAN, CONTEXTS, SYSTEMS), view, resamples=400, seed=0)
    assert interval.outcome == "ok"
    assert interval.low is not None and interval.low <= interval.statistic <= interval.high  # type: ignore[operator]
    few = SYSTEMS < 3
    three = ScoredResponses(SCORES[few], HUMAN[few], CONTEXTS[few], SYSTEMS[few])
    refused = interval_of(three, view, seed=0)
    assert (refused.low, refused.outcome) == (None, "too_few_systems")


@pytest.mark.parametrize("grouping", ["pooled", "system", "context"])
def test_accuracy_keeps_the_epsilon_of_the_data(grouping: Any) -> None:
    human = np.round(HUMAN / 3)  # ties, which the scores must meet
    responses, view = ScoredResponses(SCORES, human, CONTEXTS, SYSTEMS), View("accuracy", "segment", grouping)
    plain = agreement_at(responses, view)
    assert plain.epsilon is not None and plain.epsilon > 0.5
    interval = interval_of(responses, view, resamples=400, seed=0)
    assert interval.low is not None and interval.high is not None and plain.statistic is not None
    assert interval.low < plain.statistic < interval.high < interval.low + 0.2


def test_responses_of_one_context_make_it_wider() -> None:
    # Every response six times over tells no more than once.
    x, y = SCORES[:40], HUMAN[:40]
    once = interval_of(ScoredResponses(x, y, np.arange(40)), PEARSON, seed=0)
    copied = [np.repeat(one, 6) for one in (x, y, np.arange(40))]
    together = interval_of(ScoredResponses(*copied), PEARSON, seed=0)
    alone = interval_of(ScoredResponses(*copied[:2], np.arange(240)), PEARSON, seed=0)
    assert (together.low, together.high) == pytest.approx((once.low, once.high), abs=1e-9)
    assert alone.high - alone.low < 0.6 * (together.high - together.low)  # type: ignore[operator]


def test_coverage() -> None:
    # 300 samples of 30 contexts of 4 responses that share an effect; true r = .5 by construction.
    draw, held, missed = np.random.default_rng(5), 0, 0
    codes = np.repeat(np.arange(30), 4)
    for sample in range(300):
        shared, own = draw.normal(size=(30, 2))[codes], draw.normal(size=(120, 2))
        latent = np.sqrt(0.5) * shared + np.sqrt(0.5) * own
        y = latent[:, 0]
        x = 0.5 * y + np.sqrt(0.75) * latent[:, 1]
        interval = interval_of(ScoredResponses(x, y, codes), PEARSON, resamples=400, seed=sample)
        assert interval.low is not None and interval.high is not None
        held += interval.low <= 0.5 <= interval.high
        naive = stats.pearsonr(x, y).confidence_interval()
        missed += not naive.low <= 0.5 <= naive.high
    assert 0.91 <= held / 300 <= 0.98
    assert missed / 300 > 0.1  # what takes responses as independent is too sure of itself


def test_what_has_no_interval_says_why() -> None:
    line = np.arange(60.0)
    codes = np.arange(60) // 2
    perfect = interval_of(ScoredResponses(line, 2 * line, codes), View("spearman"), seed=0)
    assert (perfect.statistic, perfect.low, perfect.high) == (pytest.approx(1), None, None)
    assert perfect.reason == "all resamples give the same figure"
    straight = interval_of(ScoredResponses(line + 0.1, 0.3 * line, codes), PEARSON, seed=0)
    assert (straight.low, straight.reason) == (None, perfect.reason)  # all resamples are 1 but for rounding
    constant = interval_of(ScoredResponses(np.ones(60), line, codes), PEARSON, seed=0)
    assert (constant.statistic, constant.outcome) == (None, "constant")
    single = interval_of(ScoredResponses(line, line**2, np.zeros(60)), PEARSON, seed=0)
    assert (single.reason, single.low) == ("1 contexts to resample; 5 are needed", None)
    assert single.statistic is not None
    one_apart = np.where(line == 0, 1.0, 0.0)  # without the first context a side does not vary
    alone = interval_of(ScoredResponses(one_apart, line, np.arange(60)), PEARSON, seed=0)
    assert alone.low is None and "without one context" in alone.reason


def test_ends_are_refused_rather_than_infinite() -> None:
    replicates = np.arange(10.0)
    assert "one side" in bca(20.0, replicates, np.arange(5.0))  # type: ignore[operator]
    assert "no context changes" in bca(4.5, replicates, np.ones(5))  # type: ignore[operator]
    single = np.array([0.0] * 400 + [-50.0])
    assert "single contexts" in bca(8.4, replicates, single, 0.9999999)  # type: ignore[operator]


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="2 contexts do not fit"):
        interval_of(ScoredResponses(SCORES, HUMAN, [1, 2]), PEARSON)
