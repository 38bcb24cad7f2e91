"""Studies of learning from human scores: how few suffice, how noisy they may be, whose responses they must be of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlation import regression_line, spearman
from ssrem.agreement.cross_validation import Labelled, Scorer, folds_by_context, out_of_fold
from ssrem.errors import AnnotationError
from ssrem.evaluators.core.human_scores import enough
from ssrem.samples import Floats, Sample
from ssrem.studies.finding import Finding, best, of_correlation, value_of

Learn = Callable[[Labelled, tuple[float, float]], Scorer]
"""Samples with human scores, and the lowest and highest score there can be, to what learned from them."""

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
    """Responses (n) with a human score each. scale: lowest and highest there can be; systems: None where not known."""

    samples: Sequence[Sample]
    scores: Floats
    scale: tuple[float, float]
    systems: Sequence[str | None]

    def labelled(self, rows: NDArray[np.int64], scores: Floats | None = None) -> Labelled:
        """The samples of the rows with their scores, or with those given (n,)."""
        given = self.scores if scores is None else scores
        return [(self.samples[row], float(given[row])) for row in rows]


def low_resource(data: Human, learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, having learned from 25, 50, 100, … responses of the others, and from
    all: Zhao et al. (2020), section 6.2. Each size is part of the next."""
    train, test = _split(data, seed)
    sizes = [size for size in SIZES if size < len(train)]
    found = [_learned(f"{size} responses", data, learn, data.labelled(train[:size]), test) for size in sizes]
    return [*found, _learned(f"all {len(train)} responses", data, learn, data.labelled(train), test)]


