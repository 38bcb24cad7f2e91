"""Settings of SSREM, of its form in the paper and of RSREM."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear.similarity import METRICS

COPY_FROM, COPY_COST = 0.7, 1.0
"""From which cosine with a turn of the context a response counts as copied, in part, and what a whole copy loses."""


@dataclass(frozen=True)
class BilinearConfig(Config):
    """Settings of a fit of ssrem-paper or rsrem; every one is kept with the model.

    context_turns: how many of the last turns V(c) averages.
    logits: what the softmax takes, 'raw' cᵀMr as the authors' code does, or 'tanh' of it as eq. (4) has it.
    loss: 'softmax', the true response against all negatives, or 'ranking', the order GT > SC > SP > SS > Rand.
    init: M at the start: 'zero', 'identity' (/ d), or 'normal', N(0, 1) as in the authors' code.
    reference: g, 'sms' | 'embedding-average'.
    """

    context_turns: int = 3
    epochs: int = 30
    batch_size: int = 1024
    learning_rate: float = 0.005
    weight_decay: float = 0.0
    patience: int = 3
    seed: int = 0
    init: str = "zero"
    logits: str = "raw"
    loss: str = "softmax"
    reference: str = "sms"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(init=("zero", "identity", "normal"), logits=("raw", "tanh"), reference=tuple(METRICS))
        self.one_of(loss=("softmax", "ranking"))
        self.at_least(1, "context_turns", "epochs", "batch_size", "patience")
        self.above_zero("learning_rate")
        self.at_least(0, "weight_decay", "seed")


@dataclass(frozen=True)
class TableConfig(Config):
    """Settings of a fit of ssrem; every one is kept with the model.

    context_turns: how many of the last turns V(c) averages. learning_rate: of the table and M; ten times as much for
    the weights of the turns and the temperature. min_count: rows of tokens that occur less often in the training split
    stay as they are. share: how far from the
    start towards what was learned the table and M go in the end; learning from one corpus moves them away from what
    helps with others. patience: epochs without a lower validation loss before training stops.
    reference: g, 'sms' | 'embedding-average'.
    """

    context_turns: int = 3
    epochs: int = 2
    batch_size: int = 512
    learning_rate: float = 0.001
    min_count: int = 5
    share: float = 0.6
    patience: int = 1
    seed: int = 0
    reference: str = "sms"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(reference=tuple(METRICS))
        self.at_least(1, "context_turns", "epochs", "batch_size", "min_count", "patience")
        self.above_zero("learning_rate", "share")
        self.at_least(0, "seed")
        if self.share > 1:
            raise EvaluatorError(f"share is {self.share}; expected at most 1")
