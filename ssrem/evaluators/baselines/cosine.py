"""Similarity of a response to the last turns by an encoder without training: a baseline for trained evaluators."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ssrem import extras
from ssrem.encoders import Encoder, load_encoder
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores
from ssrem.evaluators.bilinear.similarity import row_cosines
from ssrem.evaluators.core.metric import Metric, Scored, check_text, check_whole
from ssrem.samples import Encode, Sample

JOINS = ("mean", "text")

SAMPLE = 60
"""Responses of a test split that are scored with a slow encoder, each with its negatives: with MiniLM four seconds
of one core; all of the default corpus would take a quarter of an hour."""


class EncodedContext(Metric):
    """A metric of context and response over an encoder's vectors. encoder: a spec for `load_encoder`."""

    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    batch_samples: ClassVar[int] = 16_384
    encoder: Encoder

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.encoder = load_encoder(self.settings["encoder"])
        self._encode: Encode = self.encoder.encode

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        check_text(cls.name, "encoder", chosen["encoder"])
        return chosen

    @property
    def engine(self) -> str:
        return self.encoder.signature

    def compute(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        metric = copy.copy(self)
        metric._encode = encode or self.encoder.encode
        return super(EncodedContext, metric).compute(samples)


class Cosine(EncodedContext):
    """Cosine of the vectors of the last turns and of the response.

    encoder: a spec for `load_encoder`. context_turns: how many of the last turns are read, 1 or more.
    join: 'text', the cosine with those turns joined to one text by a space, or 'mean', the mean of that and of
    the cosine with the last turn only. A response answers the last turn, but if that is "yes, I do", only the turn
    before shows the topic: the default, 'mean' of 2 turns, uses both, and was not tuned.

    Blank turns are skipped. The score is 0 if no turn is left, or the encoder knows nothing in a text. A sample is
    `truncated` if one of its texts is longer than the encoder reads; its end is left out.
    """

    name: ClassVar[str] = "cosine"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "a sentence encoder as it comes (Reimers and Gurevych 2019, section 3)"
    defaults: ClassVar[Mapping[str, Any]] = {"encoder": MINILM, "context_turns": 2, "join": "mean"}
    packages: ClassVar[tuple[str, ...]] = extras.MINILM

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.encoder.slow:
            self.test_sample = SAMPLE  # type: ignore[misc]

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        check_whole(cls.name, "context_turns", chosen["context_turns"])
        if chosen["join"] not in JOINS:
            raise EvaluatorError(f"{cls.name}: no join {chosen['join']!r}; one of {', '.join(JOINS)}")
        return chosen

    def encoded_texts(self, samples: Sequence[Sample]) -> Iterator[str]:
        for sample in samples:
            yield from (*self._queries(sample.context), sample.response)

    def values(self, samples: Sequence[Sample]) -> Scored:
        row: dict[str, int] = {}
        responses = [row.setdefault(sample.response, len(row)) for sample in samples]
        pairs = np.array(
            [
                (row.setdefault(query, len(row)), responses[position], position)
                for position, sample in enumerate(samples)
                for query in self._queries(sample.context)
            ],
            dtype=np.int64,
        ).reshape(-1, 3)
        query, response, position = pairs.T
        vectors = self._encode(list(row))
        cosines = np.clip(row_cosines(vectors[query], vectors[response]), -1, 1)
        totals = np.bincount(position, weights=cosines, minlength=len(samples))
        counts = np.bincount(position, minlength=len(samples))
        long = self.encoder.truncated(list(row))
        cut = long[responses]
        np.logical_or.at(cut, position, long[query])
        return Scored(totals / np.maximum(counts, 1), cut)

    def _queries(self, context: Sequence[str]) -> list[str]:
        """The texts to compare the response with; none if there is no turn."""
        turns = [turn for turn in context if turn.strip()][-self.settings["context_turns"] :]
        if not turns:
            return []
        joined = " ".join(turns)
        return [turns[-1], joined] if self.settings["join"] == "mean" else [joined]
