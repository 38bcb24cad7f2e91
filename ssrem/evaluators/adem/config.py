"""The settings of ADEM."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ssrem.config import Config
from ssrem.errors import EvaluatorError

PRETRAINED = ("vhred", "encoder")
_FROM_0 = ("seed", "anneal_steps")


@dataclass(frozen=True)
class AdemConfig(Config):
    """Settings of ADEM; all are saved with the model.

    pretrained: the source of the vectors of contexts and responses: 'vhred', a hierarchical recurrent encoder that
    `fit` trains as a dialogue model, or 'encoder', the given encoder as it is.
    context_turns: number of last turns that are read. turn_words: number of known words that are read of each turn,
    the first ones, with 'vhred' alone; a longer text is `truncated`.
    utterance, context, decoder, latent: units of the recurrent networks and of the Gaussian variable of a turn.
    vocabulary: number of words that the decoder predicts, the most frequent ones; all others are one class.
    word_drop: share of the decoder's input words that are hidden from it.
    anneal_steps: number of batches over which the weight of the KL divergence rises linearly from 0 to 1.
    max_train: stretches of conversation per epoch, each of at most `context_turns` + 1 turns; the next epoch takes the
    stretches that follow. max_valid: responses of the validation split that the loss, α and β are computed on.
    patience: epochs without a lower validation loss before training stops, counted from the epoch in which the KL
    divergence has its full weight.
    components: of the principal component analysis. pca_rows: responses of the training split that it is fitted on,
    with their contexts.
    gamma, length_bins, held_out, tune_*: of `fine_tuned`. gamma: weight of ‖M‖ + ‖N‖ in the loss. length_bins: bins of
    response length that are over-sampled to one size within each human score. held_out: share of the contexts that
    chooses the epoch.

    The paper's recurrent networks have 2,000 units and see 60,000 batches before the KL divergence has its full
    weight; these defaults train in minutes on a CPU.
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
        counts = [field.name for field in fields(self) if type(field.default) is int]
        self.at_least(1, *(name for name in counts if name not in _FROM_0))
        self.at_least(0, *_FROM_0, "word_drop", "gamma")
        self.above_zero("learning_rate", "tune_learning_rate", "held_out")
        for name in ("word_drop", "held_out"):
            if getattr(self, name) >= 1:
                raise EvaluatorError(f"{name} is {getattr(self, name)}; expected below 1")
