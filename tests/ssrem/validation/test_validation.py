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
from ssrem.validation.passing import LabelledSet, labelled_set
from ssrem.validation.validation import (
    BY_REFERENCE,
    CHANGED,
    Judged,
    Validation,
    above_one_rater,
    changed,
    preferences,
    render,
    unmet,
    validate,
    verdict,
)

N = 80


def annotated(quality: Sequence[float], raters: int = 3, **changes: Any) -> list[Annotated]:
    """A response a context by two systems in turn; raters see its quality with noise."""
    draw = np.random.default_rng(7)
    return [
        Annotated(
            str(at),
            (f"turn {at} " + "and more " * (at % 5),),
            f"answer {at} " + "so " * (at % 7),
            None,
            changes.get("system", "ab"[at % 2]),
            {"overall": tuple(float(one + draw.normal(0, changes.get("noise", 1.0))) for _ in range(raters))},
        )
        for at, one in enumerate(quality)
    ]


@pytest.fixture
def quality() -> np.ndarray:
    return np.random.default_rng(3).normal(size=N)


def passes(values: Sequence[float]) -> list[Annotated]:
    rows = annotated(values)
    labels = [{"good": (float(one > 0),)} for one in values]
    return [replace(row, ratings=label) for row, label in zip(rows, labels, strict=True)]


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


def test_two_values_are_classes_and_most_raters_decide() -> None:
    rows = annotated(np.zeros(12))
    votes = [(1.0, 0.0, 1.0), (0.0, 0.0, 1.0)] * 6
    data = labelled_set([replace(row, ratings={"good": vote}) for row, vote in zip(rows, votes, strict=True)])
    assert data.passed is not None and data.passed.tolist() == [True, False] * 6


def test_a_rater_who_gave_no_label_is_nan() -> None:
    rows = annotated(np.arange(10.0), raters=2)
    rows[0] = replace(rows[0], ratings={"overall": (None, 2.0)})
    data = labelled_set(rows)
    assert np.isnan(data.ratings).sum() == 1 and np.isnan(data.ratings[0, 0])
    assert data.human[0] == data.ratings[1, 0] == 2


def test_a_scale_has_classes_by_a_score_alone(quality: np.ndarray) -> None:
    rows = annotated(quality)
    assert labelled_set(rows).passed is None and "--pass SCORE" in labelled_set(rows).one_class
    data = labelled_set(rows, pass_from=0.5)
    assert data.passed is not None and (data.passed == (data.human >= 0.5)).all()
    assert labelled_set(rows, pass_from=99).one_class == "none of the 80 responses pass at 99"


def test_too_few_or_equal_labels_are_refused() -> None:
    for few in (1, 9):
        named = rf"overall: too few labelled responses \({few}\); 10 are needed"
        with pytest.raises(AnnotationError, match=named):
            labelled_set(annotated(np.zeros(few), noise=0.0))
    with pytest.raises(
        AnnotationError, match=r"no two of the labelled responses \(20\) differ .* label more"
    ):
        labelled_set(annotated(np.ones(20), noise=0.0))


def test_an_evaluator_that_knows_the_quality_is_as_good_as_a_rater(quality: np.ndarray) -> None:
    result = of(labelled_set(annotated(quality), pass_from=0.5), quality)
    assert result.spearman.value == pytest.approx(0.88, abs=0.05)
    assert "better than one rater does with the others" in verdict(result)
    assert result.against["length"].low > 0.5  # type: ignore[operator]
    assert (result.labels, result.contexts) == (240, 80)
    assert (result.more_labels, result.more_contexts) == (720, 240)


def test_four_times_the_contexts_halve_the_interval() -> None:
    quality = np.random.default_rng(5).normal(size=400)
    widths = []
    for n in (100, 400):
        noise = np.random.default_rng(6).normal(size=n)
        result = of(labelled_set(annotated(quality[:n])), quality[:n] + 2 * noise)
        assert result.spearman.low is not None and result.spearman.high is not None
        widths.append(result.spearman.high - result.spearman.low)
    assert widths[0] / widths[1] == pytest.approx(2, abs=0.4)


