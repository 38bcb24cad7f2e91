"""VHRED, the latent-variable dialogue model that ADEM takes its encoder from, and how it is trained.

Serban et al. 2017; its use for ADEM: Lowe et al. 2017, section 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from ssrem.encoders.gru import GruNetwork
from ssrem.encoders.recurrent import Stretches, Words
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.core.state import Run
from ssrem.samples import Rows
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, one_thread, shuffled_epochs, train

END, OTHER = 0, 1
"""Classes of the decoder: the end of a turn, and every word outside its vocabulary."""

_LOG_VARIANCE = 8.0


@dataclass(frozen=True)
class Losses:
    """Sums over turns, nats: -log p(words given z and the turns before), and KL[posterior || prior]."""

    words: torch.Tensor
    divergence: torch.Tensor
    turns: int
    tokens: int


class Vhred(torch.nn.Module):
    """Predicts each turn from the turns before it through a Gaussian variable z (Serban et al. 2017, eq. 11).

    The prior of z depends on the turns before, the posterior on the turn itself too. The turns before and z are the
    decoder's first state and part of its input at every word.
    """

    def __init__(self, dimensions: int, log_frequencies: NDArray[np.float32], config: AdemConfig) -> None:
        super().__init__()
        context, hidden, latent = config.context, config.decoder, config.latent
        self.encoder = GruNetwork(dimensions, config.utterance, context)
        self.prior = _feed_forward(context, hidden, 2 * latent)
        self.posterior = _feed_forward(context + config.utterance, hidden, 2 * latent)
        self.summary = torch.nn.Linear(context + latent, hidden)
        self.decoder = torch.nn.GRU(dimensions + hidden, hidden, batch_first=True)
        self.start = torch.nn.Parameter(torch.zeros(dimensions))
        self.dropped = torch.nn.Parameter(torch.zeros(dimensions))
        self.output = torch.nn.Linear(hidden, len(log_frequencies))
        # Starting at the words' frequencies spares the steps that would learn them.
        self.output.bias.data = torch.from_numpy(log_frequencies.copy())

    @classmethod
    def seeded(cls, dimensions: int, log_frequencies: NDArray[np.float32], config: AdemConfig) -> Vhred:
        """The network before training; the caller's random state does not change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            return cls(dimensions, log_frequencies, config)

    def forward(
        self, batch: Batch, classes: torch.Tensor, generator: torch.Generator, word_drop: float
    ) -> Losses:
        """Losses of one sample of z a turn.

        classes: int64 (v + 1,), the decoder's class of each row of the words' vectors. word_drop: share of the
        decoder's input words that are hidden from it.
        """
        known = torch.from_numpy(batch.known)
        vectors = torch.zeros(*known.shape, self.encoder.norm.normalized_shape[0])
        vectors[known] = self.encoder.utterances(batch.texts.of(batch.turns[batch.known]).packed(batch.words))
        states = self.encoder.states(vectors, known)
        wanted = torch.from_numpy(batch.predicted)
        context, utterance = states[:, :-1][wanted[:, 1:]], vectors[:, 1:][wanted[:, 1:]]
        prior = self.prior(context).chunk(2, dim=1)
        posterior = self.posterior(torch.cat([context, utterance], dim=1)).chunk(2, dim=1)
        noise = torch.randn(posterior[0].shape, generator=generator)
        z = posterior[0] + noise * torch.exp(posterior[1].clamp(-_LOG_VARIANCE, _LOG_VARIANCE) / 2)
        summary = torch.tanh(self.summary(torch.cat([context, z], dim=1)))
        texts = batch.texts.of(batch.turns[batch.predicted])
        loss = self._decode(summary, batch.words, texts, classes, generator, word_drop)
        tokens = int(texts.lengths.sum()) + len(texts.lengths)
        return Losses(loss, divergence(posterior, prior).sum(), len(texts.lengths), tokens)

    def _decode(
        self,
        summary: torch.Tensor,
        words: Words,
        texts: Stretches,
        classes: torch.Tensor,
        generator: torch.Generator,
        word_drop: float,
    ) -> torch.Tensor:
        """-log p of the texts' words and their ends, summed."""
        ids = torch.from_numpy(texts.padded(words.ids))
        hidden = torch.rand(ids.shape, generator=generator) < word_drop
        shown = hide(torch.from_numpy(words.vectors)[ids], hidden, self.dropped)
        starts = self.start.expand(len(ids), 1, -1)
        steps = summary[:, None].expand(-1, ids.shape[1] + 1, -1)
        inputs = torch.cat([torch.cat([starts, shown], dim=1), steps], dim=2)
        # Padding is row 0 and class 0 is the end of a turn, so that the end follows each text's words.
        targets = functional.pad(classes[ids], (0, 1), value=END)
        lengths = torch.from_numpy(texts.lengths + 1)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        aims = pack_padded_sequence(targets, lengths, batch_first=True, enforce_sorted=False)
        decoded, _ = self.decoder(packed, summary[None])
        return functional.cross_entropy(self.output(decoded.data), aims.data, reduction="sum")


