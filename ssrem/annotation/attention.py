"""Attention checks: responses whose fair score is known."""

from __future__ import annotations

from random import Random

INSTRUCTION = "This response checks that each one is read: please choose {}."
_LEAST_LETTERS = 12


def instructed(draw: Random, scale: int) -> tuple[str, tuple[int, int]]:
    """A response that asks for a score above the middle, so that always choosing a low one fails; and that score."""
    score = draw.randint((scale + 1) // 2 + 1, scale)
    return INSTRUCTION.format(score), (score, score)


def gibberish(draw: Random, text: str, scale: int) -> tuple[str, tuple[int, int]]:
    """A text of the same word lengths without a meaning; and the scores that it may get: the lower half, rounded down.

    Letters are drawn from those of the text, and from consonants where it has too few.
    """
    letters = [letter for letter in text.lower() if letter.isalpha()]
    letters += draw.choices("bdfgklmprtvz", k=max(0, _LEAST_LETTERS - len(letters)))
    draw.shuffle(letters)
    lengths = [len(word) for word in text.split()]
    said: list[str] = []
    at = 0
    while at < len(letters):
        size = lengths[len(said)] if len(said) < len(lengths) else 5
        said.append("".join(letters[at : at + size]))
        at += size
    return " ".join(said), (1, max(1, scale // 2))
