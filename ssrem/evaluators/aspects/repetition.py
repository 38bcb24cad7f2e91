"""Repetition: of words of the context, and of the speaker's own turn before.

A natural response repeats some words of its context and stays with its topic, so what counts is the excess: both
evaluators are 0 up to ALLOWED, which is half.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ssrem.encoders.hub import MINILM
from ssrem.evaluators.baselines.cosine import EncodedContext
from ssrem.evaluators.bilinear.similarity import row_cosines
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.samples import Floats, Sample
from ssrem.tokenize import TOKENIZER_VERSION, words

ALLOWED = 0.5


class Novelty(Metric):
    """Minus the share of the response's word bigrams that a turn of the context has too, as far as it is above half.

    A response of a single word counts as copied if a turn consists of that word. 0 is new, -0.5 is a copy.
    """

    name: ClassVar[str] = "novelty"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: share of novel bigrams as in See et al. 2017"

    @property
    def engine(self) -> str:
        return f"words:{TOKENIZER_VERSION}|allowed:{ALLOWED}"

    def values(self, samples: Sequence[Sample]) -> Scored:
        return Scored(_excess(np.array([_copied(sample) for sample in samples])))


class OwnTurn(EncodedContext):
    """Minus the cosine of the response with the speaker's own turn before, as far as it is above half.

    With two people in turn that is the turn before the last one; 0 where the context has no such turn. A low score
    means that the response says again what its speaker has just said, or answers it.
    """

    name: ClassVar[str] = "own-turn"
    range: ClassVar[tuple[float, float]] = (ALLOWED - 1, 0.0)
    source: ClassVar[str] = "ssrem: self-repetition as in See et al. 2019"
    defaults: ClassVar[Mapping[str, Any]] = {"encoder": MINILM}

    @property
    def engine(self) -> str:
        return f"{super().engine}|allowed:{ALLOWED}"

    def encoded_texts(self, samples: Sequence[Sample]) -> Iterator[str]:
        for sample in samples:
            if _has_own_turn(sample):
                yield from (sample.context[-2], sample.response)

    def values(self, samples: Sequence[Sample]) -> Scored:
        values, cut = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        at = [i for i, sample in enumerate(samples) if _has_own_turn(sample)]
        if at:
            texts = list(dict.fromkeys(self.encoded_texts(samples)))
            row = {text: position for position, text in enumerate(texts)}
            vectors, long = self._encode(texts), self.encoder.truncated(texts)
            own, response = np.array([(row[samples[i].context[-2]], row[samples[i].response]) for i in at]).T
            values[at] = _excess(row_cosines(vectors[own], vectors[response]))
            cut[at] = long[own] | long[response]
        return Scored(values, cut)


def _has_own_turn(sample: Sample) -> bool:
    """Whether the context has the turn before the last one."""
    return len(sample.context) > 1 and bool(sample.context[-2].strip())


def _excess(share: Floats) -> Floats:
    """Minus what exceeds ALLOWED; 0 below."""
    excess: Floats = np.minimum(ALLOWED - share, 0.0)
    return excess


def _copied(sample: Sample) -> float:
    """The share of the response's bigrams that one of the turns has too."""
    response, turns = words(sample.response), [words(turn) for turn in sample.context]
    if len(response) < 2:
        return float(response in turns) if response else 0.0
    seen = {pair for turn in turns for pair in itertools.pairwise(turn)}
    return float(np.mean([pair in seen for pair in itertools.pairwise(response)]))
