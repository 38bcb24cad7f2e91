"""The paper's own check of mask-and-fill: how much is replaced, and how many responses get a negative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Negative


@dataclass(frozen=True)
class Fares:
    """responses: how many a generator was asked about. with_negative: the share of them that got one.

    replaced: the share of a response's tokens that were replaced, averaged over all of them, 0 for one without a
    negative; replaced_where_any: over those with a negative, NaN where there is none.
    """

    responses: int
    with_negative: float
    replaced: float
    replaced_where_any: float


PAPER = {"with_negative": 0.9489, "replaced": 0.2728}
"""Park et al. 2021, section 3.2: BERT-base tuned on DailyDialog, threshold 0.5."""


def fares(negatives: Iterable[Negative], responses: int, generator: str = "mask-and-fill") -> Fares:
    """How `generator` fared on `responses` responses, from its first negative of each; others are passed over."""
    if responses < 1:
        raise EvaluatorError("fares: no response was asked about")
    found, total = 0, 0.0
    for negative in negatives:
        if negative.generator == generator and negative.k == 0:
            found += 1
            total += negative.replaced / negative.tokens
    if found > responses:
        raise EvaluatorError(
            f"fares: {found} responses have a negative, but only {responses} were asked about"
        )
    return Fares(responses, found / responses, total / responses, total / found if found else float("nan"))
