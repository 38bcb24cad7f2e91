"""Thresholds from which an evaluator's scores pass, their error rates, and the share that passes, corrected for these.

The contexts are divided into halves: a threshold is chosen on one and tested on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import compress

import numpy as np

from ssrem.agreement import Z_95
from ssrem.agreement.correlate import Floats, Integers, numbered
from ssrem.agreement.raters import Ratings
from ssrem.agreement.resample import ratio
from ssrem.annotated_sets.annotated import Annotated, criterion_of, labels_of
from ssrem.errors import AnnotationError, say
from ssrem.samples import Sample, dialogue_units
from ssrem.studies.estimates import NOTHING, Estimate, Flags, over_contexts, share, weighted_mean

FEWEST = 10
"""Minimum number of labelled responses; nothing can be said from fewer."""
FEW_EXCEPTIONS = 5
"""Of fewer responses that the evaluator passes or fails wrongly, or rightly, resamples do not show how many there may
be."""
FEWEST_PASSING = 5
"""Minimum number of responses of the calibrating half that a threshold for a precision passes; fewer may be chance."""


BALANCE = "best balance"
"""Aim of the threshold with the largest difference between the shares of good and of bad responses that it passes."""


@dataclass(frozen=True)
class LabelledSet:
    """Responses (n) that people labelled by one criterion, without ground truth.

    human (n,): mean score of each response's raters. ratings (raters, n): NaN for none; raters are numbered as in
    `Annotated.ratings`. places: each response's place in the annotated set, from 0. dialogues: its
    `Annotated.dialogue_id`. contexts: each response's dialogue, by
    `dialogue_units`. systems: None if unknown. excluded: number of ground-truth responses that were left out.
    passed_from: the human score from which a response passes, None if none was given and labels have more than two
    values.
    """

    criterion: str
    samples: Sequence[Sample]
    human: Floats
    ratings: Ratings
    places: Sequence[int]
    dialogues: Sequence[str]
    contexts: Sequence[str]
    systems: Sequence[str | None]
    excluded: int
    passed_from: float | None

    def part(self, rows: Flags) -> LabelledSet:
        """The responses for which the flags `rows` (n,) are true."""
        at = np.flatnonzero(rows).tolist()
        return replace(
            self,
            samples=[self.samples[row] for row in at],
            places=[self.places[row] for row in at],
            dialogues=[self.dialogues[row] for row in at],
            contexts=[self.contexts[row] for row in at],
            systems=[self.systems[row] for row in at],
            human=self.human[rows],
            ratings=self.ratings[:, rows],
        )

    @cached_property
    def clusters(self) -> Integers:
        """Each response's context as a number from 0 (n,), equal for equal `contexts`."""
        return numbered(self.contexts, len(self.contexts), "contexts")[1]

    @cached_property
    def calibrating(self) -> Flags:
        """Which responses (n,) are of the half of the contexts on which a threshold is chosen; the others test it.

        The half depends on the value in `contexts` alone, so it stays when labels of other dialogues are added.
        """
        return np.array([sha256(context.encode()).digest()[0] % 2 == 0 for context in self.contexts])

    @cached_property
    def passed(self) -> Flags | None:
        """Which responses (n,) people pass; None if that is not known, or if they pass all or none."""
        passed = self.human >= (np.inf if self.passed_from is None else self.passed_from)
        return passed if passed.any() and not passed.all() else None

    @property
    def one_class(self) -> str:
        """Why `passed` is None."""
        if self.passed_from is None:
            values = len(np.unique(self.ratings[~np.isnan(self.ratings)]))
            return (
                f"the labels have {values} values, not two; --pass SCORE says from which on a response passes"
            )
        whole = "all" if (self.human >= self.passed_from).all() else "none"
        return f"{whole} of the {len(self.human)} responses pass at {self.passed_from:g}"


