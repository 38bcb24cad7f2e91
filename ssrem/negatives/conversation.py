"""Negatives from the conversation and the corpus: copied turns, generic responses, answers to other questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from ssrem.negatives.base import Case, Generator, Negative, letters
from ssrem.samples import Candidates, Rows

_GENERIC = 50
_ATTEMPTS = 10


class Turn(Generator):
    """A turn of the context as the response, unless it is blank or equals the response. No other generator gives turns
    of the context."""

    source: ClassVar[str] = "Bak and Oh 2020, section 4.3 (context copied as response)"
    back: ClassVar[int]
    """How many turns before the response."""

    def admitted(self, case: Case, seed: int) -> Iterable[Negative]:
        excluded = ("", letters(case.response))
        return (n for n in self.negatives(case, seed) if letters(n.text) not in excluded)

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        if len(case.context) >= self.back:
            words = len(case.response.split())
            yield Negative(case.row, self.name, 0, case.context[-self.back], words, words)


class Copied(Turn):
    """The last turn, copied."""

    name = "copied"
    back = 1


class Own(Turn):
    """The turn before the last one: the speaker's own where two people take turns."""

    name = "own"
    back = 2


class Drawn(Generator):
    """Turns drawn from a pool of the corpus, up to ten times until one passes the check."""

    _pool: tuple[Candidates, Sequence[str]] | None = None

    def pool(self, candidates: Candidates) -> Sequence[str]:
        """The texts to draw from, computed once for the same candidates."""
        if self._pool is None or self._pool[0] is not candidates:
            self._pool = candidates, self._texts(candidates)
        return self._pool[1]

    def _texts(self, candidates: Candidates) -> Sequence[str]:
        raise NotImplementedError

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        pool, words = self.pool(case.candidates), len(case.response.split())
        for k in range(self.settings.count if len(pool) else 0):
            random = case.random(seed, self.name, k)
            drawn = (pool[int(random.integers(len(pool)))] for _ in range(_ATTEMPTS))
            text = next(filter(case.admits, drawn), None)
            if text is not None:
                yield Negative(case.row, self.name, k, text, words, words)


class Generic(Drawn):
    """One of the 50 turns that the corpus has most often, which fit nearly anything."""

    name = "generic"
    source: ClassVar[str] = "ssrem: generic responses as in Li et al. 2016"

    def _texts(self, candidates: Candidates) -> Sequence[str]:
        counts = Counter(map(letters, candidates.texts))
        first = {letters(text): text for text in reversed(candidates.texts)}
        common = sorted(counts, key=lambda key: (-counts[key], key))
        return [first[key] for key in common if key and counts[key] > 1][:_GENERIC]


class OtherQuestion(Drawn):
    """The response to another question: it sounds like an answer. For responses to a question."""

    name = "other-question"
    source: ClassVar[str] = "ssrem: random turns (Tao et al. 2018) among answers"

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        return super().negatives(case, seed) if case.context and _asks(case.context[-1]) else ()

    def _texts(self, candidates: Candidates) -> Sequence[str]:
        rows = np.flatnonzero(candidates.context_stop > candidates.context_start)
        answers: Rows = rows[
            [_asks(candidates.texts[int(last) - 1]) for last in candidates.context_stop[rows]]
        ]
        return [candidates.texts[int(row)] for row in candidates.response[answers]]


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "\uff1f"))
