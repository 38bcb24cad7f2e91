"""Figures: their signature, and their BCa intervals against SciPy's, their coverage, and what has none."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import scipy
from scipy import stats

import ssrem
from ssrem.agreement.correlate import MEASURES, Figure, ScoredResponses, View, agreement_at
from ssrem.agreement.figures import FORMAT, Signature, digest, figure, versions
from ssrem.agreement.resample import DRAWS, JACKKNIFE_GROUPS, bca, context_draws, leave_groups_out

PEARSON = View("pearson")
RNG = np.random.default_rng(0)
CONTEXTS = np.repeat(np.arange(30), 6)
SYSTEMS = np.tile(np.arange(6), 30)
HUMAN = RNG.integers(1, 6, 180) + 0.3 * SYSTEMS
SCORES = HUMAN + RNG.normal(0, 2, 180) + np.repeat(RNG.normal(size=30), 6)


def interval_of(responses: ScoredResponses, view: View, resamples: int = DRAWS, seed: int = 0) -> Figure:
    return figure(responses, view, resamples=resamples, seed=seed)


def test_it_is_scipys_where_every_response_is_its_own_context() -> None:
    x, y, rng = SCORES[:60], HUMAN[:60], np.random.default_rng(1)
    how: dict[str, Any] = {"paired": True, "n_resamples": 10_000, "method": "BCa", "rng": rng}
    found = stats.bootstrap((x, y), lambda a, b, axis: stats.pearsonr(a, b, axis=axis).statistic, **how)
    interval = interval_of(ScoredResponses(x, y, np.arange(60)), PEARSON, resamples=10_000, seed=0)
    assert (interval.low, interval.high) == pytest.approx(tuple(found.confidence_interval), abs=0.01)


def test_pairs_of_one_context_are_drawn_together() -> None:
    """An interval of groups that share units is the one of the units, and wider than that of the groups."""
    draw = np.random.default_rng(2)
    units = np.repeat(np.arange(20), 30)  # 15 pairs a unit
    pairs = np.repeat(np.arange(300), 2)
    human = np.tile([0.0, 1.0], 300)
    right = np.repeat(draw.random(20) < 0.6, 15) ^ (draw.random(300) < 0.1)
    scores = np.where(np.repeat(right, 2), human, 1 - human)
    view = View("accuracy", "segment", "context")
    by_unit: Any = interval_of(ScoredResponses(scores, human, pairs, units=units), view)
    by_pair: Any = interval_of(ScoredResponses(scores, human, pairs), view)
    assert by_unit.statistic == by_pair.statistic
    assert by_unit.high - by_unit.low > 2 * (by_pair.high - by_pair.low)
    error = right.reshape(20, 15).mean(axis=1).std(ddof=1) / 20**0.5
    assert by_unit.high - by_unit.low == pytest.approx(2 * stats.t.ppf(0.975, 19) * error, rel=0.15)


@pytest.mark.parametrize("values", [RNG.exponential(size=40), RNG.integers(0, 2, 12).astype(float)])
def test_the_ends_are_scipys_from_the_same_resamples(values: Any) -> None:
    """The mean of skewed values, and one that many resamples share, with SciPy's replicates and its jackknife.

    At the confidence that makes SciPy's normal quantile ours, that of t, which few contexts need.
    """
    count = len(values)
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, count - 1) * (count / (count - 1)) ** 0.5) - 1
    rng = np.random.default_rng(2)
    theirs = stats.bootstrap((values,), np.mean, method="BCa", rng=rng, confidence_level=level)
    without = np.array([np.delete(values, i).mean() for i in range(count)])
    ends = bca(values.mean(), theirs.bootstrap_distribution, without)
    assert ends == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)


def test_contexts_are_drawn_with_replacement_and_groups_of_many_left_out() -> None:
    codes = np.array([0, 1, 1, 2, 0])
    weights = np.concatenate(list(context_draws(codes, 500, 7)))
    assert weights.shape == (500, 3) and (weights.sum(axis=1) == 3).all()
    assert weights.mean(axis=0) == pytest.approx(1, abs=0.15)
    assert (weights == np.concatenate(list(context_draws(codes, 500, 7)))).all()
    assert not (weights == np.concatenate(list(context_draws(codes, 500, 8)))).all()
    assert np.concatenate(list(leave_groups_out(codes, 7))).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
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
    view = View(measure, "segment", grouping)

    def interval(seed: int, order: Any = slice(None)) -> Any:
        responses = ScoredResponses(SCORES[order], HUMAN[order], CONTEXTS[order], SYSTEMS[order])
        return interval_of(responses, view, resamples=200, seed=seed)

    one = interval(1)
    assert (one.outcome, one.resamples, one.seed, one.confidence) == ("ok", 200, 1, 0.95), one.reason
    assert one.low < one.statistic < one.high
    assert one.statistic == agreement_at(ScoredResponses(SCORES, HUMAN, CONTEXTS, SYSTEMS), view).statistic
    assert interval(1) == one and interval(2).low != one.low
    turned = interval(1, slice(None, None, -1))  # a context is a context wherever its responses stand
    assert (turned.low, turned.high) == pytest.approx((one.low, one.high), abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_at_system_level_it_holds_its_statistic_and_needs_systems(measure: Any) -> None:
    view = View(measure, "system")
    interval: Any = interval_of(ScoredResponses(SCORES, HUMAN, CONTEXTS, SYSTEMS), view, resamples=200)
    assert interval.outcome == "ok" and interval.low <= interval.statistic <= interval.high
    few = SYSTEMS < 3
    refused = interval_of(ScoredResponses(SCORES[few], HUMAN[few], CONTEXTS[few], SYSTEMS[few]), view)
    assert (refused.low, refused.outcome) == (None, "too_few_systems")


@pytest.mark.parametrize("grouping", ["pooled", "system", "context"])
def test_accuracy_keeps_the_epsilon_of_the_data(grouping: Any) -> None:
    human = np.round(HUMAN / 3)  # ties, which the scores must meet
    responses, view = ScoredResponses(SCORES, human, CONTEXTS, SYSTEMS), View("accuracy", "segment", grouping)
    plain: Any = agreement_at(responses, view)
    interval: Any = interval_of(responses, view, resamples=300)
    assert plain.epsilon > 0.5 and interval.low < plain.statistic < interval.high < interval.low + 0.2


def test_a_response_six_times_over_tells_no_more_than_once() -> None:
    once: Any = interval_of(ScoredResponses(SCORES[:40], HUMAN[:40], np.arange(40)), PEARSON)
    copied = ScoredResponses(*(np.repeat(one, 6) for one in (SCORES[:40], HUMAN[:40], np.arange(40))))
    together = interval_of(copied, PEARSON)
    assert (together.low, together.high) == pytest.approx((once.low, once.high), abs=1e-9)


def test_coverage() -> None:
    # 150 samples of 30 contexts of 4 responses that share an effect; true r = .5 by construction.
    draw, held, missed = np.random.default_rng(5), 0, 0
    codes = np.repeat(np.arange(30), 4)
    for sample in range(150):
        shared, own = draw.normal(size=(30, 2))[codes], draw.normal(size=(120, 2))
        y, other = (np.sqrt(0.5) * (shared + own)).T
        x = 0.5 * y + np.sqrt(0.75) * other
        interval: Any = interval_of(ScoredResponses(x, y, codes), PEARSON, resamples=200, seed=sample)
        held += interval.low <= 0.5 <= interval.high
        naive = stats.pearsonr(x, y).confidence_interval()
        missed += not naive.low <= 0.5 <= naive.high
    assert 0.91 <= held / 150 <= 0.98
    assert missed / 150 > 0.1  # what takes responses as independent is too sure of itself


def test_what_has_no_interval_says_why() -> None:
    line, codes = np.arange(60.0), np.arange(60) // 2

    def interval(scores: Any, human: Any, contexts: Any = codes, view: View = PEARSON) -> Figure:
        found = interval_of(ScoredResponses(scores, human, contexts), view)
        assert (found.low, found.high) == (None, None)
        return found

    same = "all resamples give the same figure"
    perfect = interval(line, 2 * line, view=View("spearman"))
    assert (perfect.statistic, perfect.reason) == (pytest.approx(1), same)
    assert interval(line + 0.1, 0.3 * line).reason == same  # all resamples are 1 but for rounding
    constant = interval(np.ones(60), line)
    assert (constant.statistic, constant.outcome) == (None, "constant")
    single = interval(line, line**2, np.zeros(60))
    assert single.reason == "1 contexts to resample; 5 are needed" and single.statistic is not None
    one_apart = np.where(line == 0, 1.0, 0.0)  # without the first context a side does not vary
    assert "without one context" in interval(one_apart, line, np.arange(60)).reason
    with pytest.raises(ValueError, match="2 contexts do not fit"):
        interval(SCORES, HUMAN, [1, 2])
    # Ends are refused rather than infinite.
    replicates = np.arange(10.0)
    assert "one side" in bca(20.0, replicates, np.arange(5.0))  # type: ignore[operator]
    assert "no context changes" in bca(4.5, replicates, np.ones(5))  # type: ignore[operator]
    single = np.array([0.0] * 400 + [-50.0])
    assert "single contexts" in bca(8.4, replicates, single, 0.9999999)  # type: ignore[operator]


ONE = Signature(
    evaluator="cosine@2",
    weights=digest("cosine|encoder:minilm"),
    score="f",
    dataset="dailydialog-zhao",
    data="0123456789abcdef",
    criterion="overall",
    aggregation="mean+kappa0.2",
    level="segment",
    grouping="pooled",
    measure="spearman",
    excluded=("checks", "ground-truth"),
    n=800,
    resamples=2000,
    seed=7,
    ssrem="0.1.0",
    numpy="2.4.6",
    scipy="1.17.1",
)


def test_a_signature_is_one_line_that_people_can_read() -> None:
    assert str(ONE) == (
        f"{FORMAT}|evaluator:cosine@2|weights:{digest('cosine|encoder:minilm')}|score:f|dataset:dailydialog-zhao"
        "|data:0123456789abcdef|criterion:overall|aggregation:mean+kappa0.2|level:segment|grouping:pooled"
        "|measure:spearman|excluded:checks,ground-truth|n:800|resamples:2000|seed:7|ssrem:0.1.0|numpy:2.4.6"
        "|scipy:1.17.1"
    )
    assert versions() == {module.__name__: module.__version__ for module in (ssrem, np, scipy)}


def test_every_part_shows_and_no_text_breaks_the_line() -> None:
    for criterion in ("".join(map(chr, range(0x3100))), "\n", " ", "--", "a|n:1", "%7C", "🙂"):
        line = str(replace(ONE, criterion=criterion, seed=None, excluded=()))
        assert len(line.splitlines()) == 1 and line.isprintable()
        parts = dict(part.split(":", 1) for part in line.split("|")[1:])
        assert list(parts) == [field.name for field in fields(Signature)]
        assert (unquote(parts["criterion"]), parts["seed"], parts["excluded"]) == (criterion, "-", "-")
