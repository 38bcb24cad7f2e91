"""Several generators as one: each response gets the negatives of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, Negative
from ssrem.samples import Candidates


class Mixture(Generator):
    """The negatives of its parts, part by part; each keeps its part's name and k.

    The paper's own is random-1+mask-and-fill: one random turn and one manipulated response.
    """

    source: ClassVar[str] = "Park et al. 2021, section 4.1.2"

    def __init__(self, parts: Sequence[Generator]) -> None:
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in self.parts)
        twice = [name for name, times in Counter(part.name for part in self.parts).items() if times > 1]
        if twice:
            raise EvaluatorError(
                f"negatives {self.name}: {twice[0]} stands there twice; ask for more of it once"
            )

    @property
    def signature(self) -> str:
        return "+".join(part.signature for part in self.parts)

    def check(self, candidates: Candidates) -> None:
        for part in self.parts:
            part.check(candidates)

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        for part in self.parts:
            yield from part.negatives(case, seed)
