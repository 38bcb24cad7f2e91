"""The true response with words dropped or shuffled: two of the ablations of mask-and-fill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from ssrem.negatives.base import Case, Generator, Negative, Settings, check_share, share_of, signature_of

_ATTEMPTS = 10


@dataclass(frozen=True)
class ScrambleSettings(Settings):
    """share: of the words, how many are dropped; the paper says "some", so it is what mask-and-fill replaces there.

    min_words: a response with fewer words, cut at blanks, gets no negative, as with mask-and-fill.
    """

    share: float = 0.2728
    min_words: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self.share)


class Scramble(Generator):
    """Words of the response in a new order, or without some; drawn up to ten times until it is another text."""

    source: ClassVar[str] = "Park et al. 2021, section 4.2.2"

    def __init__(self, name: str, settings: ScrambleSettings) -> None:
        self.name = name
        self.settings = settings

    @property
    def signature(self) -> str:
        return signature_of(self.name, asdict(self.settings))

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        words = case.response.split()
        if len(words) < max(self.settings.min_words, 2):
            return
        for k in range(self.settings.count):
            random = case.random(seed, self.name, k)
            for _ in range(_ATTEMPTS):
                left, replaced = self._draw(words, random)
                text = " ".join(left)
                if case.admits(text):
                    yield Negative(case.row, self.name, k, text, replaced, len(words))
                    break

    def _draw(self, words: Sequence[str], random: np.random.Generator) -> tuple[list[str], int]:
        """The words of a negative, and how many of the response's are gone or stand elsewhere."""
        if self.name == "shuffle-golden":
            shuffled = [words[i] for i in random.permutation(len(words))]
            return shuffled, sum(a != b for a, b in zip(words, shuffled, strict=True))
        dropped = min(share_of(self.settings.share, len(words)), len(words) - 1)
        gone = set(random.choice(len(words), dropped, replace=False).tolist())
        return [word for i, word in enumerate(words) if i not in gone], dropped
