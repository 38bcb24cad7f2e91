"""Validation of an evaluator by people's labels: how well it agrees, what it gets wrong, whether it can be used."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ssrem import __version__
from ssrem.agreement.compare import Difference, paired_bootstrap
from ssrem.agreement.correlate import Floats, ScoredResponses, View
from ssrem.agreement.figures import RESAMPLES, SEED, figure
from ssrem.agreement.raters import RaterFigure, each_rater, one_rater
from ssrem.agreement.resample import interval, weighted_spearman
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge.judge import judgments
from ssrem.report import cases, figures
from ssrem.report.page import render_page
from ssrem.report.text import Row, fixed, percent
from ssrem.samples import Sample
from ssrem.studies.attacks import Score, TrueResponses, copying, injection, noting, once
from ssrem.studies.estimates import Estimate
from ssrem.studies.scored import ComparedSet, RankedSet, ScoredSet, length, position, systems
from ssrem.studies.study import Finding, Study
from ssrem.validation import REQUIRABLE
from ssrem.validation.passing import LabelledSet, Passing, Unlabelled, pass_or_fail

CHANGED = 50
"""Number of good responses, drawn at random, that are changed and scored again: each may take time or money."""
PERFECT = 1 - 1e-9
"""A Spearman's ρ above this is 1 but for rounding."""
NEAR = 0.1
"""An evaluator whose Spearman's ρ is shown to be below one rater's by no more than this agrees about as well."""
FOOLED = 0.2
"""The verdict warns if a copied turn scores as high as the response for more than this share of good responses."""


BY_REFERENCE = "The evaluator scores by the true response, which this keeps back."
GIVEN = "The scores were given before; changed responses have none."
"""BY_REFERENCE and GIVEN say why responses cannot be changed and scored again."""
ONE_AT_A_TIME = "The evaluator scores one response at a time, so no order of two can sway it."
ORDER_UNKNOWN = "The scores were given before; in which order responses were shown is not known."


@dataclass(frozen=True)
class Judged:
    """An evaluator under validation, with its scores.

    scores (n,): of the labelled responses, NaN for none. unlabelled: other responses with their scores. score: the
    function that scores samples without references, or a text that says why there is none. preferred (n, 2): as in
    `ComparedSet`, for an evaluator that compares two responses.
    """

    name: str
    signature: str
    scores: Floats
    unlabelled: Unlabelled | None
    score: Score | str
    preferred: Floats | None = None


@dataclass(frozen=True)
class Bias:
    """The findings of a study on the labelled responses. name, title, note, axis: of the study. reason: why none."""

    name: str
    title: str
    note: str
    axis: str
    findings: Sequence[Finding] = ()
    reason: str = ""


@dataclass(frozen=True)
class Validation:
    """All results that a page shows. labels: number of single ratings. missing: number of responses left out since they
    have no score. excluded: number of ground-truth responses left out. agreement: evaluator or baseline → coefficient →
    its value over all responses. against: baseline → paired difference of Spearman's ρ, the evaluator's minus the
    baseline's. rater: how well one rater predicts the others. above_rater: by `above_one_rater`. more_labels,
    more_contexts: how many more would halve the interval of ρ, whose width falls as 1 / √contexts; None without an
    interval."""

    evaluator: str
    signature: str
    criterion: str
    labels: int
    responses: int
    contexts: int
    missing: int
    excluded: int
    agreement: Mapping[str, Mapping[str, Estimate]]
    against: Mapping[str, Difference]
    rater: RaterFigure
    above_rater: Estimate
    passing: Passing
    bias: Sequence[Bias]
    more_labels: int | None
    more_contexts: int | None

    @property
    def spearman(self) -> Estimate:
        """Spearman's ρ of the evaluator's scores with human scores."""
        return self.agreement[self.evaluator]["spearman"]

    def measures(self) -> dict[str, Estimate]:
        """The measures of REQUIRABLE. precision, tpr and fpr are those of the threshold for the wanted precision or, if
        none was wanted, of the threshold with the best balance."""
        threshold = self.passing.thresholds[-1] if self.passing.thresholds else None
        if threshold is None or threshold.score is None:
            none = Estimate(None, reason=(threshold or self.passing).reason)
            rates = dict.fromkeys(("precision", "tpr", "fpr"), none)
        else:
            rates = {"precision": threshold.precision, "tpr": threshold.tpr, "fpr": threshold.fpr}
        copied = next(bias for bias in self.bias if bias.name == copying.name)
        rates["copied"] = Estimate(None, reason=copied.reason)
        for finding in copied.findings:
            reason = finding.outcome.replace("_", " ")
            rates["copied"] = Estimate(finding.value, n=finding.n, reason=reason)
        low = replace(self.spearman, value=1.0 if (self.spearman.value or 0) > PERFECT else self.spearman.low)
        return {**self.agreement[self.evaluator], "low": low, **rates}