def test_scores_by_chance_cannot_be_relied_on(quality: np.ndarray) -> None:
    scores = np.random.default_rng(8).normal(size=N)
    result = of(labelled_set(annotated(quality)), scores)
    assert verdict(result).startswith("mine cannot be relied on: its agreement with people, ρ ")
    against = of(labelled_set(annotated(quality)), -quality)
    assert verdict(against).startswith(
        "mine cannot be relied on: it ranks responses against people’s judgement, ρ −0."
    )


def test_what_is_not_above_a_baseline_is_said() -> None:
    lengths, draw = np.array([2.0 + at % 7 for at in range(N)]), np.random.default_rng(2)
    mixed = lengths + draw.normal(0, 2, N)
    result = of(labelled_set(annotated(mixed)), mixed + draw.normal(0, 2.5, N))
    assert "but is not shown to be better than the untrained length (0." in verdict(result)
    worse = of(labelled_set(annotated(lengths)), lengths + draw.normal(size=N))
    assert "but less than the untrained length (0." in verdict(worse)


def test_equal_scores_and_one_context_have_reasons(quality: np.ndarray) -> None:
    rows = annotated(quality)
    same = of(labelled_set(rows), np.ones(N))
    assert verdict(same).endswith("agrees with people: the scores are all the same.")
    one = of(labelled_set([replace(row, context=("Hi!",)) for row in rows], pass_from=0), quality)
    assert "too few to judge mine" in verdict(one) and "1 contexts to resample" in verdict(one)
    assert one.more_labels is None and "lacks responses" in one.passing.reason


def test_responses_without_a_score_are_left_out(quality: np.ndarray) -> None:
    data, scores = labelled_set(annotated(quality)), quality.copy()
    scores[:5] = np.nan
    result = of(data, scores)
    assert (result.missing, result.responses, result.spearman.n) == (5, 75, 75)
    with pytest.raises(EvaluatorError, match="mine has no score for any of the 80 labelled responses"):
        of(data, np.full(N, np.nan))


def test_a_threshold_is_chosen_on_one_half_and_tested_on_the_other(quality: np.ndarray) -> None:
    data = labelled_set(passes(quality))
    scores = quality + np.random.default_rng(1).normal(0, 0.5, N)
    result = of(data, scores, precision=0.9, unlabelled=np.array([5.0, -5.0, np.nan, 5.0, 5.0]))
    balance, precise = result.passing.thresholds
    testing = ~data.calibrating
    assert balance.score in scores[data.calibrating] and precise.score is not None
    passing = scores >= precise.score
    assert precise.calibrated == data.passed[data.calibrating & passing].mean() >= 0.9  # type: ignore[index]
    assert precise.precision.value == data.passed[testing & passing].mean()  # type: ignore[index]
    assert precise.tpr.value == passing[testing & data.passed].mean()  # type: ignore[operator]
    half, others = result.passing.shares
    assert half.people.value == data.passed[testing].mean()  # type: ignore[index]
    assert (others.evaluator.value, others.evaluator.n) == (0.75, 4)
    assert others.corrected.value is not None and others.people.value is None
    assert result.measures()["precision"] == precise.precision


def test_a_precision_out_of_reach_has_no_threshold(quality: np.ndarray) -> None:
    result = of(labelled_set(passes(quality)), np.random.default_rng(1).normal(size=N), precision=0.99)
    assert "the highest precision is 0." in result.passing.thresholds[-1].reason
    assert unmet(result, {"precision": 0.9}) == [
        f"precision has no value ({result.passing.thresholds[-1].reason})"
    ]


