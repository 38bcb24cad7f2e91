"""The base class of generators of negatives, and what they take and return."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ssrem import settings
from ssrem.errors import EvaluatorError, SsremError
from ssrem.samples import Candidates, Rows, Sample
from ssrem.settings import Count

BATCH = 32
"""Responses in a batch of negatives: after each one, negatives can be kept, and progress can be reported."""


@dataclass(frozen=True)
class Negative:
    """A response that is wrong on purpose.

    response: position of the true response among the candidates. generator: name of the generator. k: number of the
    negative among those of this generator for this response, from 0. replaced: how many of the response's tokens were
    removed, moved or replaced. tokens: how many tokens the response has for this generator. truncated: whether the
    generator read only a part of the context or the response.
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
    """One response of the candidates with its context, the check of its negatives, and its random numbers."""

    candidates: Candidates
    row: int

    @cached_property
    def true(self) -> Sample:
        """The true response with the turns before it."""
        return self.candidates.sample(self.row)

    @property
    def response(self) -> str:
        """The true response."""
        return self.true.response

    @property
    def context(self) -> tuple[str, ...]:
        """The turns before the response, oldest first."""
        return self.true.context

    @cached_property
    def _excluded(self) -> frozenset[str]:
        return frozenset(letters(text) for text in (self.response, *self.context, ""))

    def admits(self, text: str) -> bool:
        """Whether `text` is not blank, not the response and no turn of the context, ignoring case and blanks."""
        return letters(text) not in self._excluded

    def random(self, seed: int, generator: str, k: int) -> np.random.Generator:
        """Random numbers that depend only on the arguments, the response and its context.

        They are seeded by a hash of the texts, not by their position, so that draws stay when data is added.
        """
        key = json.dumps([seed, generator, k, self.context, self.response])
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


class GeneratorSettings(settings.Settings, strict=True):
    """What determines a generator's negatives, besides the seed."""

    count: Count = 1
    """negatives per response"""


class Generator(ABC):
    """Base class of generators, which make negatives from responses and their contexts.

    Each negative is checked: it is not blank, not the response and no turn of the context. It depends only on the seed,
    the response, its context, k and, where turns are drawn, the turns to draw from; not on the order or the batch. A
    response gets fewer negatives, or none, if too few pass the check.
    """

    name: str
    """The generator's key in ssrem.negatives.GENERATORS."""
    source: ClassVar[str]
    """Where the generator is described: authors, year, section."""
    settings_class: ClassVar[type[GeneratorSettings]] = GeneratorSettings

    def __init__(self, settings: GeneratorSettings | None = None) -> None:
        self.settings: Any = settings or self.settings_class()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The generator with these settings, and defaults for all others; EvaluatorError for a bad value."""
        try:
            return cls(cls.settings_class(**settings))
        except SsremError as error:
            raise EvaluatorError(f"negatives {cls.name}: {error}") from None

    @property
    def signature(self) -> str:
        """Name, settings and hash of the weights: with equal signatures and seeds, generators make equal negatives."""
        return self.name + "".join(f"|{key}:{value}" for key, value in sorted(self._determinants().items()))

    def _determinants(self) -> dict[str, Any]:
        """The names and values of everything that determines the negatives besides the seed."""
        values: dict[str, Any] = self.settings.model_dump()
        return values

    def generate(
        self,
        candidates: Candidates,
        rows: Rows | Iterable[int] | None = None,
        *,
        seed: int,
        batch_size: int = BATCH,
        folder: Path | None = None,
    ) -> Iterator[list[Negative]]:
        """The negatives of the responses at `rows` (all for None), in that order, one list per batch of responses.

        Memory holds one batch. folder: where a file keeps each batch, so that after an interruption the same call
        makes only the batches that it lacks. Raises EvaluatorError before the first batch if `candidates` lack what the
        generator draws from or a row lies outside them.
        """
        chosen = np.asarray(candidates.rows(None) if rows is None else list(rows), dtype=np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(candidates)):
            raise EvaluatorError(f"negatives: a row lies outside the {len(candidates)} responses")
        self.check(candidates)

        def batch(first: int) -> list[Negative]:
            cases = (Case(candidates, int(row)) for row in chosen[first : first + batch_size])
            return [negative for case in cases for negative in self.admitted(case, seed)]

        firsts = range(0, len(chosen), batch_size)
        if folder is None:
            return map(batch, firsts)
        digest = hashlib.sha256(json.dumps([self.signature, seed, batch_size, *candidates.texts]).encode())
        spans = (candidates.response, candidates.context_start, candidates.context_stop)
        for array in (chosen, *spans, *candidates.negatives.values()):
            digest.update(np.ascontiguousarray(array).tobytes())
        return _kept(folder / f"negatives-{digest.hexdigest()[:16]}.jsonl", batch, firsts)

    def check(self, candidates: Candidates) -> None:
        """Raise EvaluatorError if `candidates` lack what the generator draws from."""
        return

    @abstractmethod
    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        """One response's negatives in order of k; `admitted` drops those that the case does not admit."""

    def admitted(self, case: Case, seed: int) -> Iterable[Negative]:
        """One response's negatives that pass the check, in order of k."""
        return (negative for negative in self.negatives(case, seed) if case.admits(negative.text))

    def replaced(self, case: Case, k: int, text: str) -> Negative:
        """The k-th negative of a response: `text`, which replaces all words of the response."""
        words = len(case.response.split())
        return Negative(case.row, self.name, k, text, words, words)


def _kept(
    path: Path, batch: Callable[[int], list[Negative]], firsts: Sequence[int]
) -> Iterator[list[Negative]]:
    """`batch` of each of `firsts`: those that the file holds, a line each, then the others, which it gets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        # If writing was interrupted, the last line has no end; its batch is made again.
        lines = [line for line in file if line.endswith("\n")]
        file.seek(0)
        file.truncate(sum(len(line.encode()) for line in lines))
        for line in lines:
            yield [Negative(*fields) for fields in json.loads(line)]
        for first in firsts[len(lines) :]:
            made = batch(first)
            file.write(json.dumps([astuple(negative) for negative in made]) + "\n")
            file.flush()
            yield made


class Mixture(Generator):
    """The negatives of several generators, part by part; each keeps its part's name and k.

    The paper's mixture is random-1+mask-and-fill: one random turn and one manipulated response.
    """

    source: ClassVar[str] = "Park et al. 2021, section 4.1.2"

    def __init__(self, parts: Sequence[Generator]) -> None:
        super().__init__()
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in self.parts)
        name, times = Counter(type(part).name for part in self.parts).most_common(1)[0]
        if times > 1:
            raise EvaluatorError(
                f"negatives {self.name}: {name} is named twice; name it once, as {name}-2 for two negatives"
            )

    @property
    def signature(self) -> str:
        return "+".join(part.signature for part in self.parts)

    def check(self, candidates: Candidates) -> None:
        for part in self.parts:
            part.check(candidates)

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        """One response's negatives that pass the check of the part that makes them, part by part."""
        return (negative for part in self.parts for negative in part.admitted(case, seed))

    admitted = negatives


def share_of(share: float, n: int) -> int:
    """`share` of `n`, rounded half up, at least 1."""
    return max(1, math.floor(share * n + 0.5))


def letters(text: str) -> str:
    """`text` without blanks and case; texts with equal letters count as the same."""
    return "".join(text.split()).casefold()
