"""An evaluator beside people's labels: how well it agrees, what it gets wrong, and whether it can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ssrem.agreement.figures import RESAMPLES, SEED, figure
from ssrem.agreement.inputs import Floats, Responses, View
from ssrem.agreement.paired_bootstrap import paired_bootstrap
from ssrem.agreement.raters.prediction import OneRater, one_rater
from ssrem.agreement.significance import Difference
from ssrem.errors import EvaluatorError
from ssrem.studies.attacks import Score
from ssrem.validation.bias import CHANGED, Bias, Preferences, biases
from ssrem.validation.labels import LabelledSet
from ssrem.validation.passing import Passing, pass_or_fail
from ssrem.validation.rates import Estimate

Agreement = Mapping[str, Estimate]
"""Coefficient to its value, at segment level over all responses."""


@dataclass(frozen=True)
class Judged:
    """An evaluator under validation. scores (n,) of the labelled responses, unlabelled (m,) of others, NaN for none.

    score: of samples without references, None for an evaluator that needs one. preferred: of one that compares two.
    """

    name: str
    signature: str
    scores: Floats
    score: Score | None
    unlabelled: Floats | None = None
    preferred: Preferences | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of a validation. precision: that a threshold is to have. own: systems of the evaluator's own model
    family. changed: how many good responses are changed, to see what that does to their scores; seed: draws them."""

    precision: float | None = None
    own: Sequence[str] = ()
    changed: int = CHANGED
    seed: int = SEED


@dataclass(frozen=True)
class Validation:
    """Everything that a page says. missing: responses without a score, left out. against: baseline to the paired
    difference of Spearman's ρ, the evaluator's minus the baseline's. more_labels, more_contexts: how many more would
    halve the interval of ρ, whose width falls as 1 / √contexts; None without an interval."""

    evaluator: str
    signature: str
    criterion: str
    labels: int
    responses: int
    contexts: int
    missing: int
    excluded: int
    agreement: Mapping[str, Agreement]
    against: Mapping[str, Difference]
    rater: OneRater
    passing: Passing
    bias: Sequence[Bias]
    more_labels: int | None
    more_contexts: int | None

    @property
    def spearman(self) -> Estimate:
        """The evaluator's."""
        return self.agreement[self.evaluator]["spearman"]

    def measures(self) -> dict[str, Estimate]:
        """The measures of REQUIRABLE. precision, tpr and fpr are those of the threshold for the wanted precision, or
        without one of the threshold with the best balance."""
        rates: dict[str, Estimate] = dict.fromkeys(("precision", "tpr", "fpr"), Estimate(None))
        if not self.passing.thresholds:
            rates = dict.fromkeys(rates, Estimate(None, reason=self.passing.reason))
        elif (threshold := self.passing.thresholds[-1]).score is None:
            rates = dict.fromkeys(rates, Estimate(None, reason=threshold.reason))
        else:
            rates = {name: getattr(threshold, name) for name in rates}
        copying = next(bias for bias in self.bias if bias.name == "copying")
        copied = Estimate(None, reason=copying.reason)
        for finding in copying.findings:
            copied = Estimate(finding.value, n=finding.n, reason=finding.outcome.replace("_", " "))
        low = replace(self.spearman, value=self.spearman.low)
        return {**self.agreement[self.evaluator], "low": low, **rates, "copied": copied}


def validate(
    data: LabelledSet, judged: Judged, baselines: Mapping[str, Floats], settings: Settings
) -> Validation:
    """The validation of an evaluator. baselines: name to scores (n,). EvaluatorError if it scores no response."""
    scored = ~np.isnan(judged.scores)
    if not scored.any():
        raise EvaluatorError(f"{judged.name} has no score for any of the {len(scored)} labelled responses")
    missing, usable, scores = int((~scored).sum()), data.part(scored), judged.scores[scored]
    others = {name: values[scored] for name, values in baselines.items() if name != judged.name}
    contexts = len(set(usable.contexts))
    agreement = {judged.name: _agreement(usable, scores)}
    agreement |= {name: _agreement(usable, values) for name, values in others.items()}
    against = {
        name: paired_bootstrap(
            *(scores, values, usable.human, usable.contexts),
            view=View("spearman"),
            resamples=RESAMPLES,
            seed=settings.seed,
        )
        for name, values in others.items()
    }
    labels = int((~np.isnan(usable.ratings)).sum())
    has_interval = agreement[judged.name]["spearman"].low is not None
    return Validation(
        judged.name,
        judged.signature,
        data.criterion,
        labels,
        len(usable.samples),
        contexts,
        missing,
        data.excluded,
        agreement,
        against,
        one_rater(usable.ratings),
        pass_or_fail(usable, scores, settings.precision, judged.unlabelled),
        list(
            biases(
                *(usable, scores, judged.score),
                own=settings.own,
                preferred=None if judged.preferred is None else judged.preferred[scored],
                most=settings.changed,
                seed=settings.seed,
            )
        ),
        # Half the width takes four times the contexts.
        3 * labels if has_interval else None,
        3 * contexts if has_interval else None,
    )


def _agreement(data: LabelledSet, scores: Floats) -> Agreement:
    responses = Responses(scores, data.human, data.contexts)
    figures = {
        name: figure(responses, View(name), resamples=RESAMPLES, seed=SEED)
        for name in ("spearman", "pearson", "kendall")
    }
    return {
        name: Estimate(one.statistic, one.low, one.high, one.n, one.reason) for name, one in figures.items()
    }
