"""Studies of learning from human scores: from how few, without those of a system, and tested on other sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ssrem.agreement.correlate import spearman
from ssrem.errors import AnnotationError
from ssrem.evaluators.learning import enough
from ssrem.samples import Floats, Labelled, Rows, Sample, Scorer, folds_by_context, out_of_fold
from ssrem.studies.study import Finding, of_correlation, study

Learn = Callable[[Labelled, tuple[float, float]], Scorer]
"""Function from samples with human scores, and the (lowest, highest) possible score, to the model learned from them."""

FOLDS = 3
"""Number of folds, one of which is tested on; all responses to a context are in the same fold."""
SIZES = (25, 50, 100, 200, 400)
LEFT_OUT = 0.25
"""Share of the responses that the control of `leave_one_system_out` leaves out at random."""


@dataclass(frozen=True)
class Human:
    """Responses (n) with a human score each. scale: lowest and highest possible score; systems: None where not
    known."""

    samples: Sequence[Sample]
    scores: Floats
    scale: tuple[float, float]
    systems: Sequence[str | None]

    def labelled(self, rows: Rows) -> Labelled:
        """The samples of the rows with their human scores."""
        return [(self.samples[row], float(self.scores[row])) for row in rows]

    def split(self, seed: int) -> tuple[Rows, Rows]:
        """Rows to learn from, in random order, and rows to test on: those of about a third of the contexts."""
        fold = folds_by_context(self.samples, FOLDS, seed)
        train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
        return np.random.default_rng(seed).permutation(train), test

    def scored_by(self, model: Scorer, rows: Rows) -> Floats:
        """The model's scores of the rows, float64."""
        return np.asarray(model.score([self.samples[row] for row in rows]), dtype=np.float64)

    def agreement(self, condition: str, scores: Floats, rows: Rows) -> Finding:
        """Spearman's ρ of the scores of the rows, NaN for missing, with the human scores of the same rows."""
        known = np.isfinite(scores)
        return of_correlation(condition, spearman(scores[known], self.scores[rows][known]))


@dataclass(frozen=True)
class Learning:
    """Human scores, and the evaluator that learns from them."""

    human: Human
    learn: Learn

    def scores(self, pairs: Labelled, rows: Rows) -> Floats:
        """Scores of the rows by a model that learned from the pairs; all NaN if these are too few to learn from."""
        if not enough([sample for sample, _ in pairs]):
            return np.full(len(rows), np.nan)
        return self.human.scored_by(self.learn(pairs, self.human.scale), rows)

    def finding(self, condition: str, pairs: Labelled, test: Rows) -> Finding:
        """Agreement on the rows `test` of a model that learned from the pairs."""
        return self.human.agreement(condition, self.scores(pairs, test), test)


@dataclass(frozen=True)
class Transfer(Learning):
    """Learning from one set, tested on others. name: the set that is learned from; others: name → another set."""

    name: str
    others: Mapping[str, Human]


@study(
    "Few human scores",
    "Agreement with people, Spearman’s ρ, on held-out contexts, by how many responses were learned from.",
)
def low_resource(data: Learning, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, after learning from 25, 50, 100, … and all responses of the others (Zhao
    et al. 2020, section 6.2). Each size contains the responses of the one before."""
    train, test = data.human.split(seed)
    sizes = {f"{size} responses": size for size in SIZES if size < len(train)}
    sizes[f"all {len(train)} responses"] = len(train)
    return [data.finding(name, data.human.labelled(train[:size]), test) for name, size in sizes.items()]


@study(
    "Learning without each system",
    "Agreement with people, Spearman’s ρ, on held-out contexts, by the systems that were learned from.",
)
def leave_one_system_out(data: Learning, seed: int) -> list[Finding]:
    """Spearman's ρ on a third of the contexts, after learning from all systems, without a random quarter of the
    responses, and without each system in turn: this one over all test responses, and over those of the system left out
    (ADEM's Table 3, Lowe et al. 2017). AnnotationError for fewer than two known systems."""
    human = data.human
    systems = sorted({system for system in human.systems if system})
    if len(systems) < 2:
        raise AnnotationError(
            f"responses of {len(systems)} known systems cannot be left out by system; two or more are needed"
        )
    train, test = human.split(seed)
    rest = train[round(LEFT_OUT * len(train)) :]
    findings = [
        data.finding("all systems", human.labelled(train), test),
        data.finding("a random quarter left out", human.labelled(rest), test),
    ]
    named = np.array([system or "" for system in human.systems], dtype=object)
    for system in systems:
        scores = data.scores(human.labelled(train[named[train] != system]), test)
        own = named[test] == system
        findings.append(human.agreement(f"without {system}", scores, test))
        findings.append(human.agreement(f"without {system}: its own responses", scores[own], test[own]))
    return findings


@study(
    "Other annotated sets",
    "Agreement with people, Spearman’s ρ, on other sets than the one that was learned from.",
)
def transfer(data: Transfer, seed: int) -> list[Finding]:
    """Spearman's ρ on the set itself, cross-validated by context, and on each other set, after learning from all of
    this one: a row of the matrix of Zhao et al. (2020), section 6.1."""
    human, rows = data.human, np.arange(len(data.human.samples))
    folded = out_of_fold(lambda pairs: data.learn(pairs, human.scale), human.labelled(rows), FOLDS, seed)
    findings = [human.agreement(f"on {data.name}, {FOLDS} folds", folded, rows)]
    model = data.learn(human.labelled(rows), human.scale)
    for name, other in data.others.items():
        every = np.arange(len(other.samples))
        findings.append(other.agreement(f"on {name}", other.scored_by(model, every), every))
    return findings
