"""What else than quality the scores of labelled responses depend on: length, copied turns, injected texts, systems."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.coefficients import mean_ranks
from ssrem.agreement.inputs import Floats
from ssrem.agreement.weighted_levels import ratio
from ssrem.evaluators.base import Evaluator
from ssrem.samples import Sample
from ssrem.studies import STUDIES, study_called
from ssrem.studies.attacks import ATTACKS, Score, TrueResponses, fooled, noting
from ssrem.studies.scored import Scored
from ssrem.studies.study import FEWEST, Finding, Study
from ssrem.validation.labels import Flags, LabelledSet
from ssrem.validation.rates import Estimate, over_contexts, share

COPIED = "context copied"
REGISTERED = ("length", "injection")
"""The registered studies that are part of a validation, where they exist; the others take corpora, or learn."""
CHANGED = 50
"""Good responses that are changed, drawn by the seed: an evaluator may take time or money for each."""


Preferences = Floats
"""Of each sample and both orders of it and its reference (n, 2): how much better the one that comes first is than the
other, in steps of the scale; NaN for no answer."""


@dataclass(frozen=True)
class Bias:
    """One kind: what its figures are, what they say in sentences, and the figures; axis: what their values are; reason:
    why there are none."""

    name: str
    title: str
    note: str
    sentences: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    axis: str = ""
    reason: str = ""


def biases(
    data: LabelledSet,
    scores: Floats,
    score: Score | None,
    *,
    own: Sequence[str] = (),
    preferred: Preferences | None = None,
    most: int = CHANGED,
    seed: int = 0,
) -> Iterator[Bias]:
    """Each kind of bias. scores (n,), finite. score: of samples without references, None for an evaluator that cannot
    do without. own: systems of the evaluator's own model family. preferred: of an evaluator that compares two
    responses. most: good responses that are changed."""
    words = np.array([len(sample.response.split()) for sample in data.samples], dtype=np.float64)
    good = None if score is None else TrueResponses(_good(data, most, seed), _once(score))
    inputs: dict[type, Any] = {Scored: Scored(scores, data.human, words, data.systems, {})}
    inputs |= {} if good is None else {TrueResponses: good}
    studies = [study_called(name) for name in REGISTERED if name in STUDIES]
    for study in (*studies, COPYING):
        if study.data in inputs:
            findings = study.findings(inputs[study.data], seed)
            yield Bias(study.name, study.title, study.note, study.sentences(findings), findings, study.axis)
        else:
            reason = "The evaluator scores by the true response, which this keeps back."
            yield Bias(study.name, study.title, study.note, reason=reason)
    yield _systems(data, scores, own)
    yield _position(data, preferred)


def _good(data: LabelledSet, most: int, seed: int) -> list[Sample]:
    """Responses that people pass, or where labels have no two classes the better half; at most `most`."""
    good = data.human >= np.median(data.human) if data.passed is None else data.passed
    at = np.flatnonzero(good).tolist()
    chosen = sorted(random.Random(seed).sample(at, min(len(at), most)))
    return [data.samples[one] for one in chosen]


def changed(data: LabelledSet, most: int, seed: int = 0) -> list[Sample]:
    """The samples that `biases` scores, beside the labelled ones."""
    samples: dict[Sample, None] = {}
    list(biases(data, data.human, noting(samples), most=most, seed=seed))
    return list(samples)


def _once(score: Score) -> Score:
    """As `score`, but equal samples, such as one turn copied for several responses, are scored once."""
    known: dict[Sample, float] = {}

    def cached(samples: Sequence[Sample]) -> NDArray[Any]:
        new = [sample for sample in dict.fromkeys(samples) if sample not in known]
        if new:
            known.update(zip(new, np.asarray(score(new), dtype=np.float64).tolist(), strict=True))
        return np.array([known[sample] for sample in samples], dtype=np.float64)

    return cached


def _copying(data: TrueResponses, seed: int) -> list[Finding]:
    """Share of good responses that score no higher than the last turn of their context."""
    samples = [Sample(sample.context, sample.response) for sample in data.samples]
    true = np.asarray(data.score(samples), dtype=np.float64)
    scored = np.flatnonzero(~np.isnan(true)).tolist()
    samples, draw = [samples[at] for at in scored], random.Random(seed)
    copied = [ATTACKS[COPIED](sample, draw) for sample in samples]
    return [fooled(COPIED, samples, true[scored], data.score, copied)]


def _of_copying(findings: Sequence[Finding]) -> tuple[str, str]:
    (finding,) = findings
    if finding.value is None:
        return "No good response has a turn before it that could be copied.", ""
    return f"The last turn, copied, scores as high as {finding.value:.0%} of {finding.n} good responses.", ""


COPYING = Study(
    "copying",
    "Copying",
    "The share of responses that people like which score no higher than the copied last turn of their context: the "
    "lower, the better.",
    TrueResponses,
    _copying,
    _of_copying,
    "share fooled",
)


def _systems(data: LabelledSet, scores: Floats, own: Sequence[str]) -> Bias:
    """How much higher the evaluator ranks each system's responses than people do, in percentile points."""
    title, note = (
        "Systems, and the evaluator's own model family",
        "How many percentile points higher than people it ranks a system's responses, with the 95% interval.",
    )
    names = sorted({system for system in data.systems if system is not None})
    if len(names) < 2:
        reason = (
            "The labels name no two systems; a column of systems (--map model=COLUMN) shows which it favours."
        )
        return Bias("systems", title, note, reason=reason)
    systems = np.array([system or "" for system in data.systems], dtype=object)
    ranks = mean_ranks(np.stack([scores, data.human]))
    higher = 100 * (ranks[0] - ranks[1]) / len(scores)

    def favour(of: Flags, others: Flags | None = None) -> Estimate:
        def mean(weights: Floats) -> Floats:
            first = ratio(weights @ (higher * of), weights @ of.astype(np.float64))
            if others is None:
                return first
            return first - ratio(weights @ (higher * others), weights @ others.astype(np.float64))

        return over_contexts(mean, data.clusters, of if others is None else of | others)

    estimates = {name: favour(systems == name) for name in names}
    sentences = [_favoured({n: e for n, e in estimates.items() if e.n >= FEWEST})]
    if own:
        mine = np.isin(systems, list(own))
        estimates["own family, above the others"] = family = favour(mine, (systems != "") & ~mine)
        sentences.append(_of_family(family))
    else:
        sentences.append("Which of them are of its own model family is not known: --own SYSTEM names them.")
    findings = [
        Finding(
            name, "points", one.value, one.n, "ok" if one.value is not None else "too_few", one.low, one.high
        )
        for name, one in estimates.items()
    ]
    return Bias("systems", title, note, sentences, findings, "points higher")


