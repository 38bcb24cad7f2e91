"""The settings of RUBER."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from ssrem.config import Config
from ssrem.samples import Floats

_FROM_0 = ("seed", "decay_patience")
COMBINATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "min": np.minimum,
    "max": np.maximum,
    "arithmetic": lambda f, g: (f + g) / 2,
    "geometric": lambda f, g: np.sqrt(f * g),
}
"""Ways to mix two parts on the unit range, float64 (n,); NaN if one of them is."""


@dataclass(frozen=True)
class RuberConfig(Config):
    """Settings of RUBER; all are saved with the model.

    context_turns: number of last turns that are read. context_words, response_words: number of known words that are
    read, the last ones of a context and the first ones of a response; a longer text is `truncated`.
    hidden: units of each direction of the recurrent networks. mlp: units of the layer before the score.
    learning_rate: lower for more units; with 300, training at .001 may stay at chance, at .0003 it learns.
    margin: the loss is zero for a true response that scores this much higher than a random one.
    max_train: responses per epoch; the next epoch takes the responses that follow, so that all are read in turn.
    max_valid: responses of the validation split that the loss is computed on.
    decay_patience: epochs without a lower validation loss before the learning rate falls to a tenth.
    patience: epochs without a lower validation loss before training stops.
    combine: how `ruber` mixes its parts: 'min', 'max', 'arithmetic' or 'geometric' mean.
    tune_*: settings of `fine_tuned`.
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
        self.one_of(combine=tuple(COMBINATIONS))
        counts = [field.name for field in fields(self) if type(field.default) is int]
        self.at_least(1, *(name for name in counts if name not in _FROM_0))
        self.at_least(0, *_FROM_0)
        self.above_zero("margin", "learning_rate", "tune_learning_rate")
