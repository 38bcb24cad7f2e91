"""Studies of learning from human scores: how few are enough, how noisy, and of which systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlation import regression_line, spearman
from ssrem.agreement.cross_validation import Labelled, Scorer, folds_by_context, out_of_fold
from ssrem.errors import AnnotationError
from ssrem.evaluators.core.human_scores import enough
from ssrem.samples import Floats, Sample
from ssrem.studies.study import Finding, Sentences, Study, best, of_correlation, printed, two_digits

Learn = Callable[[Labelled, tuple[float, float]], Scorer]
"""Samples with human scores, and the lowest and highest possible score, to the model that learned from them."""

FOLDS = 3
"""One of them is tested on; the responses to a context are all learned from or all tested on."""
SIZES = (25, 50, 100, 200, 400)
NOISE = (0.1, 0.5, 1.0)
"""Standard deviations, in points of the raters' scale; the first two are those of Zhao et al. (2020), appendix D."""
QUARTER = 0.25
NEARLY = 0.95
"""Share of the agreement with all human scores at which fewer are enough."""


@dataclass(frozen=True)
class Human:
    """Responses (n) with a human score each. scale: lowest and highest possible; systems: None where not known."""

    samples: Sequence[Sample]
    scores: Floats
    scale: tuple[float, float]
    systems: Sequence[str | None]

    def labelled(self, rows: NDArray[np.int64], scores: Floats | None = None) -> Labelled:
        """The samples of the rows with their human scores, or with other `scores` (n,)."""
        labels = self.scores if scores is None else scores
        return [(self.samples[row], float(labels[row])) for row in rows]


@dataclass(frozen=True)
class Learning:
    """Human scores, and the evaluator that learns from them."""

    human: Human
    learn: Learn


@dataclass(frozen=True)
class Transfer(Learning):
    """name: of the set that is learned from; others: the sets that are tested on beside it, by name."""

    name: str
    others: Mapping[str, Human]