def labelled_set(
    annotated: Sequence[Annotated], criterion: str | None = None, pass_from: float | None = None
) -> LabelledSet:
    """The responses with a label of the criterion, by default 'overall' or the only one.

    pass_from: the human score from which a response passes. Without it, if labels have two values, a response passes
    whose raters' mean is in the middle of the two or above. AnnotationError as in `labels_of`, and for fewer than
    `FEWEST` responses.
    """
    chosen = criterion_of(annotated, criterion)
    places = [at for at, row in enumerate(annotated) if chosen in row.ratings and not row.ground_truth]
    rows = [annotated[at] for at in places]
    if len(rows) < FEWEST:
        raise AnnotationError(
            f"{chosen}: too few labelled responses ({len(rows)}); {FEWEST} are needed, better hundreds"
        )
    labels = labels_of(annotated, chosen)
    each = [row.ratings[chosen] for row in rows]
    ratings = np.full((max(map(len, each)), len(rows)), np.nan)
    for at, own in enumerate(each):
        ratings[: len(own), at] = np.array(own, dtype=np.float64)  # None is NaN
    values = np.unique(ratings[~np.isnan(ratings)])
    return LabelledSet(
        chosen,
        labels.samples,
        labels.human,
        ratings,
        places,
        [row.dialogue_id for row in rows],
        dialogue_units(row.context for row in rows),
        [row.system for row in rows],
        labels.excluded,
        float(values.mean()) if pass_from is None and len(values) == 2 else pass_from,
    )


@dataclass(frozen=True)
class Unlabelled:
    """Responses that nobody labelled. scores (m,): the evaluator's, NaN for none. contexts (m,): their contexts."""

    scores: Floats
    contexts: Sequence[tuple[str, ...]]


def given_scores(
    data: LabelledSet, scored: Sequence[Annotated], name: str
) -> tuple[Floats, Unlabelled | None]:
    """Scores that an evaluator gave before, which were read from a file in the way of labels: those of the labelled
    responses (n,), NaN for none, and the responses without a label, None if there are none. name: the criterion that
    the scores have unless a column names the criterion of each row."""
    known = {of for row in scored for of in row.ratings}
    chosen = next((one for one in (name, data.criterion) if one in known), None) or criterion_of(scored)
    rows = [row for row in scored if chosen in row.ratings and not row.ground_truth]
    values = {
        (row.dialogue_id, row.context, row.response, row.system): float(np.mean(row.scores(chosen)))
        for row in rows
    }
    samples = zip(data.dialogues, data.samples, data.systems, strict=True)
    keys = [(dialogue, sample.context, sample.response, system) for dialogue, sample, system in samples]
    labelled = set(keys)
    others = [key for key in values if key not in labelled]
    if missing := sum(key not in values for key in keys):
        say(f"{missing:,} of {len(keys):,} labelled responses have no such score and are left out")
    rest = Unlabelled(np.array([values[key] for key in others]), [context for _, context, *_ in others])
    return np.array([values.get(key, np.nan) for key in keys]), rest if others else None


@dataclass(frozen=True)
class Threshold:
    """A score from which responses pass, chosen on the calibrating half for `aim` and tested on the other half; or, for
    an evaluator with two scores, the higher one, tested on all labels.

    calibrated: precision on the calibrating half, if that chose it. Where it is tested: tpr and fpr, the shares that
    the evaluator passes of the responses that people pass and of those that people fail; precision, the share that
    people pass of those that the evaluator passes. score is None if no threshold reaches the aim, and reason says why.
    """

    aim: str
    score: float | None
    calibrated: float | None = None
    tpr: Estimate = NOTHING
    fpr: Estimate = NOTHING
    precision: Estimate = NOTHING
    reason: str = ""


@dataclass(frozen=True)
class PassShare:
    """Share of responses that pass. of: which responses. evaluator: the share that the evaluator passes. corrected:
    that share corrected for the error rates. people: the share that people pass, if they labelled these responses."""

    of: str
    evaluator: Estimate
    corrected: Estimate
    people: Estimate


@dataclass(frozen=True)
class Passing:
    """Thresholds from which responses pass, and shares that pass. passed_from: the human score from which a response
    passes. thresholds: that of the best balance, then that of the wanted precision. reason: why there are none."""

    passed_from: float | None
    thresholds: Sequence[Threshold] = ()
    shares: Sequence[PassShare] = ()
    reason: str = ""


