"""A baseline system: the true response to the most similar context, by BM25 (Robertson and Zaragoza 2009)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from ssrem.tokenize import words

NAME = "bm25"


class Retrieval:
    """Retrieves responses from a pool of context-response pairs (Lucene's BM25: k1 1.5, b 0.75)."""

    def __init__(self, contexts: Sequence[str], responses: Sequence[str]) -> None:
        """contexts, responses: the pairs of the pool; ValueError if there are none, or their numbers differ."""
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # by default it logs every step
        if not responses or len(contexts) != len(responses):
            raise ValueError(f"{len(contexts)} contexts and {len(responses)} responses are no pairs")
        self._responses = list(responses)
        self._index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        # bm25s needs a token in each document: a context without a word gets one that no other context has.
        tokens = [words(text) or ["\0"] for text in contexts]
        self._index.index(tokens, show_progress=False)

    def respond(self, context: str) -> str | None:
        """The response to the most similar context, the first of the pool if several are equally similar; None if no
        context shares a word with it."""
        known = [word for word in words(context) if word in self._index.vocab_dict]
        if not known:
            return None
        return self._responses[int(np.argmax(self._index.get_scores(known)))]
