"""The settings of RUBER."""

from __future__ import annotations

from dataclasses import dataclass

from ssrem.config import Config

_FROM_0 = ("seed", "decay_patience")
COMBINATIONS = ("min", "max", "arithmetic", "geometric")


@dataclass(frozen=True)
class RuberConfig(Config):
    """Settings of a fit; every one is kept with the model.

    context_turns: how many of the last turns are read. context_words, response_words: how many known words of
    them, the last ones of a context and the first ones of a response; a text that has more is `truncated`.
    hidden: units of each direction of the recurrent networks. mlp: units of the layer before the score.
    margin: by how much the true response is to outscore a random one.
    max_train: responses an epoch; the next epoch goes on where the last one ended, so that all are seen in turn.
    max_valid: responses of the validation split that the loss is measured on.
    decay_patience: after how many epochs without a lower validation loss the learning rate falls to a tenth.
    patience: after how many of them training stops.
    combine: how `ruber` mixes its parts, 'min' | 'max' | 'arithmetic' | 'geometric'.
    tune_*: of `fine_tuned`, on human scores.
    """

    context_turns: int = 5
    context_words: int = 100
    response_words: int = 50
    hidden: int = 64
    mlp: int = 128
    margin: float = 0.5
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.001
    max_train: int = 20_000
    max_valid: int = 4_000
    decay_patience: int = 2
    patience: int = 5
    combine: str = "arithmetic"
    tune_epochs: int = 50
    tune_batch_size: int = 30
    tune_learning_rate: float = 0.0001
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(combine=COMBINATIONS)
        self.at_least(
            1,
            *(name for name in self.names() if isinstance(getattr(self, name), int) and name not in _FROM_0),
        )
        self.at_least(0, *_FROM_0)
        self.above_zero("margin", "learning_rate", "tune_learning_rate")