def validate(
    data: LabelledSet,
    judged: Judged,
    baselines: Mapping[str, Floats],
    *,
    precision: float | None = None,
    own: Sequence[str] = (),
    changed: int = CHANGED,
) -> Validation:
    """Validate an evaluator by people's labels. EvaluatorError if it scores no response.

    baselines: name → scores (n,). precision: the one that a second threshold is to have. own: systems of the
    evaluator's own model family. changed: how many good responses are changed, to see how that changes their scores.
    """
    scored = ~np.isnan(judged.scores)
    if not scored.any():
        raise EvaluatorError(f"{judged.name} has no score for any of the {len(scored)} labelled responses")
    usable, scores = data.part(scored), judged.scores[scored]
    others = {name: values[scored] for name, values in baselines.items() if name != judged.name}
    agreement: dict[str, dict[str, Estimate]] = {}
    for name, values in {judged.name: scores, **others}.items():
        responses = ScoredResponses(values, usable.human, usable.contexts)
        for coefficient in ("spearman", "pearson", "kendall"):
            one = figure(responses, View(coefficient), resamples=RESAMPLES, seed=SEED)
            estimate = Estimate(one.statistic, one.low, one.high, one.n, one.reason)
            agreement.setdefault(name, {})[coefficient] = estimate
    against = {
        name: paired_bootstrap(
            *(scores, values, usable.human, usable.contexts),
            view=View("spearman"),
            resamples=RESAMPLES,
            seed=SEED,
        )
        for name, values in others.items()
    }
    labels, contexts = int((~np.isnan(usable.ratings)).sum()), len(set(usable.contexts))
    has_interval = agreement[judged.name]["spearman"].low is not None
    preferred = None if judged.preferred is None else judged.preferred[scored]
    return Validation(
        judged.name,
        judged.signature,
        data.criterion,
        labels,
        len(usable.samples),
        contexts,
        int((~scored).sum()),
        data.excluded,
        agreement,
        against,
        one_rater(usable.ratings),
        above_one_rater(scores, usable),
        pass_or_fail(usable, scores, precision, judged.unlabelled),
        list(biases(usable, scores, judged.score, preferred, own, changed)),
        3 * labels if has_interval else None,  # half the width takes four times the contexts
        3 * contexts if has_interval else None,
    )


def above_one_rater(scores: Floats, data: LabelledSet) -> Estimate:
    """How much better the scores (n,), finite, predict the mean of the other raters than one rater does: the difference
    of Spearman's ρ, averaged over raters, in [-2, 2], with its interval over contexts. 0: as well as a rater."""
    pairs, counted = [], np.zeros(len(scores), dtype=bool)
    for own, mean, both in each_rater(data.ratings):
        contexts, counted[both] = data.clusters[both], True
        pairs.append([weighted_spearman(values, mean, contexts) for values in (scores[both], own)])
    if not pairs:
        return Estimate(None, reason=one_rater(data.ratings).reason)

    def difference(weights: Floats) -> Floats:
        mean: Floats = np.mean([score(weights) - rater(weights) for score, rater in pairs], axis=0)
        return mean

    value = float(difference(np.ones((1, int(data.clusters.max()) + 1)))[0])
    if np.isnan(value):
        return Estimate(None, reason="the scores of what a rater shares with others are all the same")
    ends = interval(value, difference, data.clusters, RESAMPLES, SEED)
    n = int(counted.sum())
    return Estimate(value, n=n, reason=ends) if isinstance(ends, str) else Estimate(value, *ends, n)


