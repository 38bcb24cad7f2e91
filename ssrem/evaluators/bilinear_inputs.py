"""What the bilinear evaluators start from: their settings, and contexts and candidate responses as vectors."""

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
"""From which cosine with a turn of the context a response counts as copied, in part, and what a whole copy loses."""


class FitSettings(EvaluatorSettings):
    """Settings that all of them share."""

    context_turns: Count = 3
    """how many of the last turns V(c) averages"""
    epochs: Count = 2
    batch_size: Count = 512
    learning_rate: Positive = 0.001
    """of M and, where it learns, of V; ten times as much for the weights of the turns and the temperature"""
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
    """how far from the start towards what was learned the table and M go in the end; learning from one corpus moves
    them away from what helps with others"""


class AdapterSettings(FitSettings):
    """Settings of `ssrem-minilm`."""

    epochs: Count = 8
    batch_size: Count = 256
    learning_rate: Positive = 0.0005
    patience: Count = 8
    reference: Literal["sms", "embedding-average"] = "embedding-average"
    rank: Count = 16
    """of what is added to a matrix"""
    freeze: Natural = 3
    """number of lowest layers that get no adapters"""
    max_tokens: int = Field(48, ge=3, le=LARGEST)
    """of a text, while it learns; scoring reads as much as the encoder does"""
    responses: Count = 25_600
    """of the training split, that an epoch learns from; the next epoch takes those that follow"""
    valid_responses: Count = 1_024
    """that choose the epoch and the share, drawn once"""
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
    """Contexts and candidate responses as rows of one table of vectors: held once, gathered some at a time.

    vectors: float16 (m, d), one a text; encoders give values that float16 holds exactly. turns (n, t): the last turns
    of each context, newest first. candidates (n, k). -1 stands for a missing turn or candidate.
    """

    vectors: NDArray[np.float16]
    turns: Rows
    candidates: Rows

    @classmethod
    def of(cls, candidates: Candidates, rows: Rows, wanted: Rows, turns: int, encoder: Encoder) -> Cases:
        """Of the responses at `rows`, with the candidates `wanted` (n, k)."""
        vectors = encoder.encode(candidates.texts).astype(np.float16)
        return cls(vectors, last_turns(candidates, turns)[rows], wanted)

    def part(self, rows: Rows) -> Cases:
        """Of these responses."""
        return Cases(self.vectors, self.turns[rows], self.candidates[rows])

    def __len__(self) -> int:
        return len(self.turns)

    def gathered(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Vectors of the turns (n, t, d), zero for those that are missing or have no known word; which do not lack
        either (n, t); and vectors of the candidates (n, k, d)."""
        turns = self.vectors[np.maximum(self.turns, 0)].astype(np.float32)
        known = (self.turns >= 0) & turns.any(axis=-1)
        turns *= known[:, :, None]
        return turns, known, self.vectors[np.maximum(self.candidates, 0)].astype(np.float32)


def last_turns(candidates: Candidates, turns: int) -> Rows:
    """Rows of the last `turns` turns of each context, newest first (n, turns); -1 before its start."""
    back = candidates.context_stop[:, None] - np.arange(1, turns + 1)
    rows: Rows = np.where(back >= candidates.context_start[:, None], back, -1)
    return rows


def mean_turn(turns: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """V(c) of the paper's form (n, d): the mean over the turns that have a known word; zero where none has."""
    counts = np.maximum(known.sum(axis=1), 1).astype(np.float32)
    mean: NDArray[np.float32] = turns.sum(axis=1) / counts[:, None]
    return mean
