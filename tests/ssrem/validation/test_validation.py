"""An evaluator beside labels: halves, classes, bias, the verdict, and what is required."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ssrem.annotated_sets.annotated import Annotated
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators.judge.judge import JudgeRef
from ssrem.samples import Sample
from ssrem.validation.passing import LabelledSet, Unlabelled, labelled_set
from ssrem.validation.validation import (
    BY_REFERENCE,
    CHANGED,
    Judged,
    Validation,
    above_one_rater,
    preferences,
    render,
    samples_to_change,
    unmet,
    validate,
    verdict,
)

N = 80


def annotated(quality: Sequence[float], raters: int = 3, system: str | None = "", noise: float = 1.0) -> Any:
    """A response a context by two systems in turn; raters see its quality with noise."""
    draw = np.random.default_rng(7)
    return [
        Annotated(
            *(str(at), (f"turn {at} " + "and more " * (at % 5),), f"answer {at} " + "so " * (at % 7), None),
            "ab"[at % 2] if system == "" else system,
            {"overall": tuple(float(one + draw.normal(0, noise)) for _ in range(raters))},
        )
        for at, one in enumerate(quality)
    ]


@pytest.fixture
def quality() -> np.ndarray:
    return np.random.default_rng(3).normal(size=N)


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("validation.validation", "studies.estimates"):
        monkeypatch.setattr(f"ssrem.{module}.RESAMPLES", 300)


def passes(values: Sequence[float]) -> list[Annotated]:
    rows = zip(annotated(values), values, strict=True)
    return [replace(row, ratings={"good": (float(one > 0),)}) for row, one in rows]


def of(data: LabelledSet, scores: np.ndarray, **settings: Any) -> Validation:
    """copied turns begin with 'turn' and score 9."""

    def score(samples: Sequence[Sample]) -> np.ndarray:
        known = dict(zip((one.response for one in data.samples), scores.tolist(), strict=True))
        return np.array([known.get(one.response, 9.0) for one in samples])

    words = np.array([float(len(one.response.split())) for one in data.samples])
    judged = Judged("mine", "mine/1", scores, settings.pop("unlabelled", None), score)
    return validate(data, judged, {"length": words}, **settings)


def test_a_context_stays_in_its_half_when_labels_are_added(quality: np.ndarray) -> None:
    few, all_of = (labelled_set(annotated(one)) for one in (quality[:30], quality))
    assert (few.calibrating == all_of.calibrating[:30]).all()
    assert 25 < all_of.calibrating.sum() < 55
    doubled = labelled_set(annotated(quality) + annotated(quality))
    assert (doubled.calibrating[:N] == doubled.calibrating[N:]).all()


def test_two_values_are_classes_and_most_raters_decide_and_who_gave_no_label_is_nan() -> None:
    votes = [(1.0, 0.0, 1.0), (0.0, 0.0, 1.0)] * 6
    rows = zip(annotated(np.zeros(12)), votes, strict=True)
    data = labelled_set([replace(row, ratings={"good": vote}) for row, vote in rows])
    assert data.passed is not None and data.passed.tolist() == [True, False] * 6
    first, *others = annotated(np.arange(10.0), raters=2)
    data = labelled_set([replace(first, ratings={"overall": (None, 2.0)}), *others])
    assert np.isnan(data.ratings).sum() == 1 and np.isnan(data.ratings[0, 0])
    assert data.human[0] == data.ratings[1, 0] == 2
    truth = [replace(one, system="ground truth") for one in others[:3]]
    assert labelled_set([first, *truth, *others[3:], *others]).places[:2] == [0, 4]


def test_a_scale_has_classes_by_a_score_alone(quality: np.ndarray) -> None:
    rows = annotated(quality)
    assert labelled_set(rows).passed is None and "--pass SCORE" in labelled_set(rows).one_class
    data = labelled_set(rows, pass_from=0.5)
    assert data.passed is not None and (data.passed == (data.human >= 0.5)).all()
    assert labelled_set(rows, pass_from=99).one_class == "none of the 80 responses pass at 99"
    few = r"overall: too few labelled responses \({}\); 10 are needed"
    equal = r"no two of the labelled responses \(20\) differ .* label more"
    for count, message in ((1, few.format(1)), (9, few.format(9)), (20, equal)):
        with pytest.raises(AnnotationError, match=message):
            labelled_set(annotated(np.ones(count), noise=0.0))


def test_an_evaluator_that_knows_the_quality_is_as_good_as_a_rater(quality: np.ndarray) -> None:
    data = labelled_set(annotated(quality, system="<b>x"), pass_from=0.5)
    result = of(data, quality)
    assert result.spearman.value == pytest.approx(0.88, abs=0.05)
    assert "better than one rater does with the others" in verdict(result)
    assert result.against["length"].low > 0.5  # type: ignore[operator]
    assert (result.labels, result.contexts) == (240, 80)
    assert (result.more_labels, result.more_contexts) == (720, 240)
    # What is required is compared.
    assert unmet(result, {"spearman": 0.5, "low": 0.4, "fpr": 0.5, "tpr": 0.5}) == []
    lower = f"spearman is {result.spearman.value:.3f}, not at least 0.99"
    words = unmet(result, {"spearman": 0.99, "copied": 0.1})
    assert words == [lower, "copied is 1.000, not at most 0.1"]
    # The page escapes names and loads nothing.
    shown: dict[str, Any] = {"data": data, "scores": quality, "generated_at": "today"}
    page = render(result, dataset="<i>set", required={"low": 0.99}, **shown)
    assert "<b>x" not in page and "<i>set" not in page and "&lt;i&gt;set" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "Not met: low is" in page and page.count("<svg") == 2 and "Cases to read" in page


def test_four_times_the_contexts_halve_the_interval() -> None:
    quality = np.random.default_rng(5).normal(size=400)
    widths = []
    for n in (100, 400):
        noise = np.random.default_rng(6).normal(size=n)
        found: Any = of(labelled_set(annotated(quality[:n])), quality[:n] + 2 * noise).spearman
        widths.append(found.high - found.low)
    assert widths[0] / widths[1] == pytest.approx(2, abs=0.4)


def test_what_cannot_be_relied_on_or_is_not_above_a_baseline_is_said(quality: np.ndarray) -> None:
    data, draw = labelled_set(annotated(quality)), np.random.default_rng(2)
    no = "mine cannot be relied on: "
    by_chance = verdict(of(data, np.random.default_rng(8).normal(size=N)))
    assert by_chance.startswith(f"{no}its agreement with people, ρ ")
    assert verdict(of(data, -quality)).startswith(f"{no}it ranks responses against people’s judgement, ρ −0.")
    assert verdict(of(data, np.ones(N))).endswith("agrees with people: the scores are all the same.")
    lengths = np.array([2.0 + at % 7 for at in range(N)])
    mixed = lengths + draw.normal(0, 2, N)
    result = of(labelled_set(annotated(mixed)), mixed + draw.normal(0, 2.5, N))
    assert ", which is less than one rater does with the others, 0." in verdict(result)
    assert "; mine is not shown to be better than the untrained length (0." in verdict(result)
    worse = of(labelled_set(annotated(lengths)), lengths + draw.normal(size=N))
    assert "; mine is worse than the untrained length (0." in verdict(worse)
    exact = labelled_set(annotated(quality, noise=0.0))  # needs no interval
    same = of(exact, exact.human)
    assert verdict(same) == f"mine ranks all {N} responses as people do." and unmet(same, {"low": 0.9}) == []
    assert f"it ranks all {N} responses against people’s judgement" in verdict(of(exact, -exact.human))


def test_unlabelled_responses_of_one_context_vary_together(quality: np.ndarray) -> None:
    data: Any = labelled_set(passes(quality))
    widths = []
    for contexts in (200, 4):
        scores, of_context = np.where(np.arange(200) % 2, 5.0, -5.0), [n % contexts for n in range(200)]
        others = Unlabelled(scores, [(f"New {n}?",) for n in of_context])
        share = of(data, quality, unlabelled=others).passing.shares[1].evaluator
        assert share.value == 0.5 and share.low is not None and share.high is not None
        widths.append(share.high - share.low)
    assert widths[0] < 0.2 and widths[1] > 0.6


def test_responses_without_a_score_are_left_out_and_one_context_is_too_few(quality: np.ndarray) -> None:
    rows, scores = annotated(quality), quality.copy()
    scores[:5] = np.nan
    result = of(labelled_set(rows), scores)
    assert (result.missing, result.responses, result.spearman.n) == (5, 75, 75)
    with pytest.raises(EvaluatorError, match="mine has no score for any of the 80 labelled responses"):
        of(labelled_set(rows), np.full(N, np.nan))
    one = of(labelled_set([replace(row, context=("Hi!",)) for row in rows], pass_from=0), quality)
    assert "too few to judge mine" in verdict(one) and "1 contexts to resample" in verdict(one)
    assert one.more_labels is None and "lacks responses" in one.passing.reason


def test_a_threshold_is_chosen_on_one_half_and_tested_on_the_other(quality: np.ndarray) -> None:
    data: Any = labelled_set(passes(quality))
    scores = quality + np.random.default_rng(1).normal(0, 0.5, N)
    others = Unlabelled(np.array([5.0, -5.0, np.nan, 5.0, 5.0]), [(f"New {n}?",) for n in range(5)])
    result = of(data, scores, precision=0.9, unlabelled=others)
    balance, precise = result.passing.thresholds
    passing, testing = scores >= precise.score, ~data.calibrating  # type: ignore[operator]
    assert balance.score in scores[data.calibrating]
    assert precise.calibrated == data.passed[data.calibrating & passing].mean() >= 0.9
    assert precise.precision.value == data.passed[testing & passing].mean()
    assert precise.tpr.value == passing[testing & data.passed].mean()
    half, others = result.passing.shares
    assert half.people.value == data.passed[testing].mean()
    assert (others.evaluator.value, others.evaluator.n) == (0.75, 4)
    assert others.corrected.value is not None and others.people.value is None
    assert result.measures()["precision"] == precise.precision
    # Of two scores the higher one is the threshold, so that all labels test it.
    verdicts, labels = np.where(scores > 0.3, 1.0, 0.0), data.passed
    both = of(data, verdicts, unlabelled=Unlabelled(np.array([1.0, 0.0, np.nan]), [("a",), ("b",), ("c",)]))
    (only,) = both.passing.thresholds
    assert (only.score, only.tpr.n, only.fpr.n) == (1.0, labels.sum(), (~labels).sum())
    tpr, fpr = verdicts[labels].mean(), verdicts[~labels].mean()
    assert (only.tpr.value, only.fpr.value) == (tpr, fpr)
    assert both.passing.shares[1].corrected.value == pytest.approx((0.5 - fpr) / (tpr - fpr))
    # A precision out of reach has no threshold.
    result = of(data, np.random.default_rng(1).normal(size=N), precision=0.99)
    reason = result.passing.thresholds[-1].reason
    assert "the highest precision is 0." in reason
    assert unmet(result, {"precision": 0.9}) == [f"precision has no value ({reason})"]


def test_copied_turns_and_the_own_family_are_biases(quality: np.ndarray) -> None:
    data = labelled_set(annotated(quality))
    result = of(data, quality + 2 * (np.array(data.systems) == "a"), own=["a"])
    bias = {one.name: one for one in result.bias}
    assert result.measures()["copied"].value == 1.0
    assert "a copied turn scores as high as 100% of the good responses" in verdict(result)
    family: Any = bias["systems"].findings[-1]
    assert family.value > 20 and family.low > 0
    higher = {one.condition: one.value or 0.0 for one in bias["systems"].findings}
    assert higher["a"] > 0 > higher["b"]
    assert "one response at a time" in bias["position"].reason
    by_reference = Judged("ref", "ref/1", quality, None, BY_REFERENCE)
    unnamed = validate(labelled_set(annotated(quality, system=None)), by_reference, {})
    assert "name no two systems" in next(one for one in unnamed.bias if one.name == "systems").reason
    assert (
        "true response" in unnamed.measures()["copied"].reason
    )  # it needs a reference, so nothing is changed


def test_equal_copies_are_scored_once(quality: np.ndarray) -> None:
    asked: list[Sample] = []

    def score(samples: Sequence[Sample]) -> np.ndarray:
        asked.extend(samples)
        return np.arange(len(samples), dtype=np.float64)

    data = labelled_set([replace(row, context=("Hi!", "Hello.")) for row in annotated(quality)])
    validate(data, Judged("mine", "mine/1", quality, None, score), {})
    assert len(asked) == len(set(asked)) and set(asked) == set(samples_to_change(data, CHANGED))
    assert sum(one.response == "Hello." for one in asked) == 1


def test_the_order_of_two_responses_may_sway_a_comparison(quality: np.ndarray) -> None:
    """Of four responses one is better in both orders, one worse, and two lose or win by their place."""

    class Comparing(JudgeRef):
        def judgments(self, samples: Sequence[Sample]) -> Any:
            raw = ((5, 1), (1, 5), (2, 2), (5, 4))
            for row in range(len(samples)):
                for order, score in enumerate(raw[row % 4]):
                    yield {"row": row, "order_no": order, "score": score}

    data = labelled_set(annotated(quality))
    preferred = preferences(Comparing(model="m", base_url="http://localhost/v1"), data.samples)
    judged = Judged("both", "both/1", quality, None, "It compares.", preferred)
    lean, swayed = next(one for one in validate(data, judged, {}).bias if one.name == "position").findings
    assert swayed.value == 0.5 and swayed.low is not None and swayed.low < 0.5
    assert (lean.value, swayed.n) == (pytest.approx((0 + 0 - 1 + 1.5) / 4), 80)


def test_one_more_rater_is_not_better_than_one_rater() -> None:
    """Whose target, the mean of fewer others, is noisier than the mean that the evaluator is compared with."""
    better = less = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        ratings = draw.normal(size=200) + draw.normal(size=(3, 200))
        data = labelled_set(
            [
                Annotated(str(at), (f"turn {at}",), f"answer {at}", None, None, {"overall": (one, other)})
                for at, (one, other) in enumerate(ratings[:2].T.tolist())
            ]
        )
        above: Any = above_one_rater(ratings[2], data)
        better, less = better + (above.low > 0), less + (above.high < 0)
    assert better <= 1 and less <= 1
    exact: Any = above_one_rater(ratings[:2].mean(axis=0), data)
    assert exact.low > 0
