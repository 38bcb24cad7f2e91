"""Labelled responses as arrays: what people said of each, beside which an evaluator's scores are put."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.annotated import Annotated, criterion_of, labels_of
from ssrem.agreement.inputs import Integers, chosen_labels, numbered
from ssrem.agreement.raters.reliability import Ratings
from ssrem.errors import AnnotationError
from ssrem.samples import Floats, Sample

Flags = NDArray[np.bool_]

FEWEST = 10
"""Labelled responses; from fewer nothing can be said."""


@dataclass(frozen=True)
class LabelledSet:
    """Responses (n) that people labelled by one criterion, without ground truth.

    human (n,): mean of each response's raters. ratings (raters, n): NaN where there is none; a rater is a number in
    `Annotated.ratings`. contexts: each response's, as one text. systems: None where not known. excluded: ground truth
    that was left out. passed_from: the human score from which a response passes, None where the labels have more than
    two values and nobody said.
    """

    criterion: str
    samples: Sequence[Sample]
    human: Floats
    ratings: Ratings
    contexts: Sequence[str]
    systems: Sequence[str | None]
    excluded: int
    passed_from: float | None

    def part(self, rows: Flags) -> LabelledSet:
        """The responses at rows (n,)."""
        lists = (chosen_labels(one, rows) for one in (self.samples, self.contexts, self.systems))
        samples, contexts, systems = lists
        numbers = self.human[rows], self.ratings[:, rows]
        return LabelledSet(
            self.criterion, samples, *numbers, contexts, systems, self.excluded, self.passed_from
        )

    @cached_property
    def clusters(self) -> Integers:
        """Number of each response's context, from 0 (n,)."""
        return numbered(self.contexts, len(self.contexts), "contexts")[1]

    @cached_property
    def calibrating(self) -> Flags:
        """Which responses are of the half of the contexts on which a threshold is chosen (n,); the others test it.

        The half of a context depends on its text alone, so it stays when labels are added.
        """
        halves = {context: sha256(context.encode()).digest()[0] % 2 == 0 for context in set(self.contexts)}
        return np.array([halves[context] for context in self.contexts], dtype=bool)

    @cached_property
    def passed(self) -> Flags | None:
        """Which responses people pass (n,); None where that is not known, or the same of all."""
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

    pass_from: the human score from which a response passes; without it, labels of two values say so: the mean of a
    response's raters has to be in the middle of the two or above. AnnotationError as `labels_of`, and below `FEWEST`
    responses.
    """
    chosen = criterion_of(annotated, criterion)
    rows = [row for row in annotated if chosen in row.ratings and not row.ground_truth]
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
        ["\x1f".join(row.context) for row in rows],
        [row.system for row in rows],
        labels.excluded,
        float(values.mean()) if pass_from is None and len(values) == 2 else pass_from,
    )
