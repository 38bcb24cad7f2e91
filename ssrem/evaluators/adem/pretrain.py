"""Trains the latent-variable dialogue model that ADEM takes its encoder from (Lowe et al. 2017, section 5.1)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.model import END, OTHER, Batch, Vhred, Weights, kl_weight
from ssrem.evaluators.bilinear.training import one_thread
from ssrem.evaluators.core.word_sequences import Stretches, Words
from ssrem.samples import Progress, Rows


@dataclass(frozen=True)
class Pretrained:
    """The encoder of the epoch with the lowest validation loss, which is the mean -ELBO of a turn, nats.

    stretches: how many there were to learn from.
    """

    weights: Weights
    history: tuple[dict[str, float], ...]
    best_epoch: int
    untrained_loss: float
    stretches: int


def pretrain(
    words: Words,
    texts: Stretches,
    train: Rows,
    valid: Rows,
    config: AdemConfig,
    progress: Progress | None,
) -> Pretrained:
    """Learn from stretches of conversation, int64 (n, t) each, rows of `texts`, -1 behind the last turn.

    Adam, gradients clipped to norm 1, stretches shuffled from the seed. The validation loss has the whole KL
    divergence in every epoch and sees all words; its noise is the same each time.
    """
    began = time.perf_counter()
    classes, log_frequencies = decoder_classes(words, texts, train, config.vocabulary)
    rows = np.random.default_rng([config.seed, 3])
    order = np.zeros(0, dtype=np.int64)
    taken = min(config.max_train, len(train))
    steps = -(-taken // config.batch_size) * config.epochs
    history: list[dict[str, float]] = []
    done = best_epoch = annealed = 0
    with one_thread():
        net = Vhred.seeded(words.vectors.shape[1], log_frequencies, config)
        noise = torch.Generator().manual_seed(config.seed)
        optimiser = torch.optim.Adam(net.parameters(), lr=config.learning_rate, foreach=False)
        untrained = _evaluate(net, Batch(words, texts, valid), classes, config)["valid_loss"]
        best_loss, best = float("inf"), net.encoder.weights()
        for epoch in range(1, config.epochs + 1):
            total, turns = 0.0, 0
            while len(order) < taken:
                order = np.concatenate([order, rows.permutation(len(train))])
            chosen, order = order[:taken], order[taken:]
            for first in range(0, taken, config.batch_size):
                batch = Batch(words, texts, train[chosen[first : first + config.batch_size]])
                losses = net(batch, classes, noise, config.word_drop)
                weight = kl_weight(done, config.anneal_steps)
                optimiser.zero_grad()
                ((losses.words + weight * losses.divergence) / losses.tokens).backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
                total += float((losses.words + losses.divergence).detach())
                turns += losses.turns
                done += 1
                if progress is not None:
                    progress(done, steps)
            found = _evaluate(net, Batch(words, texts, valid), classes, config)
            if not np.isfinite(found["valid_loss"]):
                raise EvaluatorError(
                    f"training diverged in epoch {epoch} (loss {found['valid_loss']}); "
                    f"lower learning_rate, now {config.learning_rate}"
                )
            entry = {
                "epoch": epoch,
                "train_loss": total / turns,
                **found,
                "kl_weight": kl_weight(done, config.anneal_steps),
            }
            history.append(entry | {"seconds": time.perf_counter() - began})
            if found["valid_loss"] < best_loss:
                best_loss, best_epoch, best = found["valid_loss"], epoch, net.encoder.weights()
            if done < config.anneal_steps:
                annealed = epoch
            if epoch - max(best_epoch, annealed) >= config.patience:
                break
    if progress is not None and done < steps:
        progress(steps, steps)
    return Pretrained(best, tuple(history), best_epoch, untrained, len(train))


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
    kept = ranked[: min(vocabulary, int((counts > 0).sum()))]
    classes = np.full(len(counts), OTHER, dtype=np.int64)
    classes[0] = END
    classes[kept] = np.arange(len(kept)) + 2
    sums = np.bincount(classes, weights=counts, minlength=len(kept) + 2)
    sums[END] = len(used)
    # Add-one: no class is impossible.
    return torch.from_numpy(classes), np.log((sums + 1) / (sums + 1).sum()).astype(np.float32)


def _evaluate(net: Vhred, valid: Batch, classes: torch.Tensor, config: AdemConfig) -> dict[str, float]:
    """Mean -ELBO and KL divergence of a turn, and -log p of a word, nats."""
    words = kl = 0.0
    turns = tokens = 0
    noise = torch.Generator().manual_seed(config.seed)
    with torch.no_grad():
        for first in range(0, len(valid.turns), config.batch_size):
            batch = Batch(valid.words, valid.texts, valid.turns[first : first + config.batch_size])
            losses = net(batch, classes, noise, 0.0)
            words, kl = words + float(losses.words), kl + float(losses.divergence)
            turns, tokens = turns + losses.turns, tokens + losses.tokens
    return {
        "valid_loss": (words + kl) / turns,
        "valid_kl": kl / turns,
        "valid_word_loss": words / tokens,
    }
