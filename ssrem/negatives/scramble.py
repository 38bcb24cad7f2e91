"""The true response with words dropped or shuffled: two of the ablations of mask-and-fill."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ssrem.negatives.base import Case, Generator, Negative, Settings, share_of

_ATTEMPTS = 10


@dataclass(frozen=True)
class ScrambleSettings(Settings):
    """Settings of drop-golden and shuffle-golden.

    share: of the words that drop-golden drops; the paper says "some", so the default is mask-and-fill's share.
    min_words: a response with fewer words, split at blanks, gets no negative, as with mask-and-fill.
    """

    share: float = 0.2728
    min_words: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_share("share")


class Scramble(Generator):
    """The response's words changed at random, up to ten times until the text passes the check."""

    source: ClassVar[str] = "Park et al. 2021, section 4.2.2"
    settings_class: ClassVar[type[Settings]] = ScrambleSettings
    settings: ScrambleSettings

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        words = case.response.split()
        if len(words) < max(self.settings.min_words, 2):
            return
        for k in range(self.settings.count):
            random = case.random(seed, self.name, k)
            for _ in range(_ATTEMPTS):
                changed, replaced = self._draw(words, random)
                text = " ".join(changed)
                if case.admits(text):
                    yield Negative(case.row, self.name, k, text, replaced, len(words))
                    break

    @abstractmethod
    def _draw(self, words: Sequence[str], random: np.random.Generator) -> tuple[list[str], int]:
        """The words of a negative, and how many of the response's words are gone or moved."""


class DropGolden(Scramble):
    """The response without some of its words."""

    name = "drop-golden"

    def _draw(self, words: Sequence[str], random: np.random.Generator) -> tuple[list[str], int]:
        count = min(share_of(self.settings.share, len(words)), len(words) - 1)
        dropped = set(random.choice(len(words), count, replace=False).tolist())
        return [word for i, word in enumerate(words) if i not in dropped], count


class ShuffleGolden(Scramble):
    """The response with its words in another order."""

    name = "shuffle-golden"

    def _draw(self, words: Sequence[str], random: np.random.Generator) -> tuple[list[str], int]:
        shuffled = [words[i] for i in random.permutation(len(words))]
        return shuffled, sum(a != b for a, b in zip(words, shuffled, strict=True))