def pass_or_fail(
    data: LabelledSet, scores: Floats, precision: float | None, unlabelled: Unlabelled | None
) -> Passing:
    """Choose and test thresholds, and estimate the shares of responses that pass. scores (n,): finite. precision: the
    one that a second threshold is to have. The share of the unlabelled is corrected by the error rates where the
    threshold is tested: on the testing half or, of an evaluator with two scores, on all labels."""
    passed, calibrating, clusters = data.passed, data.calibrating, data.clusters
    if passed is None:
        return Passing(data.passed_from, reason=data.one_class)
    every_score = scores if unlabelled is None else np.append(scores, unlabelled.scores)
    two = len(np.unique(every_score[~np.isnan(every_score)])) == 2  # such as pass and fail: nothing is chosen
    every = np.ones_like(calibrating)
    choosing, rated = (every, every) if two else (calibrating, ~calibrating)
    for half, of in (("chooses", choosing), ("tests", rated)):
        if not (passed[of].any() and (~passed[of]).any()):
            lacking = "fail" if passed[of].any() else "pass"
            why = f"the half of the contexts that {half} a threshold lacks responses that people {lacking}"
            return Passing(data.passed_from, reason=why)

    def tested(aim: str, score: float, testing: Flags) -> Threshold:
        passing = scores >= score
        chose = calibrating & passing
        return Threshold(
            aim,
            score,
            float(passed[chose].mean()) if chose.any() and not (two and aim == BALANCE) else None,
            tpr=share(passing, testing & passed, clusters),
            fpr=share(passing, testing & ~passed, clusters),
            precision=share(passed, testing & passing, clusters),
        )

    best, shares = best_threshold(scores[choosing], passed[choosing]), []
    if best is None:
        why = "no threshold passes what people pass more often than what they fail"
        thresholds = [Threshold(BALANCE, None, reason=why)]
    else:
        thresholds, passing, testing = [tested(BALANCE, best, rated)], scores >= best, ~calibrating
        corrected = corrected_share(passing, passed, calibrating, testing, clusters)
        people = share(passed, testing, clusters)
        shares = [PassShare("the testing half", share(passing, testing, clusters), corrected, people)]
        if unlabelled is not None:
            # The unlabelled are appended to the labelled; their labels are filled with False and never used.
            there = ~np.isnan(unlabelled.scores)
            more = unlabelled.scores[there] >= best
            none, both = np.zeros(len(more), dtype=bool), np.append(passing, more)
            before = [sample.context for sample in data.samples]
            contexts = [*before, *compress(unlabelled.contexts, there)]
            units = numbered(dialogue_units(contexts), len(contexts), "contexts")[1]
            of = np.append(np.zeros_like(passing), ~none)
            corrected = corrected_share(both, np.append(passed, none), np.append(rated, none), of, units)
            nobody = Estimate(None, reason="nobody labelled them")
            shares.append(PassShare("the unlabelled responses", share(both, of, units), corrected, nobody))
    if precision is not None:
        score, highest = threshold_for(precision, scores[calibrating], passed[calibrating])
        aim, why = (
            f"precision {precision:g}",
            f"no threshold reaches it; the highest precision is {highest:.2f}",
        )
        thresholds.append(
            Threshold(aim, None, reason=why) if score is None else tested(aim, score, ~calibrating)
        )
    return Passing(data.passed_from, thresholds, shares)


def rogan_gladen(apparent: Floats, tpr: Floats, fpr: Floats) -> Floats:
    """The true share of responses that pass, from the apparent share and the error rates: (apparent − fpr) /
    (tpr − fpr), which may be outside [0, 1] by chance; NaN if tpr is not above fpr (Rogan and Gladen 1978, "Estimating
    prevalence from the results of a screening test": tpr is the sensitivity and 1 − fpr the specificity)."""
    above = tpr - fpr
    return ratio(apparent - fpr, np.where(above > 0, above, 0.0))


