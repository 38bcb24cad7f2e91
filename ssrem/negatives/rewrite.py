"""Writes a text with some tokens replaced, keeping case and blanks natural so that only the words differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CLOSING = frozenset(".,?!;:)]}%\u2026'\u2019")
_SENTENCE_END = frozenset(".?!\u2026\n")


@dataclass(frozen=True)
class Written:
    """A token as it is written. starts_word: whether it starts a word, not continues the token before it."""

    text: str
    starts_word: bool


def rewrite(
    text: str,
    spans: Sequence[tuple[int, int]],
    starts_word: Sequence[bool],
    replacements: Mapping[int, Written],
    *,
    capitals: bool,
) -> str:
    """`text` with the tokens at `replacements` replaced; everything else, including case and blanks, is unchanged.

    spans, starts_word: of every token in order. A continuation is joined to the token before it, a word is separated
    from its neighbours, and a closing mark loses the blank before it. capitals: whether the replacement of a token
    that opened the text or a sentence with a capital gets a capital too.
    """
    parts: list[str] = []
    end = 0
    for i, (start, stop) in enumerate(spans):
        gap, new = text[end:start], replacements.get(i)
        word = text[start:stop] if new is None else new.text
        starts = starts_word[i] if new is None else new.starts_word
        if new is not None and capitals and starts and text[start].isupper() and _opens(text, start):
            word = word[:1].upper() + word[1:]
        if i > 0 and (new is not None or i - 1 in replacements):
            gap = _gap(gap, "".join(parts)[-1:], word[:1], continues=not starts, new=new is not None)
        parts += [gap, word]
        end = stop
    return "".join(parts) + text[end:]


def _gap(gap: str, left: str, right: str, *, continues: bool, new: bool) -> str:
    """The text between two neighbours of which at least one was replaced. new: whether the right one was."""
    if new and (continues or right in _CLOSING):
        return ""
    if not gap and not continues and left.isalnum() and right.isalnum():
        return " "
    return gap


def _opens(text: str, start: int) -> bool:
    """Whether the text or a sentence begins at `start`."""
    before = text[:start].rstrip(" \t\"'\u201c\u2018(")
    return not before or before[-1] in _SENTENCE_END