def low_resource(data: Human, learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, having learned from 25, 50, 100, … responses of the others, and from
    all: Zhao et al. (2020), section 6.2. Each size is part of the next."""
    train, test = _split(data, seed)
    sizes = [size for size in SIZES if size < len(train)]
    fewer = [_learned(f"{size} responses", data, learn, data.labelled(train[:size]), test) for size in sizes]
    return [*fewer, _learned(f"all {len(train)} responses", data, learn, data.labelled(train), test)]


def label_noise(data: Human, learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, having learned from the others' human scores with Gaussian noise, cut
    off at the ends of the scale; and without noise, with the output rounded to points of the scale, to which a line
    brings it that is fitted to what was learned from: Zhao et al. (2020), appendix D."""
    train, test = _split(data, seed)
    every = np.concatenate([train, test])
    scores = _scores(data, learn, data.labelled(train), every)
    learned, scores = scores[: len(train)], scores[len(train) :]
    findings = [
        _agreement("no noise", data, scores, test),
        _agreement("output rounded", data, _rounded(scores, learned, data, train), test),
    ]
    noise = np.random.default_rng(seed).standard_normal(len(data.scores))
    for deviation in NOISE:
        noisy = np.clip(data.scores + deviation * noise, *data.scale)
        findings.append(_learned(f"noise of {deviation:g}", data, learn, data.labelled(train, noisy), test))
    return findings


def leave_one_system_out(data: Human, learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, having learned from all systems, from a quarter of their responses at
    random, and from all but one, for each: over all test responses, and over those of the system that was left out:
    ADEM's Table 3 (Lowe et al. 2017). AnnotationError for fewer than two known systems."""
    systems = sorted({system for system in data.systems if system})
    if len(systems) < 2:
        raise AnnotationError(
            f"responses of {len(systems)} known systems cannot be left out by system; two or more are needed"
        )
    train, test = _split(data, seed)
    quarter = train[: max(1, round(QUARTER * len(train)))]
    findings = [
        _learned("all systems", data, learn, data.labelled(train), test),
        _learned("a quarter at random", data, learn, data.labelled(quarter), test),
    ]
    named = np.array([system or "" for system in data.systems], dtype=object)
    for system in systems:
        scores = _scores(data, learn, data.labelled(train[named[train] != system]), test)
        own = named[test] == system
        findings.append(_agreement(f"without {system}", data, scores, test))
        findings.append(_agreement(f"without {system}: its own responses", data, scores[own], test[own]))
    return findings


def transfer(name: str, data: Human, others: Mapping[str, Human], learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on the set itself, learned and tested in folds by context, and on each other set, having learned
    from all of this one: a row of the matrix of Zhao et al. (2020), section 6.1."""
    rows = np.arange(len(data.samples))
    folded = out_of_fold(lambda pairs: learn(pairs, data.scale), data.labelled(rows), FOLDS, seed)
    findings = [_agreement(f"on {name}, {FOLDS} folds", data, folded, rows)]
    model = learn(data.labelled(rows), data.scale)
    for other, human in others.items():
        every = np.arange(len(human.samples))
        findings.append(_agreement(f"on {other}", human, _scored(model, human, every), every))
    return findings


def _two_sentences(describe: Sentences) -> Sentences:
    """What the study says of the evaluator, or that there are too few responses to say it."""

    def sentences(findings: Sequence[Finding]) -> tuple[str, str]:
        if not best(findings, "spearman"):
            return "Too few responses to learn from and to test on.", "Take a larger annotated set."
        return describe(findings)

    return sentences


@_two_sentences
def _of_low_resource(findings: Sequence[Finding]) -> tuple[str, str]:
    every = findings[-1]
    first = f"Having learned from {every.condition} it agrees with people at rho {two_digits(every.value)}."
    bar = None if every.value is None else NEARLY * every.value
    fewest = next((f for f in findings if f.value is not None and bar is not None and f.value >= bar), None)
    if fewest is None or fewest is every:
        return first, f"No fewer reach {NEARLY:.0%} of that."
    return (
        first,
        f"{fewest.condition.capitalize()} reach {NEARLY:.0%} of that: rho {two_digits(fewest.value)}.",
    )


@_two_sentences
def _of_label_noise(findings: Sequence[Finding]) -> tuple[str, str]:
    none, most = (printed(findings, name) for name in ("no noise", f"noise of {NOISE[-1]:g}"))
    return (
        f"It agrees with people at rho {none}, and at {most} where it learned with noise of {NOISE[-1]:g} points.",
        f"Rounded to points of the scale, its scores agree at {printed(findings, 'output rounded')}.",
    )


@_two_sentences
def _of_left_out_systems(findings: Sequence[Finding]) -> tuple[str, str]:
    without = [f for f in findings if f.condition.startswith("without ") and ": " not in f.condition]
    worst = min((f for f in without if f.value is not None), key=lambda f: f.value or 0.0, default=None)
    every = printed(findings, "all systems")
    first = f"Having learned from all systems it agrees with people at rho {every}."
    if worst is None:
        return first, "No system could be left out."
    return first, f"It loses most {worst.condition}: rho {two_digits(worst.value)} over {worst.n}."


@_two_sentences
def _of_transfer(findings: Sequence[Finding]) -> tuple[str, str]:
    own, *others = findings
    first = f"Learned and tested on the same set, it agrees with people at rho {two_digits(own.value)}."
    ranked = best(others, "spearman")
    if not ranked:
        return first, "There is no other annotated set to test on."
    highest = ranked[0]
    return first, (
        f"Of other sets it does best {highest.condition}: rho {two_digits(highest.value)} over {highest.n}."
    )


def _split(data: Human, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from, in drawn order, and rows to test on."""
    fold = folds_by_context(data.samples, FOLDS, seed)
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    return np.random.default_rng(seed).permutation(train), test


def _rounded(scores: Floats, learned: Floats, data: Human, train: NDArray[np.int64]) -> Floats:
    """Scores as points of the raters' scale. learned: those of the rows that were learned from."""
    known = np.isfinite(learned)
    line = regression_line(learned[known], data.scores[train][known])
    if line is None:
        return np.full(len(scores), data.scale[0])
    return np.clip(np.round(line.slope * scores + line.intercept), *data.scale)


def _learned(condition: str, data: Human, learn: Learn, pairs: Labelled, test: NDArray[np.int64]) -> Finding:
    return _agreement(condition, data, _scores(data, learn, pairs, test), test)


def _scores(data: Human, learn: Learn, pairs: Labelled, rows: NDArray[np.int64]) -> Floats:
    """Scores of the rows by a model that learned from the pairs; NaN where those are too few to learn from."""
    if not enough([sample for sample, _ in pairs]):
        return np.full(len(rows), np.nan)
    return _scored(learn(pairs, data.scale), data, rows)


def _scored(model: Scorer, data: Human, rows: NDArray[np.int64]) -> Floats:
    return np.asarray(model.score([data.samples[row] for row in rows]), dtype=np.float64)


def _agreement(condition: str, data: Human, scores: Floats, rows: NDArray[np.int64]) -> Finding:
    known = np.isfinite(scores)
    return of_correlation(condition, "spearman", spearman(scores[known], data.scores[rows][known]))


LOW_RESOURCE = Study(
    "low-resource",
    "Few human scores",
    "Agreement with people, Spearman’s ρ, on held-out contexts, by how many responses were learned from.",
    Learning,
    lambda data, seed: low_resource(data.human, data.learn, seed),
    _of_low_resource,
)
LABEL_NOISE = Study(
    "label-noise",
    "Noisy human scores",
    "Agreement with people, Spearman’s ρ, on held-out contexts, by the noise in what was learned from.",
    Learning,
    lambda data, seed: label_noise(data.human, data.learn, seed),
    _of_label_noise,
)
LEAVE_ONE_SYSTEM_OUT = Study(
    "leave-one-system-out",
    "Learning without each system",
    "Agreement with people, Spearman’s ρ, on held-out contexts, by the systems that were learned from.",
    Learning,
    lambda data, seed: leave_one_system_out(data.human, data.learn, seed),
    _of_left_out_systems,
)
TRANSFER = Study(
    "transfer",
    "Other annotated sets",
    "Agreement with people, Spearman’s ρ, on other sets than the one that was learned from.",
    Transfer,
    lambda data, seed: transfer(data.name, data.human, data.others, data.learn, seed),
    _of_transfer,
)