def corrected_share(passing: Flags, passed: Flags, judged: Flags, of: Flags, clusters: Integers) -> Estimate:
    """The share of the responses `of` that pass, in [0, 1], corrected by `rogan_gladen` with the error rates on the
    responses `judged`; its interval is over the contexts of both or, where a rate has fewer than five exceptions, by
    `lang_reiczigel` for as many responses as there are contexts, since resamples cannot show how far a rate of 0 may be
    from 0. No value if the interval of tpr − fpr reaches down to 0, or there is no such interval: the share may then be
    anything. passing: which responses the evaluator passes;
    passed: which people pass, used only for those judged; all (n,)."""
    passes = passing.astype(np.float64)
    tpr, fpr = weighted_mean(passes, judged & passed), weighted_mean(passes, judged & ~passed)
    apparent, why = weighted_mean(passes, of), ""
    gap = over_contexts(lambda weights: tpr(weights) - fpr(weights), clusters, judged)
    if gap.value is None:
        why = "the half that measures the rates has no responses that people pass, or none that they fail"
    elif gap.value <= 0:
        why = "where the rates are measured, the evaluator passes what people fail as often as what they pass"
    elif gap.low is None and gap.value != 1:  # a gap of 1, of labels without an error, needs no interval
        why = f"how far tpr is above fpr has no interval ({gap.reason})"
    elif gap.low is not None and gap.low <= 0:
        above = f"tpr is above fpr by {gap.value:.3f} only, with an interval from {gap.low:.3f}"
        why = f"where the rates are measured, {above}"
    if why:
        return Estimate(None, n=int(of.sum()), reason=f"the labels cannot correct it: {why}")

    def statistic(weights: Floats) -> Floats:
        return rogan_gladen(apparent(weights), tpr(weights), fpr(weights))

    rates = [
        (float(passes[which].mean()), len(np.unique(clusters[which])))
        for which in (of, judged & passed, judged & ~passed)
    ]
    if any(min(rate, 1 - rate) * contexts < FEW_EXCEPTIONS for rate, contexts in rates[1:]):
        estimate = Estimate(float(statistic(np.ones((1, len(of))))[0]), *lang_reiczigel(*rates))
    else:
        estimate = over_contexts(statistic, clusters, judged | of)
    value, low, high = (
        None if end is None else min(max(end, 0.0), 1.0)
        for end in (estimate.value, estimate.low, estimate.high)
    )
    return Estimate(value, low, high, int(of.sum()), estimate.reason)


def lang_reiczigel(
    apparent: tuple[float, int], tpr: tuple[float, int], fpr: tuple[float, int]
) -> tuple[float, float]:
    """The ends of the 95% interval of the share that `rogan_gladen` gives, which may be outside [0, 1]: each of the
    three shares comes with the number of independent responses that it is from. One response of either kind is added to
    those of tpr and of fpr, so that 0 and 1 are uncertain, too (Lang and Reiczigel 2014, "Confidence limits for
    prevalence of disease adjusted for estimated sensitivity and specificity")."""
    (share, n), added = apparent, Z_95**2
    share = (n * share + added / 2) / (n + added)
    (right, variance_right), (wrong, variance_wrong) = map(_with_one_more, (tpr, fpr))
    if right <= wrong:
        return 0.0, 1.0
    corrected = (share - wrong) / (right - wrong)
    centre = corrected + 2 * added * (corrected * variance_right - (1 - corrected) * variance_wrong)
    variance = share * (1 - share) / (n + added)
    variance += corrected**2 * variance_right + (1 - corrected) ** 2 * variance_wrong
    half = Z_95 * variance**0.5 / (right - wrong)
    return centre - half, centre + half


def _with_one_more(rate: tuple[float, int]) -> tuple[float, float]:
    """A share, given with its number of responses, with one response more of either kind; and its variance."""
    share, n = rate
    more = (n * share + 1) / (n + 2)
    return more, more * (1 - more) / (n + 2)


def best_threshold(scores: Floats, passed: Flags) -> float | None:
    """The threshold with the highest tpr − fpr (Youden 1950), the lowest of equally good ones; None if no threshold is
    better than passing all responses. scores (n,): finite. passed (n,): not all equal."""
    candidates, good, bad = _passing_from(scores, passed)
    gain = np.round(good / passed.sum() - bad / (~passed).sum(), 12)
    return float(candidates[int(np.argmax(gain))]) if gain.max() > 0 else None


def threshold_for(precision: float, scores: Floats, passed: Flags) -> tuple[float | None, float]:
    """The lowest threshold whose precision is at least `precision`, None if there is none; and the highest precision
    of any threshold, in [0, 1]. Thresholds that pass fewer than `FEWEST_PASSING` responses do not count. scores (n,):
    finite. passed (n,): which responses people pass."""
    candidates, good, bad = _passing_from(scores, passed)
    usable, precisions = good + bad >= FEWEST_PASSING, good / (good + bad)
    reached = np.flatnonzero(usable & (precisions >= precision))
    return (float(candidates[reached[0]]) if len(reached) else None), float(
        precisions[usable].max(initial=0.0)
    )


def _passing_from(scores: Floats, passed: Flags) -> tuple[Floats, Integers, Integers]:
    """The distinct scores, ascending; for each, how many responses that people pass, and that they fail, reach it."""
    candidates, place = np.unique(scores, return_inverse=True)
    good, bad = (
        np.cumsum(np.bincount(place[of], minlength=len(candidates))[::-1])[::-1] for of in (passed, ~passed)
    )
    return candidates, good, bad