@dataclass(frozen=True)
class Batch:
    """Stretches of conversation. turns: int64 (b, t), rows of `texts`, -1 after the last turn."""

    words: Words
    texts: Stretches
    turns: Rows

    def part(self, rows: Rows | slice) -> Batch:
        """The stretches at `rows`."""
        return Batch(self.words, self.texts, self.turns[rows])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Turns with a known word, bool (b, t)."""
        return np.asarray((self.turns >= 0) & (self.texts.lengths[self.turns] > 0))

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Turns to predict, bool (b, t): known turns that follow a known one."""
        known = self.known
        return known & (np.cumsum(known, axis=1) > known)


def hide(vectors: torch.Tensor, hidden: torch.Tensor, instead: torch.Tensor) -> torch.Tensor:
    """Word vectors (n, l, d) with those that are `hidden`, bool (n, l), replaced by the vector `instead`, (d,)."""
    return torch.where(hidden[..., None], instead, vectors)


def divergence(posterior: tuple[torch.Tensor, ...], prior: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """KL[posterior || prior], nats, (n,), of diagonal Gaussians given as mean and log variance, (n, k) each."""
    (mean, log_variance), (prior_mean, prior_log) = posterior, prior
    log_variance = log_variance.clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
    prior_log = prior_log.clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
    ratio = (torch.exp(log_variance) + (mean - prior_mean) ** 2) / torch.exp(prior_log)
    return 0.5 * (prior_log - log_variance + ratio - 1).sum(dim=1)


def kl_weight(step: int, anneal_steps: int) -> float:
    """Weight of the KL divergence in batch `step`, from 0: linear from 0 to 1 over the first `anneal_steps`."""
    return 1.0 if step >= anneal_steps else step / anneal_steps


def _feed_forward(inputs: int, hidden: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outputs)
    )


class VhredObjective:
    """The dialogue model, learned from stretches of conversation and judged on others.

    The validation loss has the KL divergence with its full weight and no word drop; its noise is the same in every
    epoch.
    """

    def __init__(self, learned: Batch, valid: Batch, config: AdemConfig) -> None:
        self.learned, self.valid, self.config = learned, valid, config
        words = learned.words
        self.classes, frequencies = decoder_classes(words, learned.texts, learned.turns, config.vocabulary)
        self.net = Vhred.seeded(words.vectors.shape[1], frequencies, config)
        self.taken = min(config.max_train, len(learned.turns))
        self.steps = -(-self.taken // config.batch_size)

    def learn(self, run: Run) -> Curve:
        """Adam, gradients clipped to norm 1; early stopping once the KL divergence has its full weight."""
        config = self.config
        annealed = max(0, config.anneal_steps - 1) // self.steps
        plan = Plan(config.epochs, config.seed, patience=config.patience, patience_from=annealed)
        words = self.learned.words
        data: list[NDArray[Any]] = [words.ids, words.ends, words.vectors]
        data += [self.learned.turns, self.valid.turns]
        return train(self, plan, progress=run.progress, checkpoint=run.unfinished(asdict(config), data))

    def untrained_loss(self) -> float:
        """The validation loss of the network as it is before training."""
        with torch.no_grad(), one_thread():
            return self.validate(0)["valid_loss"]

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.config.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, seed = len(self.learned.turns), [self.config.seed, 3]
        return shuffled_epochs(n, self.config.batch_size, seed, taken=self.taken)

    def loss(self, rows: Rows, step: Step) -> Loss:
        """-ELBO per word with the weighted KL divergence; the learning curve has it per turn and unweighted."""
        losses = self.net(self.learned.part(rows), self.classes, step.noise, self.config.word_drop)
        weight = kl_weight(step.number, self.config.anneal_steps)
        mean = (losses.words + weight * losses.divergence) / losses.tokens
        return Loss(mean, float((losses.words + losses.divergence).detach()), losses.turns)

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean -ELBO and KL divergence per turn and -log p per word, nats; the weight of the KL divergence."""
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


def decoder_classes(
    words: Words, texts: Stretches, train: Rows, vocabulary: int
) -> tuple[torch.Tensor, NDArray[np.float32]]:
    """The decoder's class of each row of the words' vectors, int64 (v + 1,), and the log frequencies of the classes.

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
