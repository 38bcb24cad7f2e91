"""The length of a response: a baseline for an evaluator's agreement with human ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.samples import Sample


class Length(Metric):
    """log(1 + number of words, split at blanks): shows how well length alone agrees with human ratings.

    Whether raters prefer long or short responses differs between annotated sets, even in sign, so an evaluator that
    depends on the length agrees with some sets and not with others. A blend uses `length` as a control, see `Blend`.
    """

    name: ClassVar[str] = "length"
    needs: ClassVar[frozenset[str]] = frozenset()
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    source: ClassVar[str] = "ssrem: a control; correlation with length in Lowe et al. 2017, section 5.2"

    @property
    def engine(self) -> str:
        return "words:blanks"

    def values(self, samples: Sequence[Sample]) -> Scored:
        words = np.array([len(sample.response.split()) for sample in samples], dtype=np.float64)
        return Scored(np.log1p(words))
