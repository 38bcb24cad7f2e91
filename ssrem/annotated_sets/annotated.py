"""Responses that people rated, and their human scores by one criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ssrem.errors import AnnotationError
from ssrem.samples import Labels, Sample

GROUND_TRUTH_SYSTEMS = frozenset(
    {
        "ground truth",
        "ground-truth",
        "ground_truth",
        "groundtruth",
        "gold",
        "reference",
        "original ground truth",
    }
)
"""Names, in lower case, under which annotated sets list the true response as if it were a system's."""


@dataclass(frozen=True)
class Annotated:
    """A response that people scored. ratings: criterion → each rater's score as given, None for a rater who gave
    none."""

    dialogue_id: str
    context: tuple[str, ...]
    response: str
    reference: str | None
    system: str | None
    ratings: Mapping[str, tuple[float | None, ...]]

    def scores(self, criterion: str) -> list[float]:
        """The scores that raters gave by a criterion, without those of raters who gave none."""
        return [score for score in self.ratings[criterion] if score is not None]

    @property
    def ground_truth(self) -> bool:
        """Whether this is the true response: by its system's name or, if unknown, by equality with the reference."""
        if self.system is not None:
            return self.system.lower() in GROUND_TRUTH_SYSTEMS
        return self.reference is not None and self.reference.strip().lower() == self.response.strip().lower()

    @property
    def sample(self) -> Sample:
        """What an evaluator gets: the context, the response and the reference."""
        return Sample(self.context, self.response, self.reference)


def criterion_of(annotated: Sequence[Annotated], criterion: str | None = None) -> str:
    """`criterion` if it is given, else 'overall' in upper or lower case, else the only criterion of the set.
    AnnotationError if the set has no such criterion, or several of which none is 'overall'."""
    names = sorted({name for row in annotated for name in row.ratings})
    overall = next((name for name in reversed(names) if name.lower() == "overall"), "")
    chosen = criterion or overall or (names[0] if len(names) == 1 else "")
    if chosen not in names:
        problem = f"no criterion {chosen!r}" if chosen else "several criteria and none called 'overall'"
        raise AnnotationError(
            f"the annotated set has {problem}; name one with --criterion: {', '.join(names)}"
        )
    return chosen


def labels_of(annotated: Sequence[Annotated], criterion: str | None = None) -> Labels:
    """Mean human scores, by the criterion that `criterion_of` chooses, of all responses that are not ground truth.

    Their scale covers ground truth, too. AnnotationError as in `criterion_of`, and if all mean scores are the same.
    """
    chosen = criterion_of(annotated, criterion)
    rated = [row for row in annotated if chosen in row.ratings]
    compared = [row for row in rated if not row.ground_truth]
    scores = [score for row in rated for score in row.scores(chosen)]
    pairs = tuple((row.sample, float(np.mean(row.scores(chosen)))) for row in compared)
    if len({mean for _, mean in pairs}) < 2:
        raise AnnotationError(
            f"{chosen}: no two of the labelled responses ({len(compared)}) differ in their mean score; label more "
            "responses, or name another criterion"
        )
    return Labels(pairs, (min(scores), max(scores)), chosen, len(rated) - len(compared))
