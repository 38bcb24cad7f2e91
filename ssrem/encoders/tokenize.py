"""Texts to the words under which word vectors are kept."""

from __future__ import annotations

import re

# Raised whenever `words` cuts texts differently: it is part of every word encoder's signature.
TOKENIZER_VERSION = 1

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00b4": "'", "`": "'"})
_WORD = re.compile(r"n't\b|'(?:s|m|d|re|ve|ll)\b|[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def words(text: str) -> list[str]:
    """Lower-cased words of `text`, clitics cut as in the Penn Treebank and GloVe's vocabulary.

    "Don't you think it’s fine?" → do, n't, you, think, it, 's, fine. Punctuation is left out.
    """
    text = text.lower().translate(_QUOTES)
    if "n't" in text:
        text = text.replace("n't", " n't")
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """Sentences of `text`, cut after ., ! or ? and at line ends; none is blank."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
