"""A validation as one HTML file that opens offline, like the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssrem import __version__
from ssrem.report import cases
from ssrem.report.data import Row
from ssrem.report.drawing import Panel
from ssrem.report.page import MEASURES, OUTCOMES, jinja_environment, template_text
from ssrem.report.plots import forest_panels
from ssrem.report.scatter import scatter_panels
from ssrem.samples import Floats
from ssrem.validation.passing import LabelledSet
from ssrem.validation.validation import Validation, unmet, verdict


def render(
    validation: Validation,
    *,
    dataset: str,
    data: LabelledSet,
    scores: Floats,
    required: dict[str, float],
    generated_at: str,
) -> str:
    """The page; the same arguments give the same text.

    scores (n,): of the labelled responses, NaN for none. required: measure to the value that it has to have.
    generated_at: as the heading prints it.
    """
    points = _points(validation, dataset, data, scores)
    texts = [
        {
            "dataset": dataset,
            "response_id": str(number),
            "context": sample.context,
            "response": sample.response,
            "reference": sample.reference,
            "system": system,
        }
        for number, (sample, system) in enumerate(zip(data.samples, data.systems, strict=True), 1)
    ]
    return (
        jinja_environment()
        .get_template("validation.html")
        .render(
            v=validation,
            dataset=dataset,
            sentence=verdict(validation),
            drawings=_panels(validation, dataset, points),
            measures={name: MEASURES[name] for name in validation.agreement[validation.evaluator]},
            outcomes=OUTCOMES,
            cases=cases.with_texts(cases.chosen(points), texts),
            case_sets=[dataset],
            case_evaluators=[validation.evaluator],
            case_kinds=cases.KINDS,
            title=_name,
            required=required,
            unmet=unmet(validation, required),
            version=__version__,
            generated_at=generated_at,
            style=template_text("page.css"),
        )
    )


def _points(validation: Validation, dataset: str, data: LabelledSet, scores: Floats) -> list[Row]:
    """Score beside human score of each response, as `scatter_panels` and `cases.chosen` take them."""
    raters = (~np.isnan(data.ratings)).sum(axis=0).tolist()
    return [
        {
            "evaluator": validation.evaluator,
            "version": None,
            "part": "",
            "dataset": dataset,
            "criterion": validation.criterion,
            "response_id": str(number),
            "human": human,
            "raters": of_response,
            "score": score,
        }
        for number, (human, of_response, score) in enumerate(
            zip(data.human.tolist(), raters, scores.tolist(), strict=True), 1
        )
    ]


def _panels(validation: Validation, dataset: str, points: Sequence[Row]) -> Sequence[Panel]:
    """The correlations beside one rater's, and score against human score."""
    correlations: list[Row] = [
        {
            "evaluator": name,
            "version": None,
            "score": "f",
            "dataset": dataset,
            "criterion": validation.criterion,
            "aggregation": "mean",
            "level": "segment",
            "outcome": "ok",
            "spearman": agreement["spearman"].value,
            "spearman_low": agreement["spearman"].low,
            "spearman_high": agreement["spearman"].high,
            "ceiling": validation.rater.statistic,
            "n": agreement["spearman"].n,
        }
        for name, agreement in validation.agreement.items()
    ]
    return [*forest_panels(correlations, _name), *(panel for _, panel in scatter_panels(points))]


def _name(evaluator: str, _: None) -> str:
    return evaluator
