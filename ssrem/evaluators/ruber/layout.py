"""Lays out contexts and responses as RUBER reads them: stretches of one sequence of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.word_sequences import Stretches, Words, first_words
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.samples import Candidates, Encode, Rows, Sample


@dataclass(frozen=True)
class Laid:
    """Words, and the contexts and responses as stretches of them."""

    words: Words
    contexts: Stretches
    responses: Stretches

    def known(self, contexts: Rows, responses: Rows) -> NDArray[np.bool_]:
        """Whether context and response of each pair have a known word, bool (n,)."""
        return np.asarray((self.contexts.lengths[contexts] > 0) & (self.responses.lengths[responses] > 0))


def lay_candidates(
    candidates: Candidates, rows: Rows, wanted: Rows, encode: Encode, config: RuberConfig
) -> Laid:
    """Contexts of `rows`, in order, and all texts as responses; empty if not in `wanted` (any shape, -1: none)."""
    start, stop = candidates.context_start[rows], candidates.context_stop[rows]
    start = np.maximum(start, stop - config.context_turns)
    needed = np.zeros(len(candidates.texts), dtype=bool)
    needed[wanted[wanted >= 0]] = True
    for back in range(1, config.context_turns + 1):
        needed[(stop - back)[stop - back >= start]] = True
    words = Words.of(candidates.texts, encode, needed)
    return Laid(
        words, _contexts(words, start, stop, config), first_words(words, len(needed), config.response_words)
    )


def lay_samples(
    samples: Sequence[Sample], encode: Encode, config: RuberConfig
) -> tuple[Laid, NDArray[np.int64]]:
    """Distinct contexts and responses, and each sample's context and response among them, int64 (n, 2)."""
    responses = {text: row for row, text in enumerate(dict.fromkeys(sample.response for sample in samples))}
    turns = [sample.context[-config.context_turns :] for sample in samples]
    contexts = {context: row for row, context in enumerate(dict.fromkeys(turns))}
    texts = [*responses, *(turn for context in contexts for turn in context)]
    edges = len(responses) + np.cumsum([0, *(len(context) for context in contexts)])
    words = Words.of(texts, encode)
    laid = Laid(
        words,
        _contexts(words, edges[:-1], edges[1:], config),
        first_words(words, len(responses), config.response_words),
    )
    pairs = [
        (contexts[turn], responses[sample.response]) for turn, sample in zip(turns, samples, strict=True)
    ]
    return laid, np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _contexts(words: Words, start: Rows, stop: Rows, config: RuberConfig) -> Stretches:
    first, last = words.ends[start], words.ends[stop]
    begin = np.maximum(first, last - config.context_words)
    return Stretches(begin, last, begin > first)