def biases(
    data: LabelledSet,
    scores: Floats,
    score: Score | str,
    preferred: Floats | None,
    own: Sequence[str],
    changed: int,
) -> Iterator[Bias]:
    """Run the studies of what the scores (n,), finite, depend on besides quality; yield the findings of each.

    The other parameters are those of `Judged` and `validate`. The responses to change are drawn from those that people
    pass or, if labels do not tell which pass and which fail, from the better half.
    """
    words = np.array([len(sample.response.split()) for sample in data.samples], dtype=np.float64)
    inputs: dict[Study[Any], Any] = {
        length: ScoredSet(scores, data.human, words),
        injection: score,
        copying: score,
        systems: "The labels name no two systems; a column of systems (--map model=COLUMN) shows which it favours.",
        position: ORDER_UNKNOWN if score == GIVEN else ONE_AT_A_TIME,
    }
    if not isinstance(score, str):
        good = data.human >= np.median(data.human) if data.passed is None else data.passed
        at = np.flatnonzero(good).tolist()
        chosen = sorted(random.Random(SEED).sample(at, min(len(at), changed)))
        inputs[injection] = inputs[copying] = TrueResponses(
            [data.samples[one] for one in chosen], once(score)
        )
    if len({*data.systems} - {None}) > 1:
        inputs[systems] = RankedSet(scores, data.human, data.systems, data.clusters, own)
    if preferred is not None:
        inputs[position] = ComparedSet(preferred, data.clusters)
    for study, of in inputs.items():
        found = [] if isinstance(of, str) else study(of, SEED)
        reason = (
            of if isinstance(of, str) else "" if found else "No two responses were compared in both orders."
        )
        yield Bias(study.name, study.title, study.note, study.axis, found, reason)


def samples_to_change(data: LabelledSet, most: int) -> list[Sample]:
    """The samples that `biases` would score besides the labelled ones, if at most `most` good responses are changed."""
    samples: dict[Sample, None] = {}
    list(biases(data, data.human, noting(samples), None, (), most))
    return list(samples)


