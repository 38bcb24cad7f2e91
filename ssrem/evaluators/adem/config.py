"""The settings of ADEM."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ssrem.config import Config
from ssrem.errors import EvaluatorError

PRETRAINED = ("vhred", "encoder")
_FROM_0 = ("seed", "anneal_steps")


@dataclass(frozen=True)
class AdemConfig(Config):
    """Settings of a fit; every one is kept with the model.

    pretrained: what turns contexts and responses into vectors, 'vhred', a hierarchical recurrent encoder that
    `fit` trains as a dialogue model, or 'encoder', the given encoder's vectors of texts, off the shelf.
    context_turns: how many of the last turns are read. turn_words: how many known words of each, the first
    ones; a text that has more is `truncated`. Both of 'vhred' and the first of 'encoder'.
    utterance, context, decoder, latent: units of the recurrent networks and of the Gaussian variable of a turn.
    vocabulary: the most frequent words, which the decoder tells apart; all others are one.
    word_drop: share of the decoder's input words that it is not shown.
    anneal_steps: over so many batches the weight of the KL divergence rises linearly from 0 to 1.
    max_train: stretches of conversation an epoch, each `context_turns` + 1 turns at most; the next epoch goes
    on where the last one ended. max_valid: of the validation split, for the loss and for α and β.
    patience: after how many epochs without a lower validation loss training stops, counted from where the KL
    divergence has its full weight.
    components: of the principal component analysis. pca_rows: responses of the training split that it is
    fitted on, with their contexts.
    gamma, tune_*: of `fine_tuned`, on human scores. gamma: weight of ‖M‖ + ‖N‖. length_bins: bins by length
    that responses of the same human score are over-sampled to. held_out: share of the contexts that chooses
    the epoch.

    The paper's recurrent networks have 2,000 units and see 60,000 batches before the KL divergence has its
    full weight; these defaults train in minutes on a CPU.
    """

    pretrained: str = "vhred"
    context_turns: int = 5
    turn_words: int = 50
    utterance: int = 128
    context: int = 256
    decoder: int = 128
    latent: int = 32
    vocabulary: int = 2_000
    word_drop: float = 0.25
    anneal_steps: int = 400
    epochs: int = 8
    batch_size: int = 16
    learning_rate: float = 0.005
    max_train: int = 1_600
    max_valid: int = 500
    patience: int = 2
    components: int = 50
    pca_rows: int = 2_000
    gamma: float = 0.075
    length_bins: int = 4
    held_out: float = 0.15
    tune_epochs: int = 60
    tune_batch_size: int = 32
    tune_learning_rate: float = 0.01
    tune_patience: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(pretrained=PRETRAINED)
        self.at_least(
            1,
            *(
                field.name
                for field in fields(self)
                if type(field.default) is int and field.name not in _FROM_0
            ),
        )
        self.at_least(0, *_FROM_0, "word_drop", "gamma")
        self.above_zero("learning_rate", "tune_learning_rate", "held_out")
        self.below(1.0, "word_drop", "held_out")

    def below(self, limit: float, *names: str) -> None:
        """EvaluatorError where one of these settings is `limit` or more."""
        for name in names:
            if getattr(self, name) >= limit:
                raise EvaluatorError(f"{name} is {getattr(self, name)}; expected below {limit:g}")
