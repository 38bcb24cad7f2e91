"""Metrics that recognise one fault of a response each: words of its context, its speaker's own turn again, word order.

A natural response repeats some words of its context and stays with its topic, so what counts of repetition is the
excess: `novelty` and `own-turn` are 0 up to ALLOWED, which is half, `repetition` up to .8.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators import PACKAGED
from ssrem.evaluators.metric import EncodedMetric, Metric, MetricScores
from ssrem.evaluators.similarity import row_cosines
from ssrem.files import read_json, read_tensors, write_json, write_tensors
from ssrem.samples import Sample
from ssrem.tokenize import TOKENIZER_VERSION, words

ALLOWED = 0.5

COUNTS = PACKAGED / "word-counts"
"""Counts of words in the default corpus's training split; `python -m benchmarks.blend counts` makes it."""
# Words, and pairs of neighbours, that occur less often are left out.
_FEWEST = 2
# A word of this character stands for the start and the end of a turn; no word contains a blank.
_EDGE = " "
_CARD, _TENSORS = "card.json", "counts.safetensors"


class Novelty(Metric):
    """Minus the share of the response's word bigrams that a turn of the context has too, as far as it is above half.

    A response of a single word counts as copied if a turn consists of that word. 0 is new, -0.5 is a copy.
    """

    name: ClassVar[str] = "novelty"
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: share of novel bigrams as in See et al. 2017"
    engine = f"words:{TOKENIZER_VERSION}|allowed:{ALLOWED}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.minimum(ALLOWED - np.array([_copied(sample) for sample in samples]), 0.0))


class OwnTurn(EncodedMetric):
    """Minus the cosine of the response with the speaker's own turn before, as far as it is above half.

    With two people in turn that is the turn before the last one; 0 where the context has no such turn. A low score
    means that the response says again what its speaker has just said, or answers it.
    """

    name: ClassVar[str] = "own-turn"
    allowed: ClassVar[float] = ALLOWED
    """The cosine up to which nothing is lost."""
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: self-repetition as in See et al. 2019"

    @property
    def engine(self) -> str:
        return f"{super().engine}|allowed:{self.allowed:g}"

    def _compared(self, context: Sequence[str]) -> Sequence[str]:
        """The turns with which the response is compared; the nearest one counts."""
        return context[-2:-1]

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        row: dict[str, int] = {}
        pairs = [
            (at, row.setdefault(turn, len(row)), row.setdefault(sample.response, len(row)))
            for at, sample in enumerate(samples)
            for turn in self._compared(sample.context)
            if turn.strip()
        ]
        nearest, cut = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        if pairs:
            at, turn, response = np.array(pairs).T
            vectors, long = self.encoder.encode(list(row)), self.encoder.truncated(list(row))
            np.maximum.at(nearest, at, row_cosines(vectors[turn], vectors[response]))
            np.logical_or.at(cut, at, long[turn] | long[response])
        return MetricScores(np.minimum(self.allowed - nearest, 0.0), cut)


class Repetition(OwnTurn):
    """Minus the highest cosine of the response with one of the last three turns, as far as it is above .8.

    A response of the same topic stays below that; a copy or a paraphrase of a turn does not. Up to there nothing is
    lost, as people punish closeness to the context only where it is repetition.
    """

    name: ClassVar[str] = "repetition"
    allowed: ClassVar[float] = 0.8
    range: ClassVar[tuple[float, float]] = (-0.2, 0.0)
    source: ClassVar[str] = "ssrem: repetition of the context as in See et al. 2019"

    def _compared(self, context: Sequence[str]) -> Sequence[str]:
        return context[-3:]


class Fluency(Metric):
    """How well the words' order fits: the mean association of neighbouring words, start and end of a turn included.

    It is the score SLOR, the log-probability of a sentence less that of its words, per word, under a model of word
    pairs. So neither the length nor rare words count, and the same words in another order score differently. The pairs
    are counted in chitchat: texts of other kinds or languages get lower scores, and unknown words count as neutral.
    """

    name: ClassVar[str] = "fluency"
    needs: ClassVar[frozenset[str]] = frozenset()
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    source: ClassVar[str] = "SLOR (Pauls and Klein 2012; Kann et al. 2018) of word pairs"

    @property
    def engine(self) -> str:
        return f"words:{TOKENIZER_VERSION}|counts:{packaged_counts().digest}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.array([packaged_counts().association(sample.response) for sample in samples]))


