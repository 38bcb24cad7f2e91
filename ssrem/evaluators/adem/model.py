"""The latent-variable dialogue model in which ADEM's encoder is pretrained: VHRED (Serban et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from ssrem.encoders.gru_network import GruNetwork
from ssrem.encoders.word_sequences import Stretches, Words
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.samples import Rows

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
    """Predicts each turn from those before it through a Gaussian variable (eq. 11).

    The prior reads the turns so far, the posterior the turn to come as well; the decoder starts from both the
    turns so far and z, and sees them at every word.
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
        # From the words' frequencies on: no step is spent on learning them.
        self.output.bias.data = torch.from_numpy(log_frequencies.copy())

    @classmethod
    def seeded(cls, dimensions: int, log_frequencies: NDArray[np.float32], config: AdemConfig) -> Vhred:
        """Before training; the caller's random state stays as it is."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            return cls(dimensions, log_frequencies, config)

    def forward(
        self, batch: Batch, classes: torch.Tensor, generator: torch.Generator, word_drop: float
    ) -> Losses:
        """Losses of one sample of z a turn.

        classes: int64 (v + 1,), what each row of the words' vectors is to the decoder. word_drop: share of the
        decoder's input words that are hidden from it.
        """
        known = torch.from_numpy(batch.known)
        vectors = torch.zeros(*known.shape, self.encoder.norm.normalized_shape[0])
        vectors[known] = self.encoder.utterances(batch.words, batch.texts.of(batch.turns[batch.known]))
        states = self.encoder.states(vectors, known)
        wanted = torch.from_numpy(batch.wanted)
        context, utterance = states[:, :-1][wanted[:, 1:]], vectors[:, 1:][wanted[:, 1:]]
        prior = self.prior(context).chunk(2, dim=1)
        posterior = self.posterior(torch.cat([context, utterance], dim=1)).chunk(2, dim=1)
        noise = torch.randn(posterior[0].shape, generator=generator)
        z = posterior[0] + noise * torch.exp(posterior[1].clamp(-_LOG_VARIANCE, _LOG_VARIANCE) / 2)
        summary = torch.tanh(self.summary(torch.cat([context, z], dim=1)))
        texts = batch.texts.of(batch.turns[batch.wanted])
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
        # The end is class 0, as the padding is row 0: what stands behind a text's words is its end.
        targets = functional.pad(classes[ids], (0, 1), value=END)
        lengths = torch.from_numpy(texts.lengths + 1)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        aims = pack_padded_sequence(targets, lengths, batch_first=True, enforce_sorted=False)
        decoded, _ = self.decoder(packed, summary[None])
        return functional.cross_entropy(self.output(decoded.data), aims.data, reduction="sum")


@dataclass(frozen=True)
class Batch:
    """Stretches of conversation: turns, int64 (b, t), rows of `texts`, -1 behind the last one."""

    words: Words
    texts: Stretches
    turns: Rows

    def part(self, rows: Rows | slice) -> Batch:
        """The stretches at `rows`."""
        return Batch(self.words, self.texts, self.turns[rows])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether there is a turn and a known word in it, bool (b, t)."""
        return np.asarray((self.turns >= 0) & (self.texts.lengths[self.turns] > 0))

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """Turns to predict: known, with a known one before, bool (b, t)."""
        known = self.known
        return known & (np.cumsum(known, axis=1) > known)


def hide(vectors: torch.Tensor, hidden: torch.Tensor, instead: torch.Tensor) -> torch.Tensor:
    """Word vectors (n, l, d), those that are `hidden`, bool (n, l), replaced by one vector (d,)."""
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