def label_noise(data: Human, learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, having learned from the others' human scores with Gaussian noise, cut
    off at the ends of the scale; and without noise, with the output rounded to points of the scale, to which a line
    brings it that is fitted to what was learned from: Zhao et al. (2020), appendix D."""
    train, test = _split(data, seed)
    every = np.concatenate([train, test])
    scores = _scores(data, learn, data.labelled(train), every)
    learned, scores = scores[: len(train)], scores[len(train) :]
    low, high = data.scale
    found = [
        _agreement("no noise", data, scores, test),
        _agreement("output rounded", data, _rounded(scores, learned, data, train), test),
    ]
    drawn = np.random.default_rng(seed).standard_normal(len(data.scores))
    for deviation in NOISE:
        noisy = np.clip(data.scores + deviation * drawn, low, high)
        found.append(_learned(f"noise of {deviation:g}", data, learn, data.labelled(train, noisy), test))
    return found


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
    found = [
        _learned("all systems", data, learn, data.labelled(train), test),
        _learned("a quarter at random", data, learn, data.labelled(quarter), test),
    ]
    named = np.array([system or "" for system in data.systems], dtype=object)
    for system in systems:
        scores = _scores(data, learn, data.labelled(train[named[train] != system]), test)
        own = named[test] == system
        found.append(_agreement(f"without {system}", data, scores, test))
        found.append(_agreement(f"without {system}: its own responses", data, scores[own], test[own]))
    return found


def transfer(name: str, data: Human, others: dict[str, Human], learn: Learn, seed: int) -> list[Finding]:
    """Spearman's ρ on the set itself, learned and tested in folds by context, and on each other set, having learned
    from all of this one: a row of the matrix of Zhao et al. (2020), section 6.1."""
    rows = np.arange(len(data.samples))
    folded = out_of_fold(lambda pairs: learn(pairs, data.scale), data.labelled(rows), FOLDS, seed)
    found = [_agreement(f"on {name}, {FOLDS} folds", data, folded, rows)]
    model = learn(data.labelled(rows), data.scale)
    for other, there in others.items():
        every = np.arange(len(there.samples))
        found.append(_agreement(f"on {other}", there, _scored(model, there, every), every))
    return found


LEARNED: dict[str, Callable[[Human, Learn, int], list[Finding]]] = {
    "low-resource": low_resource,
    "label-noise": label_noise,
    "leave-one-system-out": leave_one_system_out,
}
TRANSFER = "transfer"


def sentences(study: str, findings: Sequence[Finding]) -> tuple[str, str]:
    """What the study says of the evaluator, in two sentences."""
    ranked = best(findings, "spearman")
    if not ranked:
        return "Too few responses to learn from and to test on.", "Take a larger annotated set."
    if study == "low-resource":
        return _of_low_resource(findings)
    if study == "label-noise":
        none, most = (_said(findings, name) for name in ("no noise", f"noise of {NOISE[-1]:g}"))
        return (
            f"It agrees with people at rho {none}, and at {most} where it learned with noise of {NOISE[-1]:g} points.",
            f"Rounded to points of the scale, its scores agree at {_said(findings, 'output rounded')}.",
        )
    if study == TRANSFER:
        own, *others = findings
        far = best(others, "spearman")
        first = f"Learned and tested on the same set, it agrees with people at rho {_two(own.value)}."
        if not far:
            return first, "There is no other annotated set to test on."
        return (
            first,
            f"Of other sets it does best {far[0].condition}: rho {_two(far[0].value)} over {far[0].n}.",
        )
    left = [f for f in findings if f.condition.startswith("without ") and ": " not in f.condition]
    worst = min((f for f in left if f.value is not None), key=lambda f: f.value or 0.0, default=None)
    first = f"Having learned from all systems it agrees with people at rho {_said(findings, 'all systems')}."
    if worst is None:
        return first, "No system could be left out."
    return first, f"It loses most {worst.condition}: rho {_two(worst.value)} over {worst.n}."


def _of_low_resource(findings: Sequence[Finding]) -> tuple[str, str]:
    whole, there = findings[-1], [f for f in findings if f.value is not None]
    first = f"Having learned from {whole.condition} it agrees with people at rho {_two(whole.value)}."
    enough = next(
        (f for f in there if whole.value is not None and (f.value or 0) >= NEARLY * whole.value), None
    )
    if enough is None or enough is whole:
        return first, f"No fewer reach {NEARLY:.0%} of that."
    return first, f"{enough.condition.capitalize()} reach {NEARLY:.0%} of that: rho {_two(enough.value)}."


def _said(findings: Sequence[Finding], condition: str) -> str:
    return _two(value_of(findings, condition, "spearman"))


def _two(value: float | None) -> str:
    return "no figure" if value is None else f"{value:.2f}"


def _split(data: Human, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from, in drawn order, and rows to test on."""
    fold = folds_by_context(data.samples, FOLDS, seed)
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    return np.random.default_rng(seed).permutation(train), test


def _rounded(scores: Floats, learned: Floats, data: Human, train: NDArray[np.int64]) -> Floats:
    """Scores as points of the raters' scale. learned: those of the rows that were learned from."""
    there = np.isfinite(learned)
    line = regression_line(learned[there], data.scores[train][there])
    if line is None:
        return np.full(len(scores), data.scale[0])
    return np.clip(np.round(line.slope * scores + line.intercept), *data.scale)


def _learned(condition: str, data: Human, learn: Learn, pairs: Labelled, test: NDArray[np.int64]) -> Finding:
    return _agreement(condition, data, _scores(data, learn, pairs, test), test)


def _scores(data: Human, learn: Learn, pairs: Labelled, rows: NDArray[np.int64]) -> Floats:
    """Scores of the rows by what learned from the pairs; NaN where those are too few to learn from."""
    if not enough([sample for sample, _ in pairs]):
        return np.full(len(rows), np.nan)
    return _scored(learn(pairs, data.scale), data, rows)


def _scored(model: Scorer, data: Human, rows: NDArray[np.int64]) -> Floats:
    return np.asarray(model.score([data.samples[row] for row in rows]), dtype=np.float64)


def _agreement(condition: str, data: Human, scores: Floats, rows: NDArray[np.int64]) -> Finding:
    there = np.isfinite(scores)
    return of_correlation(condition, "spearman", spearman(scores[there], data.scores[rows][there]))