@dataclass(frozen=True)
class WordCounts:
    """Counts in a corpus. texts: how many turns it has. occurrences: word → how often it occurs, edges of turns among
    them. pairs: neighbouring words → how often, the edges included."""

    texts: int
    occurrences: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    digest: str = ""

    @cached_property
    def total(self) -> int:
        """How many words the corpus has, with one edge a turn."""
        return sum(self.occurrences.values())

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Of these turns."""
        number, occurrences, pairs = 0, Counter[str](), Counter[tuple[str, str]]()
        for text in texts:
            chain = _chain(text)
            number += 1
            occurrences.update(chain[1:])
            pairs.update(itertools.pairwise(chain))
        frequent = {word: count for word, count in occurrences.items() if count >= _FEWEST}
        neighbours = {pair: n for pair, n in pairs.items() if n >= _FEWEST and set(pair) <= frequent.keys()}
        return cls(number, frequent, neighbours)

    def save(self, folder: Path, corpus: str) -> None:
        """Write it into `folder`; corpus: what was counted, for the card."""
        folder.mkdir(parents=True, exist_ok=True)
        order = sorted(self.occurrences, key=lambda word: (-self.occurrences[word], word))
        row = {word: at for at, word in enumerate(order)}
        pairs = np.array(sorted((row[left], row[right], n) for (left, right), n in self.pairs.items()))
        tensors: dict[str, NDArray[Any]] = {
            "words": np.frombuffer("\n".join(order).encode(), dtype=np.uint8),
            "occurrences": np.array([self.occurrences[word] for word in order], dtype=np.int32),
            "pairs": pairs.reshape(-1, 3).astype(np.int32),
        }
        digest = write_tensors(folder / _TENSORS, tensors)
        card = {"corpus": corpus, "texts": self.texts, "sha256": digest, "tokenizer": TOKENIZER_VERSION}
        write_json(folder / _CARD, card)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote; EvaluatorError if it is missing or damaged."""
        card = read_json(folder / _CARD, ("texts", "sha256"))
        tensors = read_tensors(folder / _TENSORS, card["sha256"], ("words", "occurrences", "pairs"))
        order = bytes(tensors["words"]).decode().split("\n")
        return cls(
            card["texts"],
            dict(zip(order, tensors["occurrences"].tolist(), strict=True)),
            {(order[left], order[right]): count for left, right, count in tensors["pairs"].tolist()},
            card["sha256"][:12],
        )

    def association(self, text: str) -> float:
        """Mean over neighbouring words, the edges included, of log((observed + 1) / (expected + 1)), where expected is
        how often they would stand side by side if words were in random order."""
        chain = _chain(text)
        logs = [
            np.log1p(self.pairs.get(pair, 0))
            - np.log1p(self.occurrences.get(pair[0], 0) * self.occurrences.get(pair[1], 0) / self.total)
            for pair in itertools.pairwise(chain)
        ]
        return float(np.mean(logs))


@lru_cache(maxsize=1)
def packaged_counts() -> WordCounts:
    """Those that come with the package, read once."""
    return WordCounts.load(COUNTS)


def _copied(sample: Sample) -> float:
    """The share of the response's bigrams that one of the turns has too."""
    response, turns = words(sample.response), [words(turn) for turn in sample.context]
    if len(response) < 2:
        return float(response in turns) if response else 0.0
    seen = {pair for turn in turns for pair in itertools.pairwise(turn)}
    return float(np.mean([pair in seen for pair in itertools.pairwise(response)]))


def _chain(text: str) -> list[str]:
    """The words of a turn between its edges."""
    return [_EDGE, *words(text), _EDGE]
