"""Negatives that need no model: turns of other people, the speaker, the context or the corpus, and the response with
words dropped or shuffled."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, GeneratorSettings, Negative, letters, share_of
from ssrem.samples import Candidates, Rows
from ssrem.settings import Count, Share

_GENERIC = 50
_ATTEMPTS = 10


class SpeakerSet(Generator):
    """The first `count` turns that the speaker tables drew for a response and that pass the check.

    The draw was seeded when the tables were built; the seed passed to `generate` changes nothing.
    """

    kind: ClassVar[str]
    """The kind of drawn candidates, one of ssrem.samples.KINDS."""
    source: ClassVar[str] = "Bak and Oh 2020, sections 3.1 and 3.3"

    def __init__(self, settings: GeneratorSettings | None = None) -> None:
        super().__init__(settings)
        if self.settings.count > 1 or self.kind == "Rand":
            self.name = f"{self.name}-{self.settings.count}"

    def check(self, candidates: Candidates) -> None:
        drawn = candidates.negatives[self.kind].shape[1] if self.kind in candidates.negatives else 0
        if drawn < self.settings.count:
            few = f"{self.name}: the speaker tables have {drawn} turns of {self.kind} for a response"
            raise EvaluatorError(f"{few}; use {type(self).name}-{drawn}" if drawn else few)

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        rows = case.candidates.negatives[self.kind][case.row]
        texts = (case.candidates.texts[int(row)] for row in rows if row >= 0)
        distinct: dict[str, str] = {}
        for text in filter(case.admits, texts):
            distinct.setdefault(letters(text), text)
        for k, text in enumerate(islice(distinct.values(), self.settings.count)):
            yield self.replaced(case, k, text)


class Random(SpeakerSet):
    """Turns of anyone but the speaker."""

    name = "random"
    kind: ClassVar[str] = "Rand"
    source: ClassVar[str] = "Tao et al. 2018"


class SameConversation(SpeakerSet):
    """The speaker's other turns in the same conversation."""

    name = "sc"
    kind: ClassVar[str] = "SC"


class SamePartner(SpeakerSet):
    """The speaker's turns towards the same partner."""

    name = "sp"
    kind: ClassVar[str] = "SP"


class SameSpeaker(SpeakerSet):
    """All of the speaker's turns."""

    name = "ss"
    kind: ClassVar[str] = "SS"


KIND_OF = {
    generator.name: generator.kind for generator in (Random, SameConversation, SamePartner, SameSpeaker)
}
"""Maps the name of a generator to the kind of drawn candidates that it uses."""


class Copied(Generator):
    """The last turn, copied, unless it is blank or equals the response. Only this generator and `Own` give turns of the
    context."""

    name = "copied"
    source: ClassVar[str] = "Bak and Oh 2020, section 8 (context copied as response)"
    back: ClassVar[int] = 1
    """How many turns before the response the copied turn is."""

    def check(self, candidates: Candidates) -> None:
        if self.settings.count > 1:
            raise EvaluatorError(f"{self.name} has one negative for a response, not {self.settings.count}")

    def admitted(self, case: Case, seed: int) -> Iterable[Negative]:
        excluded = ("", letters(case.response))
        return (n for n in self.negatives(case, seed) if letters(n.text) not in excluded)

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        if len(case.context) >= self.back:
            yield self.replaced(case, 0, case.context[-self.back])


class Own(Copied):
    """The turn before the last one, which is the speaker's own where two people take turns."""

    name = "own"
    back: ClassVar[int] = 2


class Drawn(Generator):
    """Responses drawn from a pool of the response's split, up to ten times until one passes the check."""

    _pools: tuple[Candidates, dict[int, Sequence[str]]] | None = None
    """The candidates that were asked about last, and the pool of each of their splits."""

    @abstractmethod
    def pool(self, candidates: Candidates, rows: Rows) -> Sequence[str]:
        """The texts to draw from for the responses at `rows`, those of a split."""

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        if self._pools is None or self._pools[0] is not case.candidates:
            self._pools = case.candidates, {}
        pools, split = self._pools[1], int(case.candidates.split[case.row])
        if split not in pools:
            pools[split] = self.pool(case.candidates, case.candidates.rows(split))
        pool = pools[split]
        for k in range(self.settings.count if len(pool) else 0):
            random = case.random(seed, self.name, k)
            drawn = (pool[int(random.integers(len(pool)))] for _ in range(_ATTEMPTS))
            text = next(filter(case.admits, drawn), None)
            if text is not None:
                yield self.replaced(case, k, text)


class Generic(Drawn):
    """One of the 50 most frequent responses of the split, which fit nearly any context."""

    name = "generic"
    source: ClassVar[str] = "ssrem: generic responses as in Li et al. 2016"

    def pool(self, candidates: Candidates, rows: Rows) -> Sequence[str]:
        texts = [candidates.texts[row] for row in candidates.response[rows].tolist()]
        counts = Counter(map(letters, texts))
        first = {letters(text): text for text in reversed(texts)}
        common = sorted(counts, key=lambda key: (-counts[key], key))
        return [first[key] for key in common if key and counts[key] > 1][:_GENERIC]


class OtherQuestion(Drawn):
    """The response to another question, which sounds like an answer; only responses to a question get one."""

    name = "other-question"
    source: ClassVar[str] = "ssrem: random turns (Tao et al. 2018) among answers"

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        return super().negatives(case, seed) if case.context and _asks(case.context[-1]) else ()

    def pool(self, candidates: Candidates, rows: Rows) -> Sequence[str]:
        rows = rows[candidates.has_context[rows]]
        asked = [_asks(candidates.texts[stop - 1]) for stop in candidates.context_stop[rows].tolist()]
        return [candidates.texts[row] for row in candidates.response[rows[asked]].tolist()]


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "\uff1f"))


class ScrambleSettings(GeneratorSettings):
    """Settings of drop-golden and shuffle-golden."""

    share: Share = 0.2728
    """share of the words that drop-golden drops; the paper says "some", so the default is mask-and-fill's share"""
    min_words: Count = 3
    """a response with fewer words, split at blanks, gets no negative, as with mask-and-fill"""


class Scramble(Generator):
    """The response's words changed at random, up to ten times until the text passes the check."""

    source: ClassVar[str] = "Park et al. 2021, section 4.2.2"
    settings_class: ClassVar[type[GeneratorSettings]] = ScrambleSettings
    settings: Any

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        words = case.response.split()
        if len(words) < max(self.settings.min_words, 2):
            return
        for k in range(self.settings.count):
            random = case.random(seed, self.name, k)
            for _ in range(_ATTEMPTS):
                changed, count = self._draw(words, random)
                text = " ".join(changed)
                if case.admits(text):
                    yield Negative(case.row, self.name, k, text, count, len(words))
                    break

    @abstractmethod
    def _draw(self, words: Sequence[str], random: np.random.Generator) -> tuple[list[str], int]:
        """The words of a negative, and how many of the response's words were dropped or moved."""


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
