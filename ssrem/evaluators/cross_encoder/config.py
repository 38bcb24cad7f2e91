"""Settings of a cross-encoder."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError


@dataclass(frozen=True)
class CrossEncoderConfig(Config):
    """Settings of a cross-encoder; every one is kept with the model.

    model: a transformer's name or folder, as ssrem.encoders.hub takes it.
    prior: 'cosine', the logit starts as a · cos + b, with the cosine of the model's own untrained sentence vectors
    (the evaluator `cosine`), and learning adds to it; 'none', as in the papers.
    pooling: what the head reads, the 'mean' of the last states or the first one, 'cls'.
    context_turns: how many of the last turns are read. max_tokens: of context and response together.
    contexts, valid_contexts: responses that `fit` learns from, and that choose the epoch; drawn once. The default
    is meant for minutes on two processor cores; with a GPU give all there are, freeze 0 and 3 epochs.
    epochs, batch_size: batch_size counts responses, each with its negatives.
    loss: 'binary' cross-entropy of each response, as in the papers, or 'softmax' of the true one among its negatives.
    learning_rate: of the transformer, head_learning_rate: of the head; both rise over the share `warmup` of the
    steps and fall to 0. dropout: before the head.
    freeze: the embeddings and so many of the lowest layers do not learn, and are run once a training where their
    output can be held in memory (1 GiB); 0: all learn.
    patience: after how many epochs without a lower validation loss training stops.
    device: auto, cpu, cuda or mps. bf16: 'auto', mixed precision while learning where the processor or the GPU has
    bfloat16, or 'off', float32 throughout.
    """

    model: str = MINILM
    prior: str = "cosine"
    pooling: str = "mean"
    context_turns: int = 3
    max_tokens: int = 96
    contexts: int = 800
    valid_contexts: int = 200
    epochs: int = 2
    batch_size: int = 16
    loss: str = "binary"
    learning_rate: float = 2e-5
    head_learning_rate: float = 5e-4
    warmup: float = 0.1
    dropout: float = 0.1
    freeze: int = 4
    patience: int = 2
    seed: int = 0
    device: str = "auto"
    bf16: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(prior=("cosine", "none"), pooling=("mean", "cls"), bf16=("auto", "off"))
        self.one_of(loss=("binary", "softmax"))
        self.at_least(1, "context_turns", "contexts", "valid_contexts", "epochs", "batch_size", "patience")
        self.at_least(0, "freeze", "seed", "warmup", "dropout", "learning_rate")
        self.above_zero("head_learning_rate")
        if self.warmup > 1 or self.dropout >= 1:
            raise EvaluatorError("warmup must be at most 1, dropout below 1")
