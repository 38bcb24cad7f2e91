"""Inputs of the bilinear evaluators: their settings, and the vectors of contexts and candidate responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ssrem.encoders import Encoder
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.samples import Candidates, Rows
from ssrem.settings import LARGEST, Count, Natural, Positive, Seed, Share

COPY_FROM, COPY_COST = 0.7, 1.0
"""The cosine with a turn of the context above which a response counts as partly copied, and the cost of a full copy."""


class FitSettings(EvaluatorSettings):
    """Settings that all bilinear evaluators share."""

    context_turns: Count = 3
    """how many of the last turns V(c) averages"""
    epochs: Count = 2
    batch_size: Count = 512
    learning_rate: Positive = 0.001
    """for M and, where it learns, V; the weights of the turns and the temperature learn ten times as fast"""
    patience: Count = 1
    """epochs without a lower validation loss before training stops"""
    seed: Seed = 0
    reference: Literal["sms", "embedding-average"] = "sms"
    """g: sentence mover's similarity, or the cosine of the mean vectors"""


class PaperSettings(FitSettings):
    """Settings of `ssrem-paper` and `rsrem`."""

    epochs: Count = 30
    batch_size: Count = 1024
    learning_rate: Positive = 0.005
    weight_decay: float = Field(0.0, ge=0, le=1e9)
    patience: Count = 3
    init: Literal["zero", "identity", "normal"] = "zero"
    """M at the start: zeros, the identity / d, or N(0, 1) as in the authors' code"""
    logits: Literal["raw", "tanh"] = "raw"
    """what the softmax takes: cᵀMr as the authors' code does, or tanh of it as eq. (4) has it"""
    loss: Literal["softmax", "ranking"] = "softmax"
    """softmax: the true response against all negatives; ranking: the order GT > SC > SP > SS > Rand"""


class SSREMSettings(FitSettings):
    """Settings of `ssrem`."""

    min_count: Count = 5
    """rows of tokens that occur less often in the training split stay as they are"""
    share: Share = 0.6
    """after training, the table and M are set to this share of the way from their start to what was learned, because
    learning from one corpus moves them away from what helps with others"""


class AdapterSettings(FitSettings):
    """Settings of `ssrem-minilm`."""

    epochs: Count = 8
    batch_size: Count = 256
    learning_rate: Positive = 0.0005
    patience: Count = 8
    reference: Literal["sms", "embedding-average"] = "embedding-average"
    rank: Count = 16
    """rank of the matrix that an adapter adds to a weight matrix"""
    freeze: Natural = 3
    """number of lowest layers that get no adapters"""
    max_tokens: int = Field(48, ge=3, le=LARGEST)
    """tokens of a text that are read in training; scoring reads as much as the encoder does"""
    responses: Count = 25_600
    """responses of the training split that an epoch learns from; the next epoch takes those that follow"""
    valid_responses: Count = 1_024
    """responses of the validation split, drawn once, that choose the epoch and how far the weights go back"""
    keep: Share = 0.9
    """after training, the weights go back towards their start while this share of the gain on validation remains"""
    bf16: Literal["auto", "off"] = "auto"
    """auto: mixed precision in training if the processor or GPU has bfloat16; off: float32"""


class BaseSettings(AdapterSettings):
    """Settings of `ssrem-base`."""

    epochs: Count = 5
    patience: Count = 5
    freeze: Natural = 9


@dataclass(frozen=True)
class Cases:
    """Contexts and candidate responses of n cases, as rows of one table that holds the vector of each text once.

    vectors: float16 (m, d), one a text; encoders give values that float16 holds exactly. turns (n, t): rows of the last
    turns of each context, newest first. candidates (n, k): rows of the candidates. -1: no such turn or candidate.
    """

    vectors: NDArray[np.float16]
    turns: Rows
    candidates: Rows

    @classmethod
    def of(cls, candidates: Candidates, rows: Rows, wanted: Rows, turns: int, encoder: Encoder) -> Cases:
        """The cases of the responses at `rows`. wanted: their candidates (n, k), as rows of `candidates.texts`."""
        vectors = encoder.encode(candidates.texts).astype(np.float16)
        return cls(vectors, last_turns(candidates, turns)[rows], wanted)

    def part(self, rows: Rows) -> Cases:
        """The cases at `rows`, over the same vectors."""
        return Cases(self.vectors, self.turns[rows], self.candidates[rows])

    def __len__(self) -> int:
        return len(self.turns)

    def gathered(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Vectors of the turns (n, t, d), which turns have a known word (n, t), vectors of the candidates (n, k, d).

        The vectors of turns that are missing or have no known word are zero, those of missing candidates arbitrary.
        """
        turns = self.vectors[np.maximum(self.turns, 0)].astype(np.float32)
        known = (self.turns >= 0) & turns.any(axis=-1)
        turns *= known[:, :, None]
        return turns, known, self.vectors[np.maximum(self.candidates, 0)].astype(np.float32)


def last_turns(candidates: Candidates, turns: int) -> Rows:
    """Rows of the last `turns` turns of each context (n, turns), newest first; -1 where it has fewer turns."""
    back = candidates.context_stop[:, None] - np.arange(1, turns + 1)
    rows: Rows = np.where(back >= candidates.context_start[:, None], back, -1)
    return rows


def mean_turn(turns: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """V(c) of the paper's form (n, d): mean vector of the turns that have a known word; zero if none has one."""
    counts = np.maximum(known.sum(axis=1), 1).astype(np.float32)
    mean: NDArray[np.float32] = turns.sum(axis=1) / counts[:, None]
    return mean
