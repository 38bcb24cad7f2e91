"""Settings of the fine-tuning of a masked language model."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.encoders.transformer import hub
from ssrem.errors import EvaluatorError


@dataclass(frozen=True)
class TiedHeadSettings(Config):
    """Settings of the fine-tuning.

    encoder: name or folder of a BERT encoder, or of a masked language model, which keeps its head.
    steps, batch_size: updates, and responses in each. freeze: number of lowest layers that do not learn, nor do the
    embeddings; 0: everything learns.

    learning_rate: of the encoder, head_learning_rate: of the new head; both rise over the first tenth of the steps and
    then fall to 0. masked: the share of tokens that are masked, at least one in each text. context_share: the share of
    responses that are read after their context, the last `context_turns` turns; the others are read alone, because
    mask-and-fill needs both. max_tokens: of a text; the context's oldest tokens are dropped first, then the response's
    last. held_out: responses of the valid split on which the loss is measured before and after.
    """

    encoder: str = hub.MINILM
    device: str | None = None
    steps: int = 5000
    batch_size: int = 32
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-3
    masked: float = 0.15
    context_share: float = 0.5
    context_turns: int = 5
    max_tokens: int = 128
    held_out: int = 256
    freeze: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "steps", "batch_size", "context_turns", "held_out")
        self.above_zero("learning_rate", "head_learning_rate")
        self.at_least(0, "seed", "freeze")
        self.at_least(8, "max_tokens")
        if not 0 < self.masked < 1 or not 0 <= self.context_share <= 1:
            raise EvaluatorError("masked must lie between 0 and 1, context_share from 0 to 1")
