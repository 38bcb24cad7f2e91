"""A validation as one HTML file that opens offline, like the report."""

from __future__ import annotations

import numpy as np

from ssrem import __version__
from ssrem.report import cases, figures
from ssrem.report.data import COLUMNS
from ssrem.report.page import render_page
from ssrem.report.text import Row
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
    common = {"version": None, "dataset": dataset, "criterion": validation.criterion}
    raters = (~np.isnan(data.ratings)).sum(axis=0)
    points, texts = [], []
    for at, (sample, system) in enumerate(zip(data.samples, data.systems, strict=True)):
        about = {**common, "response_id": str(at + 1), "evaluator": validation.evaluator, "part": ""}
        values = {"human": float(data.human[at]), "raters": int(raters[at]), "score": float(scores[at])}
        own = {"context": sample.context, "response": sample.response, "reference": sample.reference}
        points.append({**about, **values})
        texts.append({**about, **own, "system": system})
    correlations: list[Row] = []
    for name, coefficients in validation.agreement.items():
        one = coefficients["spearman"]
        row = dict.fromkeys(COLUMNS["correlations"]) | common | {"evaluator": name, "score": "f", "n": one.n}
        row |= {"aggregation": "mean", "level": "segment", "outcome": "ok", "spearman": one.value}
        row |= {"spearman_low": one.low, "spearman_high": one.high, "ceiling": validation.rater.statistic}
        correlations.append(row)
    return render_page(
        "validation.html",
        cases.with_texts(cases.chosen(points), texts),
        title=lambda name, _: name,
        v=validation,
        dataset=dataset,
        sentence=verdict(validation),
        panels=[*figures.forest(correlations, lambda name, _: name), *figures.scatter(points)],
        required=required,
        unmet=unmet(validation, required),
        version=__version__,
        generated_at=generated_at,
    )
