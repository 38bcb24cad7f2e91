"""A validation as one HTML file that opens offline, like the report."""

from __future__ import annotations

from collections.abc import Sequence

from ssrem import __version__
from ssrem.report.data import Row
from ssrem.report.drawing import Panel
from ssrem.report.page import MEASURES, OUTCOMES, jinja_environment, template_text
from ssrem.report.plots import clouds, forest_panels
from ssrem.samples import Floats
from ssrem.validation.labels import LabelledSet
from ssrem.validation.validation import Validation
from ssrem.validation.verdict import unmet, verdict


def render(
    validation: Validation,
    *,
    dataset: str,
    data: LabelledSet,
    scores: Floats,
    required: dict[str, float],
    made: str,
) -> str:
    """The page; the same arguments give the same text. scores (n,): of the labelled responses, NaN for none. required:
    measure to the value that it has to have; made: when."""
    return (
        jinja_environment()
        .get_template("validation.html")
        .render(
            v=validation,
            dataset=dataset,
            sentence=verdict(validation),
            drawings=_panels(validation, dataset, data, scores),
            measures={name: MEASURES[name] for name in validation.agreement[validation.evaluator]},
            outcomes=OUTCOMES,
            required=required,
            unmet=unmet(validation, required),
            version=__version__,
            made=made,
            style=template_text("page.css"),
        )
    )


def _panels(validation: Validation, dataset: str, data: LabelledSet, scores: Floats) -> Sequence[Panel]:
    """The correlations beside one rater's, and score against human score."""
    of_set = {
        "version": None,
        "dataset": dataset,
        "criterion": validation.criterion,
        "score": "f",
        "part": "f",
    }
    correlations: list[Row] = [
        {
            **of_set,
            "evaluator": name,
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
    points: list[Row] = [
        {**of_set, "evaluator": validation.evaluator, "human": human, "score": score}
        for human, score in zip(data.human.tolist(), scores.tolist(), strict=True)
    ]
    forest = forest_panels(correlations, lambda name, _: str(name))
    return [*forest, *(panel for _, panel in clouds(points))]
