"""Settings of SSREM and RSREM."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.evaluators.bilinear.similarity import METRICS


@dataclass(frozen=True)
class BilinearConfig(Config):
    """Settings of a fit; every one is kept with the model.

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