def _favoured(estimates: dict[str, Estimate]) -> str:
    above = {n: e.value or 0.0 for n, e in estimates.items() if e.low is not None and e.low > 0}
    below = {n: e.value or 0.0 for n, e in estimates.items() if e.high is not None and e.high < 0}
    if not above and not below:
        return "No system is shown to be ranked higher or lower than by people."
    parts = []
    if above:
        most = max(above, key=above.__getitem__)
        parts.append(f"{most} {above[most]:.0f} points higher")
    if below:
        least = min(below, key=below.__getitem__)
        parts.append(f"{least} {-below[least]:.0f} points lower")
    return f"It ranks {' and '.join(parts)} than people do."


def _of_family(family: Estimate) -> str:
    if family.value is None:
        return "How it ranks its own family beside the others cannot be said."
    interval = "" if family.low is None else f" (95% interval {family.low:.0f} to {family.high:.0f})"
    return f"It ranks its own family {family.value:+.0f} points beside the others{interval}, compared with people."


def preferences(evaluator: Evaluator, samples: Sequence[Sample]) -> Preferences | None:
    """The answers behind the scores of an evaluator that was asked in both orders; None of any other."""
    answers = [row for row in evaluator.judgments(samples) if row["score"] is not None]
    if not any(row["order_no"] for row in answers):
        return None
    total, count = np.zeros((len(samples), 2)), np.zeros((len(samples), 2))
    for row in answers:
        total[row["row"], row["order_no"]] += row["score"] - sum(evaluator.range) / 2
        count[row["row"], row["order_no"]] += 1
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def _position(data: LabelledSet, preferred: Preferences | None) -> Bias:
    title, note = "Position", "Whether it matters which of two responses comes first."
    if preferred is None:
        alone = "The evaluator scores one response at a time, so no order of two can sway it."
        return Bias("position", title, note, reason=alone)
    both = ~np.isnan(preferred[:, 0] + preferred[:, 1])
    first = np.where(both, np.nan_to_num(preferred).mean(axis=1), 0.0)
    swayed = both & (np.nan_to_num(preferred[:, 0] * preferred[:, 1]) > 0)
    lean = over_contexts(
        lambda weights: ratio(weights @ first, weights @ both.astype(np.float64)), data.clusters, both
    )
    flips = share(swayed, both, data.clusters)
    if lean.value is None or flips.value is None:
        return Bias("position", title, note, reason="No two responses were compared in both orders.")
    sentence = (
        f"Asked in both orders, it prefers whichever comes first, or whichever comes second, in {flips.value:.0%} of "
        f"{flips.n} comparisons; on average it leans by {lean.value:+.2f} steps of its scale to the first."
    )
    findings = [
        Finding("steps towards the first", "steps", lean.value, lean.n, "ok", lean.low, lean.high),
        Finding("swayed by the order", "share", flips.value, flips.n, "ok", flips.low, flips.high),
    ]
    return Bias("position", title, note, [sentence], findings, "steps, and share")
