"""An attack that replaces words by others that are used alike: the nearest in a table of word vectors."""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np

from ssrem.encoders.word_average import WordAverage
from ssrem.samples import Sample
from ssrem.studies.attacks import Attack

FREQUENT = 40_000
"""Words of the table, which lists the frequent ones first, that may be put in."""
LEAST = 0.75
"""Cosine below which a word stays: further away few words can stand for another."""
FUNCTION_WORDS = 200
"""The most frequent words hold a sentence together and stay."""

_WORD = re.compile(r"[^\W\d_]+")


def neighbours(table: WordAverage) -> Attack:
    """Every word that has a near one replaced by the nearest, in the same case.

    Near words are used alike: synonyms are, and so are some opposites. An evaluator that this attack fools mostly
    scores the topic alone.
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
        # Neither the word nor a form of it with more or fewer letters at its end.
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
