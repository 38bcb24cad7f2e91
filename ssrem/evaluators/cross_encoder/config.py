"""Settings of a cross-encoder."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError


@dataclass(frozen=True)
class CrossEncoderConfig(Config):
    """Settings of a cross-encoder; all are saved with the model.

    model: a transformer's name or folder, as ssrem.encoders.hub takes it.
    prior: 'cosine': the logit is a · cos + b before training, with the cosine of the untrained model's sentence vectors
    (the evaluator `cosine`), and training adds to it; 'none', as in the papers: there is no such term.
    pooling: the head reads the 'mean' of the last states or the first one, 'cls'.
    context_turns: number of last turns that are read. max_tokens: of context and response together.
    contexts, valid_contexts: responses that `fit` learns from and that choose the epoch, drawn once. The defaults take
    minutes on two processor cores; with a GPU use all responses, freeze 0 and 3 epochs.
    batch_size: in responses, each with its negatives.
    loss: 'binary' cross-entropy of each response, as in the papers, or 'softmax' of the true one among its negatives.
    learning_rate: of the transformer. head_learning_rate: of the head. Both rise over the share `warmup` of the steps
    and then fall to 0. dropout: before the head.
    freeze: number of lowest layers that do not learn, nor do the embeddings. Their output is computed once per training
    if it fits into 1 GiB. 0: everything learns.
    patience: epochs without a lower validation loss before training stops.
    device: auto, cpu, cuda or mps. bf16: 'auto': mixed precision in training if the processor or GPU has bfloat16;
    'off': float32.
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
