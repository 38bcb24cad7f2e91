"""Fluency and specificity, from counts of words and of neighbouring words in chitchat."""

from __future__ import annotations

import itertools
import json
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
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.files import read_json, read_tensors, write_tensors
from ssrem.samples import Sample
from ssrem.tokenize import TOKENIZER_VERSION, words

FOLDER = PACKAGED / "word-counts"
"""Of the default corpus's training split; `python -m benchmarks.blend counts` makes it."""
# Words, and pairs of neighbours, that occur less often are left out.
_FEWEST = 2
# A word of these two characters stands for the start and the end of a turn; no word contains a blank.
_EDGE = " "
_CARD, _TENSORS = "card.json", "counts.safetensors"


@dataclass(frozen=True)
class WordCounts:
    """Counts in a corpus. texts: how many turns it has. occurrences: word → how often it occurs, edges of turns among
    them. turns: word → in how many turns. pairs: neighbouring words → how often, the edges included."""

    texts: int
    occurrences: Mapping[str, int]
    turns: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    digest: str = ""

    @cached_property
    def total(self) -> int:
        """How many words the corpus has, with one edge a turn."""
        return sum(self.occurrences.values())

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Of these turns."""
        number, occurrences, turns, pairs = 0, Counter[str](), Counter[str](), Counter[tuple[str, str]]()
        for text in texts:
            chain = _chain(text)
            number += 1
            occurrences.update(chain[1:])
            turns.update(set(chain[1:-1]))
            pairs.update(itertools.pairwise(chain))
        frequent = {word: count for word, count in occurrences.items() if count >= _FEWEST}
        return cls(
            number,
            frequent,
            {word: turns[word] for word in frequent},
            {pair: n for pair, n in pairs.items() if n >= _FEWEST and set(pair) <= frequent.keys()},
        )

    def save(self, folder: Path, corpus: str) -> None:
        """Write it into `folder`; corpus: what was counted, for the card."""
        folder.mkdir(parents=True, exist_ok=True)
        order = sorted(self.occurrences, key=lambda word: (-self.occurrences[word], word))
        row = {word: at for at, word in enumerate(order)}
        pairs = np.array(sorted((row[left], row[right], n) for (left, right), n in self.pairs.items()))
        tensors: dict[str, NDArray[Any]] = {
            "words": np.frombuffer("\n".join(order).encode(), dtype=np.uint8),
            "occurrences": np.array([self.occurrences[word] for word in order], dtype=np.int32),
            "turns": np.array([self.turns[word] for word in order], dtype=np.int32),
            "pairs": pairs.reshape(-1, 3).astype(np.int32),
        }
        digest = write_tensors(folder / _TENSORS, tensors)
        card = {"corpus": corpus, "texts": self.texts, "sha256": digest, "tokenizer": TOKENIZER_VERSION}
        (folder / _CARD).write_text(json.dumps(card, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote; EvaluatorError if it is missing or damaged."""
        card = read_json(folder / _CARD, ("texts", "sha256"))
        tensors = read_tensors(folder / _TENSORS, card["sha256"], ("words", "occurrences", "turns", "pairs"))
        order = bytes(tensors["words"]).decode().split("\n")
        return cls(
            card["texts"],
            dict(zip(order, tensors["occurrences"].tolist(), strict=True)),
            dict(zip(order, tensors["turns"].tolist(), strict=True)),
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

    def rarity(self, text: str) -> float:
        """Mean inverse document frequency of the words, in [0, 1]: 0 if all turns have them, 1 if none has."""
        tokens = words(text)
        if not tokens:
            return 0.0
        frequencies = np.array([self.turns.get(word, 0) for word in tokens])
        return float(np.mean(1 - np.log1p(frequencies) / np.log1p(self.texts)))


@lru_cache(maxsize=1)
def packaged_counts() -> WordCounts:
    """Those that come with the package, read once."""
    return WordCounts.load(FOLDER)


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

    def values(self, samples: Sequence[Sample]) -> Scored:
        return Scored(np.array([packaged_counts().association(sample.response) for sample in samples]))


class Specificity(Metric):
    """How rare the response's words are in chitchat: their mean inverse document frequency, from 0 to 1.

    A generic response scores low. The mean does not depend on the length. Turns are the documents.
    """

    name: ClassVar[str] = "specificity"
    needs: ClassVar[frozenset[str]] = frozenset()
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "See et al. 2019 (normalised inverse document frequency)"

    @property
    def engine(self) -> str:
        return f"words:{TOKENIZER_VERSION}|counts:{packaged_counts().digest}"

    def values(self, samples: Sequence[Sample]) -> Scored:
        return Scored(np.array([packaged_counts().rarity(sample.response) for sample in samples]))


def _chain(text: str) -> list[str]:
    """The words of a turn between its edges."""
    return [_EDGE, *words(text), _EDGE]
