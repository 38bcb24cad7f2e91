"""Masks known ids in text where they occur as whole words."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from ssrem.privacy.masks import USER

SHORTEST, SHORTEST_NUMBER = 3, 6
"""Minimum length of an id, and of a numeric id, that is masked; shorter ones are likely ordinary words or numbers."""

_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")
_PLACEHOLDERS = {"email", "user", "phone"}


def is_telling(id: str) -> bool:
    """Whether the id identifies its bearer wherever it occurs as a word, unlike an ordinary word or number."""
    core = _EDGES.sub("", id)
    return (
        len(core) >= (SHORTEST_NUMBER if core.isdecimal() else SHORTEST) and core.lower() not in _PLACEHOLDERS
    )


class Mentions:
    """Finds ids in text. An id of letters only matches as written, capitalised or in capitals (`will` is a name and a
    word), any other regardless of case. Time is linear in the text, independent of the number of ids."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        """First word of an id, in lower case → the ids that begin with it, longest first."""
        for id in sorted({_EDGES.sub("", id) for id in ids if is_telling(id)}, key=len, reverse=True):
            first = _WORD.match(id)
            assert first is not None  # the edges are cut off, so an id begins with a word
            self._by_word.setdefault(first[0].lower(), []).append(id)

    def mask(self, text: str) -> str:
        """The text with every mention replaced."""
        if self._by_word.keys().isdisjoint([word.lower() for word in _WORD.findall(text)]):
            return text
        pieces, done = [], 0
        for word in _WORD.finditer(text):
            if word.start() < done:
                continue
            for id in self._by_word.get(word[0].lower(), ()):
                stop = word.start() + len(id)
                if not _WORD.match(text, stop) and _same(id, text[word.start() : stop]):
                    pieces += [text[done : word.start()], USER]
                    done = stop
                    break
        return "".join([*pieces, text[done:]]) if pieces else text

    def mask_all(self, texts: pa.Array) -> pa.Array:
        """The texts with every mention replaced; null stays null."""
        if not self._by_word:
            return texts
        masked = [None if text is None else self.mask(text) for text in texts.to_pylist()]
        return pa.array(masked, pa.string())


def _same(id: str, written: str) -> bool:
    if id.isalpha():
        return written in (id, id.capitalize(), id.upper())
    return written.lower() == id.lower()
