"""Settings of SSREM, of its form in the paper and of RSREM."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.evaluators.similarity import METRICS

COPY_FROM, COPY_COST = 0.7, 1.0
"""From which cosine with a turn of the context a response counts as copied, in part, and what a whole copy loses."""
RUN = 16
"""Responses that follow each other and stay together in a batch: a turn in the contexts of several is encoded once."""


@dataclass(frozen=True)
class FitConfig(Config):
    """Settings that all bilinear evaluators share; every one is kept with the model.

    context_turns: how many of the last turns V(c) averages. learning_rate: of M and, where it learns, of V, with ten
    times as much for the weights of the turns and the temperature. patience: epochs without a lower validation loss
    before training stops. reference: g, 'sms' | 'embedding-average'.
    """

    context_turns: int = 3
    epochs: int = 2
    batch_size: int = 512
    learning_rate: float = 0.001
    patience: int = 1
    seed: int = 0
    reference: str = "sms"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(reference=tuple(METRICS))
        self.at_least(1, "context_turns", "epochs", "batch_size", "patience")
        self.above_zero("learning_rate")
        self.at_least(0, "seed")


@dataclass(frozen=True)
class BilinearConfig(FitConfig):
    """Settings of a fit of ssrem-paper or rsrem, besides those of FitConfig.

    logits: what the softmax takes, 'raw' cᵀMr as the authors' code does, or 'tanh' of it as eq. (4) has it.
    loss: 'softmax', the true response against all negatives, or 'ranking', the order GT > SC > SP > SS > Rand.
    init: M at the start: 'zero', 'identity' (/ d), or 'normal', N(0, 1) as in the authors' code.
    """

    epochs: int = 30
    batch_size: int = 1024
    learning_rate: float = 0.005
    weight_decay: float = 0.0
    patience: int = 3
    init: str = "zero"
    logits: str = "raw"
    loss: str = "softmax"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(init=("zero", "identity", "normal"), logits=("raw", "tanh"), loss=("softmax", "ranking"))
        self.at_least(0, "weight_decay")


@dataclass(frozen=True)
class TableConfig(FitConfig):
    """Settings of a fit of ssrem, besides those of FitConfig.

    min_count: rows of tokens that occur less often in the training split stay as they are. share: how far from the
    start towards what was learned the table and M go in the end; learning from one corpus moves them away from what
    helps with others.
    """

    min_count: int = 5
    share: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "min_count")
        self.is_share("share")


@dataclass(frozen=True)
class AdapterConfig(FitConfig):
    """Settings of a fit of ssrem-minilm, besides those of FitConfig.

    rank: of what is added to a matrix. freeze: number of lowest layers that get no adapters. max_tokens: of a text,
    while it learns; scoring reads as much as the encoder does. responses: of the training split, that an epoch learns
    from; the next epoch takes those that follow. valid_responses: that choose the epoch and the share, drawn once.
    keep: after training, the weights go back towards their start as long as this share of the gain on validation
    remains, see `chosen_share`. bf16: 'auto': mixed precision in training if the processor or GPU has bfloat16; 'off':
    float32.
    """

    epochs: int = 8
    batch_size: int = 256
    learning_rate: float = 0.0005
    patience: int = 8
    reference: str = "embedding-average"
    rank: int = 16
    freeze: int = 3
    max_tokens: int = 48
    responses: int = 25_600
    valid_responses: int = 1_024
    keep: float = 0.9
    bf16: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(bf16=("auto", "off"))
        self.at_least(1, "rank", "responses", "valid_responses")
        self.at_least(0, "freeze")
        self.at_least(3, "max_tokens")
        self.is_share("keep")
