"""Splits texts into the words that word vectors are listed under, and into sentences."""

from __future__ import annotations

import re

# Part of every word encoder's signature; increase it whenever `words` splits texts differently.
TOKENIZER_VERSION = 1

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00b4": "'", "`": "'"})
_WORD = re.compile(r"n't\b|'(?:s|m|d|re|ve|ll)\b|[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def words(text: str) -> list[str]:
    """Lower-cased words of `text`, clitics split off as in the Penn Treebank and GloVe's vocabulary.

    "Don't you think it’s fine?" → do, n't, you, think, it, 's, fine. Punctuation is left out.
    """
    text = text.lower().translate(_QUOTES)
    if "n't" in text:
        text = text.replace("n't", " n't")
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """Sentences of `text`, split after ., ! or ? and at line ends; none is blank."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
