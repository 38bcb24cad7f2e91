"""Filters raters, measures their agreement, and builds the annotated set from their ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ssrem.agreement.raters import (
    Dropped,
    Filtered,
    RaterFigure,
    Ratings,
    failed_checks,
    krippendorff_alpha,
    low_kappa,
    one_rater,
    rating_table,
    split_half,
)
from ssrem.annotated_sets.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotation.batch import ON_TOPIC, Batch
from ssrem.annotation.sheets import Answer
from ssrem.errors import AnnotationError


@dataclass(frozen=True)
class Review:
    """The ratings that remain after filtering the raters, and their agreement.

    ratings (raters, units): without attention checks; NaN if missing or by an excluded rater. units: ids of the items.
    filters: in the order in which they were applied. before, alpha: Krippendorff's ordinal α of all raters and of the
    remaining ones. on_topic (raters, units): as ratings, for the second question, if it was asked. one: how well one
    remaining rater predicts the mean of the others. halves: the highest correlation that an evaluator can reach. Both
    are without true responses, as evaluators are compared.
    """

    ratings: Ratings
    raters: tuple[str, ...]
    units: tuple[str, ...]
    filters: tuple[Filtered, ...]
    before: RaterFigure
    alpha: RaterFigure
    on_topic: Ratings | None
    one: RaterFigure
    halves: RaterFigure

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The excluded raters, with reasons."""
        return tuple(one for filtered in self.filters for one in filtered.dropped)

    @property
    def remaining(self) -> list[str]:
        """The remaining raters, in order."""
        excluded = {one.rater for one in self.dropped}
        return [rater for rater in self.raters if rater not in excluded]


def review(batch: Batch, answers: Sequence[Answer], *, least: float = 1.0, kappa: float | None) -> Review:
    """Filter the raters, first by their attention checks, then, if `kappa` is a bound, by their κ with the others.

    least: share of their checks that raters have to pass, in (0, 1]. kappa: least mean κ of a rater with the others.
    AnnotationError if nobody scored a response, or no rater remains; ValueError if a rater scored an item twice.
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
    remaining = filters[-1].ratings
    on_topic = None
    if batch.plan.on_topic:
        second = {(a.rater, a.item): a.on_topic for a in rated}
        cells = [[second.get((rater, unit)) for unit in units] for rater in raters]
        on_topic = np.where(np.isnan(remaining), np.nan, np.array(cells, dtype=np.float64))
    # What agreement with an evaluator is measured on: other responses than the true ones.
    compared = remaining[:, [not GROUND_TRUTH_SYSTEMS.issuperset(items[unit].systems) for unit in units]]
    result = Review(
        remaining,
        tuple(raters),
        tuple(units),
        tuple(filters),
        krippendorff_alpha(table, "ordinal"),
        krippendorff_alpha(remaining, "ordinal"),
        on_topic,
        one_rater(compared),
        split_half(compared, seed=batch.plan.seed),
    )
    if not result.remaining:
        why = "; ".join(f"{one.rater} {one.reason}" for one in result.dropped)
        raise AnnotationError(f"no rater is left: {why}; lower --checks-passed or --kappa")
    return result


def passed_checks(batch: Batch, answers: Sequence[Answer]) -> dict[str, list[bool]]:
    """Rater → whether they passed each attention check that they answered."""
    items = batch.by_id
    passed: dict[str, list[bool]] = {}
    for answer in answers:
        if (expected := items[answer.item].expected) is not None:
            passed.setdefault(answer.rater, []).append(expected[0] <= answer.score <= expected[1])
    return passed


def annotated_rows(batch: Batch, reviewed: Review) -> list[dict[str, Any]]:
    """The rated responses in the layout of `*_eval.json`, a row for each system that gave the response."""
    items, criterion = batch.by_id, batch.plan.criterion
    rows = []
    for unit, name in enumerate(reviewed.units):
        raters = np.flatnonzero(~np.isnan(reviewed.ratings[:, unit]))
        if not len(raters):
            continue
        item = items[name]
        annotations: dict[str, list[int | None]] = {
            criterion: [int(score) for score in reviewed.ratings[raters, unit]]
        }
        if (
            reviewed.on_topic is not None
            and (answers := reviewed.on_topic[raters, unit])[~np.isnan(answers)].size
        ):
            annotations[ON_TOPIC] = [None if np.isnan(score) else int(score) for score in answers]
        rows += [
            {
                "dialogue_id": str(item.context.response_id),
                "context": list(item.context.texts),
                "response": item.response,
                "reference": item.context.truth,
                "model": system,
                "annotations": annotations,
                "raters": [reviewed.raters[at] for at in raters],
            }
            for system in item.systems
        ]
    return rows


def record(batch: Batch, reviewed: Review) -> dict[str, Any]:
    """The filters' decisions and the agreement, for a file beside the annotated set."""
    return {
        "batch": batch.id,
        "criterion": batch.plan.criterion,
        "aggregation": "+".join(["mean", *(one.name for one in reviewed.filters)]),
        "raters": list(reviewed.raters),
        "kept": reviewed.remaining,
        "dropped": [asdict(one) for one in reviewed.dropped],
        "unjudged": {
            one.name: [who for who in one.unjudged if who in reviewed.remaining] for one in reviewed.filters
        },
        "alpha_of_all": asdict(reviewed.before),
        "alpha": asdict(reviewed.alpha),
        **(
            {"alpha_on_topic": asdict(krippendorff_alpha(reviewed.on_topic, "ordinal"))}
            if reviewed.on_topic is not None
            else {}
        ),
        "one_rater": asdict(reviewed.one),
        "split_half": asdict(reviewed.halves),
    }