def test_copied_turns_and_the_own_family_are_biases(quality: np.ndarray) -> None:
    data = labelled_set(annotated(quality))
    favoured = quality + 2 * (np.array(data.systems) == "a")
    result = of(data, favoured, own=["a"])
    bias = {one.name: one for one in result.bias}
    assert result.measures()["copied"].value == 1.0
    assert "a copied turn scores as high as 100% of the good responses" in verdict(result)
    family = bias["systems"].findings[-1]
    assert family.value is not None and family.value > 20 and family.low is not None and family.low > 0
    higher = {one.condition: one.value or 0.0 for one in bias["systems"].findings}
    assert higher["a"] > 0 > higher["b"]
    assert "one response at a time" in bias["position"].reason
    unnamed = of(labelled_set(annotated(quality, system=None)), quality)
    assert "name no two systems" in next(one for one in unnamed.bias if one.name == "systems").reason


def test_equal_copies_are_scored_once(quality: np.ndarray) -> None:
    asked: list[Sample] = []

    def score(samples: Sequence[Sample]) -> np.ndarray:
        asked.extend(samples)
        return np.arange(len(samples), dtype=np.float64)

    rows = [replace(row, context=("Hi!", "Hello.")) for row in annotated(quality)]
    validate(labelled_set(rows), Judged("mine", "mine/1", quality, None, score), {})
    assert len(asked) == len(set(asked)) and set(asked) == set(changed(labelled_set(rows), CHANGED))
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
    position = next(one for one in validate(data, judged, {}).bias if one.name == "position")
    lean, swayed = position.findings
    assert swayed.value == 0.5 and swayed.low is not None and swayed.low < 0.5
    assert lean.value == pytest.approx((0 + 0 - 1 + 1.5) / 4)
    assert swayed.n == 80


def test_an_evaluator_that_needs_a_reference_is_not_attacked(quality: np.ndarray) -> None:
    result = validate(
        labelled_set(annotated(quality)), Judged("ref", "ref/1", quality, None, BY_REFERENCE), {}
    )
    assert "true response" in result.measures()["copied"].reason


def test_what_is_required_is_compared(quality: np.ndarray) -> None:
    result = of(labelled_set(annotated(quality), pass_from=0), quality)
    assert unmet(result, {"spearman": 0.5, "low": 0.4, "fpr": 0.5, "tpr": 0.5}) == []
    words = unmet(result, {"spearman": 0.99, "copied": 0.1})
    assert words == [
        f"spearman is {result.spearman.value:.3f}, not at least 0.99",
        "copied is 1.000, not at most 0.1",
    ]


def test_the_page_escapes_names_and_loads_nothing(quality: np.ndarray) -> None:
    data = labelled_set(annotated(quality, system="<b>x"), pass_from=0)
    result = of(data, quality)
    page = render(
        result, dataset="<i>set", data=data, scores=quality, required={"low": 0.99}, generated_at="today"
    )
    assert "<b>x" not in page and "<i>set" not in page and "&lt;i&gt;set" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "Not met: low is" in page and page.count("<svg") == 2 and "Cases to read" in page


def test_one_more_rater_is_not_better_than_one_rater() -> None:
    """Whose target, the mean of fewer others, is noisier than the mean that the evaluator is compared with."""
    better = less = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        ratings = draw.normal(size=300) + draw.normal(size=(3, 300))
        rows = [
            Annotated(str(at), (f"turn {at}",), f"answer {at}", None, None, {"overall": (one, other)})
            for at, (one, other) in enumerate(ratings[:2].T.tolist())
        ]
        data = labelled_set(rows)
        above = above_one_rater(ratings[2], data)
        assert above.low is not None and above.high is not None
        better, less = better + (above.low > 0), less + (above.high < 0)
    assert better <= 2 and less <= 2
    exact = above_one_rater(ratings[:2].mean(axis=0), data)
    assert exact.low is not None and exact.low > 0


def test_who_ranks_all_as_people_do_needs_no_interval(quality: np.ndarray) -> None:
    data = labelled_set(annotated(quality, noise=0.0))
    same = of(data, data.human)
    assert verdict(same) == f"mine ranks all {N} responses as people do."
    assert unmet(same, {"low": 0.9}) == []
