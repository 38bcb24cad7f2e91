"""Metrics that each recognise one fault of a response: copied words, a repeated turn, or words in a wrong order.

A natural response repeats some words of its context and stays with its topic, so only an excess of repetition lowers
the score: `novelty` and `own-turn` are 0 up to ALLOWED, which is half, `repetition` is 0 up to .8.
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
# Words and pairs of neighbouring words that occur less often than this are left out.
_FEWEST = 2
# Stands for the start and the end of a turn, as a word beside the others; no other word contains a blank.
_EDGE = " "
_CARD, _TENSORS = "card.json", "counts.safetensors"


class Novelty(Metric):
    """Minus the share of the response's word bigrams that a turn of the context has too, as far as it is above half.

    A response of a single word counts as copied if a turn consists of that word. 0 is the score of a response with at
    most half of its bigrams copied, -0.5 that of a copy.
    """

    name: ClassVar[str] = "novelty"
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: share of novel bigrams as in See et al. 2017"
    engine = f"words:{TOKENIZER_VERSION}|allowed:{ALLOWED}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.minimum(ALLOWED - np.array([_copied(sample) for sample in samples]), 0.0))


class OwnTurn(EncodedMetric):
    """Minus the cosine of the response with the previous turn of its own speaker, as far as it is above half.

    Two people are assumed to take turns, so that this is the turn before the last one; the score is 0 where the context
    has no such turn. A low score means that the response says again what its speaker has just said, or answers it.
    """

    name: ClassVar[str] = "own-turn"
    allowed: ClassVar[float] = ALLOWED
    """The cosine up to which the score is 0."""
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: self-repetition as in See et al. 2019"

    @property
    def engine(self) -> str:
        return f"{super().engine}|allowed:{self.allowed:g}"

    def _compared(self, context: Sequence[str]) -> Sequence[str]:
        """The turns with which the response is compared; the one with the highest cosine counts."""
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

    A response on the same topic stays below .8; a copy or a paraphrase of a turn does not. Up to .8 the score is 0,
    because people punish closeness to the context only where it is repetition.
    """

    name: ClassVar[str] = "repetition"
    allowed: ClassVar[float] = 0.8
    range: ClassVar[tuple[float, float]] = (-0.2, 0.0)
    source: ClassVar[str] = "ssrem: repetition of the context as in See et al. 2019"

    def _compared(self, context: Sequence[str]) -> Sequence[str]:
        return context[-3:]


class Fluency(Metric):
    """How natural the order of words is: mean association of neighbouring words, with the start and end of the turn.

    It is the score SLOR under a model of word pairs: the log-probability of a sentence minus that of its single words,
    per word. So neither length nor rare words change it, but the order of the words does. The pairs are counted in
    chitchat: texts of other kinds or languages get lower scores, and unknown words count as neutral. So does a response
    without words, such as an emoji: its score is 0.
    """

    name: ClassVar[str] = "fluency"
    needs: ClassVar[frozenset[str]] = frozenset()
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    source: ClassVar[str] = "SLOR (Pauls and Klein 2012; Kann et al. 2018) of word pairs"

    @property
    def engine(self) -> str:
        return f"words:{TOKENIZER_VERSION}|wordless:0|counts:{packaged_counts().digest}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.array([packaged_counts().association(sample.response) for sample in samples]))


@dataclass(frozen=True)
class WordCounts:
    """Counts of words in a corpus. texts: number of turns. occurrences: word → how often it occurs; the edge of a turn
    counts as a word, once a turn. pairs: (left, right) → how often these words, or a word and an edge, are neighbours.
    digest: start of the sha256 of the saved counts, for signatures."""

    texts: int
    occurrences: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    digest: str = ""

    @cached_property
    def total(self) -> int:
        """Sum of `occurrences`: the words of the corpus without the rare ones, and one edge a turn."""
        return sum(self.occurrences.values())

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Count the words and pairs of these turns, without those that occur less than `_FEWEST` times."""
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
        """Write the counts into `folder`. corpus: what was counted, a text for card.json."""
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
        """The counts that `save` wrote; EvaluatorError if they are missing or damaged."""
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
        """Mean over the text's neighbouring words, edges included, of log((observed + 1) / (expected + 1)); 0 if it has
        no words.

        observed: how often the two are neighbours in the corpus. expected: how often, if its words were shuffled."""
        if len(chain := _chain(text)) == 2:
            return 0.0
        logs = [
            np.log1p(self.pairs.get(pair, 0))
            - np.log1p(self.occurrences.get(pair[0], 0) * self.occurrences.get(pair[1], 0) / self.total)
            for pair in itertools.pairwise(chain)
        ]
        return float(np.mean(logs))


@lru_cache(maxsize=1)
def packaged_counts() -> WordCounts:
    """The counts that come with the package; they are read once."""
    return WordCounts.load(COUNTS)


def _copied(sample: Sample) -> float:
    """Share of the response's bigrams that some turn has too; a response of one word is compared with whole turns."""
    response, turns = words(sample.response), [words(turn) for turn in sample.context]
    if len(response) < 2:
        return float(response in turns) if response else 0.0
    seen = {pair for turn in turns for pair in itertools.pairwise(turn)}
    return float(np.mean([pair in seen for pair in itertools.pairwise(response)]))


def _chain(text: str) -> list[str]:
    """The words of a turn with an edge before and after them."""
    return [_EDGE, *words(text), _EDGE]
