"""How much of a response a generator replaces, and how many responses get a negative: the paper's own check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Negative


@dataclass(frozen=True)
class NegativeStatistics:
    """responses: how many the generator was applied to. with_negative: the share of them that got a negative.

    replaced: the share of a response's tokens that were replaced, averaged over all responses, 0 for one without
    a negative; replaced_where_any: averaged over the responses with a negative, NaN if there is none.
    """

    responses: int
    with_negative: float
    replaced: float
    replaced_where_any: float


PAPER = {"with_negative": 0.9489, "replaced": 0.2728}
"""Park et al. 2021, section 3.2: BERT-base tuned on DailyDialog, threshold 0.5."""


def negative_statistics(
    negatives: Iterable[Negative], responses: int, generator: str = "mask-and-fill"
) -> NegativeStatistics:
    """Statistics of `generator` on `responses` responses, by its first negative of each; ignores other generators.

    Raises EvaluatorError if `responses` is below 1 or below the number of responses with a negative.
    """
    if responses < 1:
        raise EvaluatorError(f"statistics of negatives need 1 response or more, got {responses}")
    with_negative, total = 0, 0.0
    for negative in negatives:
        if negative.generator == generator and negative.k == 0:
            with_negative += 1
            total += negative.replaced / negative.tokens
    if with_negative > responses:
        raise EvaluatorError(f"{with_negative} responses have a negative, more than the {responses} in all")
    mean = total / with_negative if with_negative else float("nan")
    return NegativeStatistics(responses, with_negative / responses, total / responses, mean)
