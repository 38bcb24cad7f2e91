"""A corpus whose answer is known, for evaluators that learn from words: a response repeats the topic of its context."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ssrem.encoders.words import WordAverage
from ssrem.samples import Candidates, Rows, Sample

Draw = Callable[[np.random.Generator, Rows], dict[str, Rows]]
"""Topics of responses (n,), to kind → rows (n, k) of negatives."""


def topical_encoder(topics: int) -> WordAverage:
    """Words a0… for contexts, b0… for responses, x0…x3 for chatter."""
    names = [f"{side}{topic}" for side in "ab" for topic in range(topics)] + [f"x{n}" for n in range(4)]
    vectors = np.random.default_rng(0).normal(size=(len(names), 10))
    return WordAverage("topics", names, vectors, weighting="uniform")


def topical_candidates(n: int, topics: int, negatives: Draw) -> Candidates:
    """Conversations 'xN aT', 'xN', 'bT xN…': the topic is said in the first turn; a fifth is not trained on."""
    generator = np.random.default_rng(1)
    drawn = generator.integers(0, topics, n)
    texts = []
    for topic in drawn:
        one, two, *more = generator.integers(0, 4, 2 + generator.integers(0, 3))
        texts += [f"x{one} a{topic}", f"x{two}", " ".join([f"b{topic}", *(f"x{word}" for word in more)])]
    response = np.arange(n) * 3 + 2
    split = (np.arange(n) % 10 >= 8).astype(np.uint8) + (np.arange(n) % 10 == 9).astype(np.uint8)
    return Candidates(texts, response, response - 2, response, negatives(generator, drawn), split)


def topical_samples(topics: int) -> list[Sample]:
    """A response of every topic to a context of every topic, with the true one for its reference."""
    return [
        Sample((f"x1 a{topic}", "x2")[: 1 + answer % 2], f"b{answer}" + " x0" * (topic % 3), f"b{topic} x3")
        for topic in range(topics)
        for answer in range(topics)
    ]
