"""Error rates with their intervals, the corrected share, and thresholds: against worked examples and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from ssrem.studies.estimates import over_contexts, share
from ssrem.validation.passing import (
    FEWEST_PASSING,
    best_threshold,
    corrected_share,
    rogan_gladen,
    threshold_for,
)

HALVES = np.tile([True, False], 20)


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which responses people pass, scores with ties that go with it, and contexts of about three responses."""
    draw = np.random.default_rng(seed)
    passed = draw.random(n) < 0.4
    return passed, np.round(draw.normal(size=n) + passed, 1), draw.integers(max(n // 3, 1), size=n)


def test_a_share_is_corrected_as_by_hand_and_to_peoples_on_the_very_responses() -> None:
    apparent, sensitivity, specificity = np.array(
        [(0.2, 0.95, 0.9), (0.5, 1.0, 1.0), (0.1, 0.8, 0.9), (0.8, 0.8, 0.9), (0.5, 0.4, 0.6)]
    ).T
    expected = [2 / 17, 0.5, 0.0, 1.0, np.nan]  # the rates of the last are alike
    assert rogan_gladen(apparent, sensitivity, 1 - specificity) == pytest.approx(expected, nan_ok=True)
    passed, scores, clusters = drawn(90)
    everyone = np.ones(90, dtype=bool)
    estimate = corrected_share(scores >= 0.5, passed, everyone, everyone, clusters)
    assert estimate.value == pytest.approx(passed.mean())
    judged = np.arange(40) < 20  # labels without an error leave a share as it is
    assert corrected_share(HALVES, HALVES, judged, ~judged, np.arange(40)).value == 0.5
    passed, scores, _ = drawn(4000)
    judged = np.arange(4000) < 2000
    passing = scores >= 0
    estimate = corrected_share(passing, passed, judged, ~judged, np.arange(4000))
    assert estimate.low is not None and estimate.high is not None and estimate.n == 2000
    assert estimate.low < passed[~judged].mean() < estimate.high < passing[~judged].mean()


def test_the_interval_of_a_corrected_share_holds_it_though_the_labels_have_hardly_an_error() -> None:
    """With resamples alone it holds it in three of four cases."""
    draw, labels, share = np.random.default_rng(5), np.arange(350) < 50, 0.1
    held = 0
    for _ in range(40):
        passed = draw.random(350) < np.where(labels, 0.5, share)
        passing = draw.random(350) < np.where(passed, 0.97, 0.03)
        estimate = corrected_share(passing, passed, labels, ~labels, np.arange(350))
        assert estimate.low is not None and estimate.high is not None
        held += estimate.low <= share <= estimate.high
    assert held >= 36


def test_an_evaluator_that_hardly_tells_the_two_apart_corrects_nothing() -> None:
    for failed, judged, why in (
        ([], 20, "passes what people fail as often as what they pass"),
        ([1], 20, "where the rates are measured, tpr is above fpr by 0.100 only"),
        ([1], 4, "how far tpr is above fpr has no interval"),
    ):
        passing, of_judged = np.ones(40, dtype=bool), np.arange(40) < judged
        passing[failed] = False
        estimate = corrected_share(passing, HALVES, of_judged, ~of_judged, np.arange(40))
        assert (estimate.value, estimate.low, estimate.high, estimate.n) == (None, None, None, 40 - judged)
        assert estimate.reason.startswith("the labels cannot correct it: ") and why in estimate.reason


def test_a_resample_counts_a_response_as_often_as_its_context_is_drawn() -> None:
    passed, scores, clusters = drawn(60)
    passing, draw = scores >= 0.5, np.random.default_rng(1)
    values = []
    for _ in range(2000):
        rows = np.repeat(np.arange(60), np.bincount(draw.integers(20, size=20), minlength=20)[clusters])
        values.append(passing[rows][passed[rows]].mean())
    estimate = share(passing, passed, clusters)
    assert estimate.value == passing[passed].mean() and estimate.n == passed.sum()
    outer = norm.cdf(t.ppf(0.025, 19) * (20 / 19) ** 0.5)  # the interval is wider as the contexts are few
    assert (estimate.low, estimate.high) == pytest.approx(np.quantile(values, [outer, 1 - outer]), abs=0.05)


@pytest.mark.parametrize("hits", [0, 12])
def test_where_resamples_do_not_differ_the_interval_is_wilsons(hits: int) -> None:
    contexts = np.arange(12)
    expected = binomtest(hits, 12).proportion_ci(method="wilson")
    for of in (contexts, contexts.repeat(5)):  # of 12 contexts, not of 60 responses
        estimate = share(of < hits, np.ones(len(of), dtype=bool), of)
        assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


def test_there_is_no_share_of_nothing_and_no_interval_of_one_context() -> None:
    nothing = np.zeros(8, dtype=bool)
    assert share(nothing, nothing, np.arange(8)).reason == "no response to count"
    estimate = over_contexts(lambda weights: weights[:, 0], np.zeros(8, dtype=np.int64), ~nothing)
    assert estimate.low is None and estimate.reason == "1 contexts to resample; 5 are needed"


def test_thresholds_are_those_of_a_search() -> None:
    for seed in range(3):
        passed, scores, _ = drawn(80, seed)
        gains, precisions = {}, {}
        for one in sorted(set(scores.tolist())):
            passing = scores >= one
            gains[one] = passing[passed].mean() - passing[~passed].mean()
            if passing.sum() >= FEWEST_PASSING:
                precisions[one] = passed[passing].mean()
        best = best_threshold(scores, passed)
        assert best is not None and gains[best] == pytest.approx(max(gains.values()))
        chosen, highest = threshold_for(0.7, scores, passed)
        assert chosen == min((one for one, precision in precisions.items() if precision >= 0.7), default=None)
        assert highest == pytest.approx(max(precisions.values()))
    # Scores that say nothing or the contrary have none.
    assert best_threshold(np.ones(40), HALVES) is best_threshold(-HALVES.astype(np.float64), HALVES) is None
    assert threshold_for(0.9, np.ones(40), HALVES) == (None, 0.5)