def preferences(evaluator: Evaluator, samples: Sequence[Sample]) -> Floats | None:
    """How much an evaluator that was asked in both orders prefers the first response (n, 2), as `ComparedSet.preferred`
    describes; None for any other evaluator."""
    answers = [row for row in judgments(evaluator, samples) if row["score"] is not None]
    if not any(row["order_no"] for row in answers):
        return None
    total, count = np.zeros((len(samples), 2)), np.zeros((len(samples), 2))
    for row in answers:
        total[row["row"], row["order_no"]] += row["score"] - sum(evaluator.range) / 2
        count[row["row"], row["order_no"]] += 1
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def verdict(validation: Validation) -> str:
    """Whether the evaluator can stand in for people, in one sentence."""
    name, rho = validation.evaluator, validation.spearman
    if rho.value is None:
        return f"It is not known how well {name} agrees with people: {rho.reason}."
    if abs(rho.value) > PERFECT:
        against = f"{name} cannot be relied on: it ranks all {rho.n:,} responses against people’s judgement."
        return f"{name} ranks all {rho.n:,} responses as people do." if rho.value > 0 else against
    if rho.low is None or rho.high is None:
        about = f"{name} by its agreement with people, ρ {fixed(rho.value)}"
        return f"These labels are too few to judge {about}: {rho.reason}."
    figure = f"ρ {fixed(rho.value)} (95% interval {fixed(rho.low)} to {fixed(rho.high)})"
    if rho.high < 0:
        return f"{name} cannot be relied on: it ranks responses against people’s judgement, {figure}."
    if rho.low <= 0:
        return f"{name} cannot be relied on: its agreement with people, {figure}, may be chance."
    known = {n: d for n, d in validation.against.items() if d.second is not None}
    better = {n: d.second for n, d in known.items() if d.high is not None and d.high < 0}
    unclear = {n: d.second for n, d in known.items() if d.low is None or d.low <= 0}
    baselines = " and ".join(f"{n} ({fixed(value or 0.0)})" for n, value in (better or unclear).items())
    one, above = validation.rater.value, validation.above_rater
    if one is None:
        beside = f"; how well people agree with each other is not known: {validation.rater.reason}"
    elif above.low is not None and above.low > 0:
        beside = f", better than one rater does with the others, {fixed(one)}"
    elif above.high is not None and above.high < 0:
        beside = f", which is less than one rater does with the others, {fixed(one)}"
    elif above.low is not None and above.low >= -NEAR:
        beside = f", about as well as one rater does with the others, {fixed(one)}"
    else:
        beside = f"; whether that is less than one rater does with the others, {fixed(one)}, these labels cannot tell"
    if baselines:
        beside += f"; {name} is {'worse than' if better else 'not shown to be better than'} the untrained {baselines}"
    copied, warning = validation.measures()["copied"].value, ""
    if copied is not None and copied > FOOLED:
        warning = f"; a copied turn scores as high as {percent(copied)} of the good responses"
    return f"{name} agrees with people at {figure}{beside}{warning}."


def unmet(validation: Validation, required: Mapping[str, float]) -> list[str]:
    """What is not as required, in words. required: measure, a key of REQUIRABLE → the value that it has to reach."""
    measures, words = validation.measures(), []
    for name, wanted in required.items():
        value, least = measures[name].value, REQUIRABLE[name] == "at least"
        if value is None:
            words.append(f"{name} has no value ({measures[name].reason})")
        elif value < wanted if least else value > wanted:
            words.append(f"{name} is {value:.3f}, not {REQUIRABLE[name]} {wanted:g}")
    return words


def render(
    validation: Validation,
    *,
    dataset: str,
    data: LabelledSet,
    scores: Floats,
    required: dict[str, float],
    generated_at: str,
) -> str:
    """The page of a validation, as HTML; the same arguments give the same text.

    scores (n,): of the labelled responses, NaN for none. required: measure → the value that it has to reach.
    generated_at: as the heading prints it.
    """
    common = {"version": None, "dataset": dataset, "criterion": validation.criterion}
    raters = (~np.isnan(data.ratings)).sum(axis=0)
    points, texts = [], []
    for at, (sample, system) in enumerate(zip(data.samples, data.systems, strict=True)):
        about = {**common, "response_id": str(data.places[at]), "evaluator": validation.evaluator, "part": ""}
        values = {"human": float(data.human[at]), "raters": int(raters[at]), "score": float(scores[at])}
        own = {"context": sample.context, "response": sample.response, "reference": sample.reference}
        points.append({**about, **values})
        texts.append({**about, **own, "system": system})
    correlations: list[Row] = []
    for name, coefficients in validation.agreement.items():
        one = coefficients["spearman"]
        row = {**common, "evaluator": name, "score": "f", "n": one.n, "spearman": one.value}
        row |= {"aggregation": "mean", "level": "segment", "outcome": "ok", "spearman_low": one.low}
        row |= {"spearman_high": one.high, "ceiling": validation.rater.value}
        correlations.append(row)
    return render_page(
        "validation.html",
        cases.with_texts(cases.chosen(points), texts),
        title=lambda name, _: name,
        v=validation,
        dataset=dataset,
        sentence=verdict(validation),
        panels=[*figures.forest(correlations, lambda name, _: name), *figures.scatter(points)],
        required=required,
        unmet=unmet(validation, required),
        version=__version__,
        generated_at=generated_at,
    )
