"""An attack that replaces words by their nearest neighbours in a table of word vectors."""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np

from ssrem.encoders.static.word_average import WordAverage
from ssrem.samples import Sample
from ssrem.studies.attacks import Attack

FREQUENT = 40_000
"""Replacements are among this many first words of the table, which is ordered by frequency."""
LEAST = 0.75
"""Cosine below which a word is not replaced: few words that are further apart can replace each other."""
FUNCTION_WORDS = 200
"""So many of the most frequent words are not replaced: they hold a sentence together."""

_WORD = re.compile(r"[^\W\d_]+")


def neighbours(table: WordAverage) -> Attack:
    """Every word with a near neighbour is replaced by the nearest, in the same case.

    Near words are used in the same contexts: synonyms, and some opposites. An evaluator that this attack often fools
    scores little but the topic.
    """
    lengths = np.linalg.norm(table.vectors, axis=1, keepdims=True)
    unit = table.vectors / np.where(lengths == 0, 1, lengths)
    row = {word: at for at, word in enumerate(table.vocabulary[:FREQUENT])}

    @cache
    def nearest(word: str) -> str | None:
        at = row.get(word)
        if at is None or at < FUNCTION_WORDS:
            return None
        cosines = unit[:FREQUENT] @ unit[at]
        # Not the word itself, nor a form of it with more or fewer letters at its end.
        for other in np.argsort(-cosines)[:10]:
            near = table.vocabulary[other]
            if cosines[other] < LEAST:
                return None
            if other >= FUNCTION_WORDS and _WORD.fullmatch(near) and not _one_of_another(word, near):
                return str(near)
        return None

    def replaced(match: re.Match[str]) -> str:
        word = match.group()
        other = nearest(word.lower())
        if other is None:
            return word
        return other.capitalize() if word[0].isupper() else other

    def attack(sample: Sample, _: random.Random) -> str | None:
        return _WORD.sub(replaced, sample.response)

    return attack


def _one_of_another(word: str, other: str) -> bool:
    return word.startswith(other) or other.startswith(word)
