"""Human scores as evaluators learn from them: one a response, on a known scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssrem.agreement.annotated import Annotated
from ssrem.errors import AnnotationError
from ssrem.samples import Floats, Sample

_OVERALL = "overall"


@dataclass(frozen=True)
class Labels:
    """pairs: samples with the mean of their raters' scores. scale: the lowest and highest score that a rater gave.

    criterion: what the raters scored. excluded: ground-truth rows that were left out.
    """

    pairs: tuple[tuple[Sample, float], ...]
    scale: tuple[float, float]
    criterion: str
    excluded: int

    @property
    def samples(self) -> list[Sample]:
        """The samples, in order."""
        return [sample for sample, _ in self.pairs]

    @property
    def human(self) -> Floats:
        """Their human scores, float64 (n,)."""
        return np.array([score for _, score in self.pairs], dtype=np.float64)


def labels_of(
    annotated: Sequence[Annotated], criterion: str | None = None, *, keep_ground_truth: bool = False
) -> Labels:
    """Human scores of one criterion: the one given, 'overall' where there is one, or the only one there is.

    AnnotationError where the criterion is not there, several are and none is 'overall', or all scores are equal.
    """
    there = sorted({name for row in annotated for name in row.ratings})
    chosen = criterion or (_OVERALL if _OVERALL in there else there[0] if len(there) == 1 else "")
    if chosen not in there:
        asked = f"no criterion {chosen!r}" if chosen else "several criteria and none called 'overall'"
        raise AnnotationError(f"the annotated set has {asked}; name one of {', '.join(there)}")
    rated = [row for row in annotated if chosen in row.ratings]
    kept = [row for row in rated if keep_ground_truth or not row.ground_truth]
    scores = [score for row in rated for score in row.ratings[chosen]]
    if not kept or min(scores) == max(scores):
        raise AnnotationError(
            f"{chosen}: {len(kept)} responses whose scores do not differ tell nothing apart"
        )
    pairs = tuple((row.sample, float(np.mean(row.ratings[chosen]))) for row in kept)
    return Labels(pairs, (min(scores), max(scores)), chosen, len(rated) - len(kept))
