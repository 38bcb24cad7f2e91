"""How long a response is: what an evaluator's agreement with people has to be compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.samples import Sample


class Length(Metric):
    """log(1 + number of words between blanks): the baseline that shows how far length alone goes.

    Whether people prefer long or short responses differs from set to set, in sign also. An evaluator that follows
    the length rises and falls with it; a blend takes `length` as a control, see `Blend`.
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
        return Scored(np.log1p(words), np.zeros(len(samples), dtype=bool))
