"""Trains the latent-variable dialogue model that ADEM takes its encoder from (Lowe et al. 2017, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.gru_network import Weights
from ssrem.encoders.word_sequences import Stretches, Words
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.model import END, OTHER, Batch, Vhred, kl_weight
from ssrem.samples import Progress, Rows
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, one_thread, shuffled_epochs, train


@dataclass(frozen=True)
class Pretrained:
    """The encoder of the epoch with the lowest validation loss, which is the mean -ELBO of a turn, nats.

    stretches: how many there were to learn from.
    """

    weights: Weights
    curve: Curve
    untrained_loss: float
    stretches: int


def pretrain(
    learned: Batch, valid: Batch, config: AdemConfig, progress: Progress | None, checkpoint: Path | None
) -> Pretrained:
    """Learn from stretches of conversation: Adam, gradients clipped to norm 1."""
    objective = VhredObjective(learned, valid, config)
    with torch.no_grad(), one_thread():
        untrained = objective.validate(0)["valid_loss"]
    annealed = max(0, config.anneal_steps - 1) // objective.steps
    plan = Plan(config.epochs, config.seed, patience=config.patience, patience_from=annealed)
    unfinished = Checkpoint.of(checkpoint, asdict(config), objective.data())
    curve = train(objective, plan, progress=progress, checkpoint=unfinished)
    return Pretrained(objective.net.encoder.weights(), curve, untrained, len(learned.turns))


class VhredObjective:
    """The dialogue model, learned from stretches of conversation and judged on others.

    The validation loss has the whole KL divergence in every epoch and sees all words; its noise is the same each time.
    """

    def __init__(self, learned: Batch, valid: Batch, config: AdemConfig) -> None:
        self.learned, self.valid, self.config = learned, valid, config
        words = learned.words
        self.classes, frequencies = decoder_classes(words, learned.texts, learned.turns, config.vocabulary)
        self.net = Vhred.seeded(words.vectors.shape[1], frequencies, config)
        self.taken = min(config.max_train, len(learned.turns))
        self.steps = -(-self.taken // config.batch_size)

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.config.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, seed = len(self.learned.turns), [self.config.seed, 3]
        return shuffled_epochs(n, self.config.batch_size, seed, taken=self.taken)

    def loss(self, rows: Rows, step: Step) -> Loss:
        """-ELBO a word, the KL divergence weighted; the learning curve has it whole, a turn."""
        losses = self.net(self.learned.part(rows), self.classes, step.noise, self.config.word_drop)
        weight = kl_weight(step.number, self.config.anneal_steps)
        mean = (losses.words + weight * losses.divergence) / losses.tokens
        return Loss(mean, float((losses.words + losses.divergence).detach()), losses.turns)

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean -ELBO and KL divergence of a turn, and -log p of a word, nats; the weight that the KL divergence has."""
        words = kl = 0.0
        turns = tokens = 0
        noise = torch.Generator().manual_seed(self.config.seed)
        for first in range(0, len(self.valid.turns), self.config.batch_size):
            batch = self.valid.part(slice(first, first + self.config.batch_size))
            losses = self.net(batch, self.classes, noise, 0.0)
            words, kl = words + float(losses.words), kl + float(losses.divergence)
            turns, tokens = turns + losses.turns, tokens + losses.tokens
        return {
            "valid_loss": (words + kl) / turns,
            "valid_kl": kl / turns,
            "valid_word_loss": words / tokens,
            "kl_weight": kl_weight(epoch * self.steps, self.config.anneal_steps),
        }

    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""
        words = self.learned.words
        return [words.ids, words.ends, words.vectors, self.learned.turns, self.valid.turns]


def decoder_classes(
    words: Words, texts: Stretches, train: Rows, vocabulary: int
) -> tuple[torch.Tensor, NDArray[np.float32]]:
    """What each row of the words' vectors is to the decoder, int64 (v + 1,), and its classes' log frequencies.

    The most frequent words of the training stretches have a class each, ties in the order of first use.
    """
    used = np.unique(train[train >= 0])
    ids = texts.of(used).padded(words.ids)
    counts = np.bincount(ids[ids > 0], minlength=len(words.vectors))
    ranked = np.argsort(-counts, kind="stable")
    frequent = ranked[: min(vocabulary, int((counts > 0).sum()))]
    classes = np.full(len(counts), OTHER, dtype=np.int64)
    classes[0] = END
    classes[frequent] = np.arange(len(frequent)) + 2
    sums = np.bincount(classes, weights=counts, minlength=len(frequent) + 2)
    sums[END] = len(used)
    # Add-one: no class is impossible.
    return torch.from_numpy(classes), np.log((sums + 1) / (sums + 1).sum()).astype(np.float32)
