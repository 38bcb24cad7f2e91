"""What every generator of negatives takes and gives."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ssrem.config import Config
from ssrem.errors import EvaluatorError
from ssrem.samples import Candidates, Rows

BATCH = 256


@dataclass(frozen=True)
class Negative:
    """A response that is wrong on purpose.

    response: position of the true response among the candidates. generator, k: whose it is, and its which-th for
    that response, from 0. replaced: how many of the response's tokens no longer stand; tokens: how many it has,
    counted as the generator cuts them. truncated: the generator could not read the whole context or response.
    """

    response: int
    generator: str
    k: int
    text: str
    replaced: int
    tokens: int
    truncated: bool = False


@dataclass(frozen=True)
class Case:
    """One response of the candidates, with what a generator may ask about it."""

    candidates: Candidates
    row: int

    @cached_property
    def response(self) -> str:
        """The true response."""
        return self.candidates.texts[int(self.candidates.response[self.row])]

    @cached_property
    def context(self) -> tuple[str, ...]:
        """The turns before it, oldest first."""
        start, stop = self.candidates.context_start[self.row], self.candidates.context_stop[self.row]
        return tuple(self.candidates.texts[int(start) : int(stop)])

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset(letters(text) for text in (self.response, *self.context, ""))

    def admits(self, text: str) -> bool:
        """Whether `text` is neither blank, nor the response, nor a turn of the context, case and blanks aside."""
        return letters(text) not in self._taken

    def random(self, seed: int, generator: str, k: int) -> np.random.Generator:
        """Random numbers that depend on the arguments, the response and its context, and on nothing else.

        The texts are hashed, not their position, so that draws stay when more data lands before them.
        """
        key = json.dumps([seed, generator, k, self.context, self.response])
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


@dataclass(frozen=True)
class Settings(Config):
    """What determines a generator's negatives, besides the seed. count: how many a response."""

    count: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "count")


class Generator(ABC):
    """Responses and their contexts → negatives, each checked: not blank, not the response, no turn of the context.

    What a response gets depends on (seed, response and context, k) alone, never on order, batch or neighbours.
    Where a generator has nothing that passes, the response gets fewer negatives or none.
    """

    name: str
    source: ClassVar[str]
    """Where it is described: authors, year, section."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings and weights' hash: with the same seed, equal signatures give equal negatives."""

    def generate(
        self,
        candidates: Candidates,
        rows: Rows | Iterable[int] | None = None,
        *,
        seed: int,
        batch_size: int = BATCH,
    ) -> Iterator[list[Negative]]:
        """The negatives of the responses at `rows` (all for None), in that order, one list a batch of responses.

        Nothing is held but the batch. EvaluatorError, before the first batch, where `candidates` lack what the
        generator draws from or a row lies outside them.
        """
        chosen = np.asarray(candidates.rows(None) if rows is None else list(rows), dtype=np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(candidates)):
            raise EvaluatorError(f"negatives: a row lies outside the {len(candidates)} responses")
        if batch_size < 1:
            raise EvaluatorError(f"batch_size is {batch_size}; expected 1 or more")
        self.check(candidates)
        return self._batches(candidates, chosen, seed, batch_size)

    def _batches(
        self, candidates: Candidates, rows: Rows, seed: int, batch_size: int
    ) -> Iterator[list[Negative]]:
        for first in range(0, len(rows), batch_size):
            cases = (Case(candidates, int(row)) for row in rows[first : first + batch_size])
            yield [n for case in cases for n in self.negatives(case, seed) if case.admits(n.text)]

    def check(self, candidates: Candidates) -> None:
        """EvaluatorError where `candidates` lack what the generator draws from."""
        return

    @abstractmethod
    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        """One response's negatives in order of k; those that the case does not admit are left out afterwards."""


def signature_of(name: str, about: Mapping[str, Any]) -> str:
    """`name` and what determines the negatives, sorted, as `name|setting:value|…`."""
    return name + "".join(f"|{key}:{value}" for key, value in sorted(about.items()))


def share_of(share: float, n: int) -> int:
    """How many of `n` make up `share`, rounded half up: one at least."""
    return max(1, math.floor(share * n + 0.5))


def check_share(share: float) -> None:
    """EvaluatorError unless 0 < share <= 1."""
    if not 0 < share <= 1:
        raise EvaluatorError(f"share is {share}; expected more than 0 and at most 1")


def letters(text: str) -> str:
    """`text` without blanks and case: texts with the same letters count as the same."""
    return "".join(text.split()).casefold()
