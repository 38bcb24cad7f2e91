"""Contexts whose true responses are short as often as long, since people's scores follow length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from itertools import zip_longest

from ssrem.annotation.items import Context
from ssrem.errors import AnnotationError

EDGES = (4, 8, 16)
"""Most words of the true response in each band of lengths but the last."""


def context_key(texts: Iterable[str]) -> str:
    """By which contexts are the same, however they are cut into turns and spaced."""
    return " ".join(" ".join(texts).split())


def length_balanced(
    candidates: Iterable[Context], count: int, *, within: Collection[str] | None = None
) -> list[Context]:
    """`count` contexts, each once, of each band of lengths as many as of another as far as there are any.

    candidates: in random order, for the first ones are taken. within: keys of the contexts that may be taken; None for
    all. AnnotationError where there are too few. The same candidates give the same list, of which any beginning is
    balanced, too.
    """
    bands: list[list[Context]] = [[] for _ in range(len(EDGES) + 1)]
    seen: set[str] = set()
    for context in candidates:
        key = context_key(context.texts)
        if key in seen or (within is not None and key not in within):
            continue
        seen.add(key)
        band = bands[bisect_left(EDGES, len(context.truth.split()))]
        if len(band) < count:
            band.append(context)
    found = [context for row in zip_longest(*bands) for context in row if context is not None]
    if len(found) < count:
        answered = " that every file of responses answers" if within is not None else ""
        raise AnnotationError(
            f"{count} contexts are needed, attention checks included, and there are {len(found)}{answered}; "
            "ask for fewer with --contexts"
        )
    return found[:count]
