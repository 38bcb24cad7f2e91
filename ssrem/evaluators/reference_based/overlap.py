"""Scores by the words that a response shares with the reference: BLEU, ROUGE-L, METEOR.

Texts are split into lower-cased tokens, see `tokens`, and are never truncated; a text without tokens scores 0. None of
the three needs a download.
"""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib.metadata import version
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from rapidfuzz.distance import LCSseq

from ssrem.evaluators.metric import Metric, MetricScores
from ssrem.samples import Sample

# Part of the signatures; increase it whenever `tokens` splits texts differently.
TOKENS_VERSION = 1

# Scripts without spaces between words: kana, and CJK ideographs with their extensions and compatibility forms.
_SINGLE = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Accents and vowel signs, which `\w` does not match, so that words of Hindi or Thai would be split.
_MARKS = "".join(chr(at) for at in range(0x300, 0x10000) if unicodedata.category(chr(at)).startswith("M"))
_LETTER = rf"[^\W_{_SINGLE}]"
_TOKEN = re.compile(rf"[{_SINGLE}]|{_LETTER}+(?:[{_MARKS}]+{_LETTER}*)*|(?:[^\w\s]|_)+")


def tokens(text: str) -> list[str]:
    """Lower-cased words and runs of punctuation, in order; kana and ideographs one by one.

    "I'm fine..." → i, ', m, fine, ... whether or not blanks separate the punctuation. Accents are composed (NFC), so
    that both encodings of an accented letter give the same token.
    """
    return _TOKEN.findall(unicodedata.normalize("NFC", text.lower()))


class OverlapMetric(Metric):
    """A score of the response's and the reference's tokens."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    library: ClassVar[str]
    """The package that computes the score."""

    @property
    def engine(self) -> str:
        return f"{self.library}-{version(self.library)}|tokens:{TOKENS_VERSION}"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        cut = lru_cache(maxsize=256)(tokens)  # several responses often share a reference
        scores = [self._score(cut(sample.response), cut(sample.reference or "")) for sample in samples]
        return MetricScores(np.array(scores, dtype=np.float64))

    @abstractmethod
    def _score(self, response: list[str], reference: list[str]) -> float:
        """The score of one pair; both lists may be empty."""


def _highest_bleu(order: int) -> float:
    """The score of a perfect match of five tokens or more by smoothing 7, which takes the precision of 0-grams as 2."""
    smoothed = [2.0]
    for _ in range(order):
        smoothed.append((smoothed[-1] + 1 + 1) / 3)
    return float(prod(smoothed[1:]) ** (1 / order))


class _Bleu(OverlapMetric):
    """Sentence BLEU of n-grams up to `order`, equally weighted, with smoothing 7, by nltk.

    Smoothing 7 gives the i-th order without a match the small count log(length) / (5 · 2^i) (smoothing 4), then
    averages each order's precision with those of its neighbours (smoothing 5). The average raises a perfect match above
    1, so `range` ends above 1. `counted` is the number of orders whose precisions are computed, those beyond `order`
    with weight 0; after the last of them, nltk averages with the precision of 5-grams instead of the next order's.

    If a response equals its reference and is shorter than `order`, only the orders that it has count: 1 for one token.
    """

    library: ClassVar[str] = "nltk"
    source: ClassVar[str] = (
        "Papineni et al. 2002; smoothing 7 of Chen and Cherry 2014, section 3, as nltk has it"
    )
    order: ClassVar[int]
    counted: ClassVar[int]

    def __init_subclass__(cls, order: int, counted: int = 4) -> None:
        super().__init_subclass__()
        cls.name = f"bleu-{order}" if counted == 4 else f"bleu-{order}-of-{counted}"
        cls.order, cls.counted, cls.range = order, counted, (0.0, _highest_bleu(order))

    @property
    def engine(self) -> str:
        return f"{super().engine}|short:1"

    def _score(self, response: list[str], reference: list[str]) -> float:
        if set(response).isdisjoint(reference):
            return 0.0  # as by nltk, which would count the n-grams of every order first
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        order = min(self.order, len(response)) if response == reference else self.order
        counted = order if self.order == self.counted else self.counted
        weights = (1 / order,) * order + (0.0,) * (counted - order)
        return float(sentence_bleu([reference], response, weights, SmoothingFunction().method7))


class Bleu1(_Bleu, order=1):
    """BLEU of single tokens."""


class Bleu2(_Bleu, order=2):
    """BLEU of one and two tokens."""


class Bleu3(_Bleu, order=3):
    """BLEU of one to three tokens."""


class Bleu4(_Bleu, order=4):
    """BLEU of one to four tokens."""


class Bleu1Of1(_Bleu, order=1, counted=1):
    """BLEU-1 by nltk with the weights (1,), as published elsewhere."""


class Bleu2Of2(_Bleu, order=2, counted=2):
    """BLEU-2 by nltk with the weights (1/2, 1/2), as published elsewhere."""


class Bleu3Of3(_Bleu, order=3, counted=3):
    """BLEU-3 by nltk with the weights (1/3, 1/3, 1/3), as published elsewhere; for BLEU-4 both forms are the same."""


class RougeL(OverlapMetric):
    """F1 of the longest common subsequence of words; punctuation does not count, words are not stemmed.

    The subsequence is computed by rapidfuzz. The scores equal those of the package rouge-score for texts of ASCII
    letters and digits, the only characters that rouge-score reads.
    """

    name: ClassVar[str] = "rouge-l"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Lin 2004, section 3.1, with β = 1"
    library: ClassVar[str] = "rapidfuzz"

    def _score(self, response: list[str], reference: list[str]) -> float:
        # Numbers stand for the words, because rapidfuzz compares words by their hashes, which may collide.
        number: dict[str, int] = {}
        one, other = (
            [number.setdefault(token, len(number)) for token in text if token[0].isalnum()]
            for text in (response, reference)
        )
        return 2 * LCSseq.similarity(one, other) / max(len(one) + len(other), 1)


class Meteor(OverlapMetric):
    """METEOR with two stages, exact words and then Porter stems, by nltk (α = .9, β = 3, γ = .5).

    The third stage, synonyms, needs WordNet's data, which is not a package. It never runs, even if the data is
    installed, so that a score does not depend on the machine; the signature records it. The score of a perfect match
    of m words is 1 - γ / m³, which is below 1.
    """

    name: ClassVar[str] = "meteor"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Lavie and Agarwal 2007, exact and stem stages"
    library: ClassVar[str] = "nltk"

    @property
    def engine(self) -> str:
        return f"{super().engine}|stages:exact+stem"

    @cached_property
    def _parts(self) -> dict[str, Any]:
        """Arguments for nltk: its stemmer with a cache, and a stand-in for WordNet that has no synonyms."""
        from nltk.stem.porter import PorterStemmer

        stem = lru_cache(maxsize=20_000)(PorterStemmer().stem)
        return {"stemmer": SimpleNamespace(stem=stem), "wordnet": SimpleNamespace(synsets=lambda word: [])}

    def _score(self, response: list[str], reference: list[str]) -> float:
        from nltk.translate.meteor_score import single_meteor_score

        return float(single_meteor_score(reference, response, **self._parts))
