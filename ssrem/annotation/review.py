"""Who of the raters is kept, how far they agree, and the annotated set that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ssrem.agreement.raters.ceiling import OneRater, SplitHalf, one_rater, split_half
from ssrem.agreement.raters.filters import Dropped, Filtered, aggregation_name, failed_checks, low_kappa
from ssrem.agreement.raters.reliability import Ratings, Reliability, krippendorff_alpha, rating_table
from ssrem.annotation.answers import Answer
from ssrem.annotation.items import Batch
from ssrem.errors import AnnotationError


@dataclass(frozen=True)
class Review:
    """ratings (raters, units) of responses, checks apart, NaN for missing and for who was left out.

    filters: in the order in which they were applied. alpha, before: Krippendorff's, ordinal, of the raters kept and of
    all of them.
    """

    ratings: Ratings
    raters: tuple[str, ...]
    units: tuple[str, ...]
    filters: tuple[Filtered, ...]
    before: Reliability
    alpha: Reliability
    one: OneRater
    halves: SplitHalf

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Who was left out, and why."""
        return tuple(one for filtered in self.filters for one in filtered.dropped)

    @property
    def kept(self) -> list[str]:
        """Who was not, in order."""
        out = {one.rater for one in self.dropped}
        return [rater for rater in self.raters if rater not in out]


def review(batch: Batch, answers: Sequence[Answer], *, least: float = 1.0, kappa: float | None) -> Review:
    """Filter the raters, first by their attention checks, then by κ with the others where `kappa` is a bound.

    least: share of checks to pass, in (0, 1]. AnnotationError where nobody scored a response, or nobody is left;
    ValueError as in the filters.
    """
    items = batch.by_id
    rated = [answer for answer in answers if items[answer.item].expected is None]
    if not rated:
        raise AnnotationError("only attention checks were answered; no response has a score")
    table, raters, units = rating_table(
        [a.rater for a in rated], [a.item for a in rated], [a.score for a in rated]
    )
    scale = range(1, batch.plan.scale + 1)
    filters = [failed_checks(table, raters, passed_checks(batch, answers), least=least)]
    if kappa is not None:
        filters.append(low_kappa(filters[0].ratings, raters, bound=kappa, categories=scale))
    left = filters[-1].ratings
    found = Review(
        left,
        tuple(raters),
        tuple(units),
        tuple(filters),
        krippendorff_alpha(table, "ordinal"),
        krippendorff_alpha(left, "ordinal"),
        one_rater(left),
        split_half(left, seed=batch.plan.seed),
    )
    if not found.kept:
        why = "; ".join(f"{one.rater} {one.reason}" for one in found.dropped)
        raise AnnotationError(f"no rater is left: {why}; lower --checks-passed or --kappa")
    return found


def passed_checks(batch: Batch, answers: Sequence[Answer]) -> dict[str, list[bool]]:
    """Rater to whether each attention check that they answered was passed."""
    items = batch.by_id
    found: dict[str, list[bool]] = {}
    for answer in answers:
        if (expected := items[answer.item].expected) is not None:
            found.setdefault(answer.rater, []).append(expected[0] <= answer.score <= expected[1])
    return found


def annotated_rows(batch: Batch, found: Review) -> list[dict[str, Any]]:
    """The rated responses as `*_eval.json` lists them, a row for each system that gave the response."""
    items, criterion = batch.by_id, batch.plan.criterion
    rows = []
    for unit, name in enumerate(found.units):
        given = [at for at in range(len(found.raters)) if not np.isnan(found.ratings[at, unit])]
        if not given:
            continue
        item = items[name]
        rows += [
            {
                "dialogue_id": str(item.context.response_id),
                "context": list(item.context.texts),
                "response": item.response,
                "reference": item.context.truth,
                "model": system,
                "annotations": {criterion: [int(found.ratings[at, unit]) for at in given]},
                "raters": [found.raters[at] for at in given],
            }
            for system in item.systems
        ]
    return rows


def record(batch: Batch, found: Review) -> dict[str, Any]:
    """What was decided and found, for a file beside the annotated set."""
    return {
        "batch": batch.id,
        "criterion": batch.plan.criterion,
        "aggregation": aggregation_name("mean", found.filters),
        "raters": list(found.raters),
        "kept": found.kept,
        "dropped": [asdict(one) for one in found.dropped],
        "unjudged": {one.name: _unjudged(found, one) for one in found.filters},
        "alpha_of_all": asdict(found.before),
        "alpha": asdict(found.alpha),
        "one_rater": asdict(found.one),
        "split_half": asdict(found.halves),
    }


def _unjudged(found: Review, filtered: Filtered) -> list[str]:
    return [rater for rater in filtered.unjudged if rater in found.kept]
