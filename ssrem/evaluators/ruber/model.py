"""RUBER's unreferenced part: the network and how it learns (Tao et al. 2018, unreferenced metric)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pack_padded_sequence

from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear.training import one_thread
from ssrem.evaluators.core.word_sequences import Laid, Stretches, Words
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.samples import Floats, Progress, Rows

Weights = Mapping[str, NDArray[np.float32]]

_ENCODED = 256
_SCORED = 20_000
# Batches are sorted by length within this many, which spares padding and keeps the shuffle.
_BUCKET = 50


class RuberNet(torch.nn.Module):
    """sigmoid(MLP([q; qᵀMr; r])) with q, r the last states of a bidirectional GRU each, over word vectors."""

    def __init__(self, dimensions: int, hidden: int, mlp: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.context = torch.nn.GRU(dimensions, hidden, bidirectional=True, batch_first=True)
        self.response = torch.nn.GRU(dimensions, hidden, bidirectional=True, batch_first=True)
        self.matrix = torch.nn.Parameter(torch.empty(2 * hidden, 2 * hidden))
        self.inner = torch.nn.Linear(4 * hidden + 1, mlp)
        self.outer = torch.nn.Linear(mlp, 1)
        torch.nn.init.xavier_uniform_(self.matrix)

    @classmethod
    def seeded(cls, dimensions: int, config: RuberConfig) -> RuberNet:
        """Before training; the caller's random state stays as it is."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            return cls(dimensions, config.hidden, config.mlp)

    @classmethod
    def of(cls, weights: Weights, dimensions: int, config: RuberConfig) -> RuberNet:
        """With these weights; EvaluatorError where they are of another shape."""
        net = cls.seeded(dimensions, config)
        try:
            net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        except RuntimeError as error:
            raise EvaluatorError(
                f"RUBER's weights do not fit its settings and word vectors of {dimensions} dimensions: "
                f"{' '.join(str(error).split())}"
            ) from error
        return net

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """A copy of everything that was learned."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}

    def encode(self, side: str, words: Words, texts: Stretches) -> torch.Tensor:
        """Last states of both directions, float32 (b, 2 · hidden); padding is never read."""
        vectors = torch.from_numpy(words.vectors)[torch.from_numpy(texts.padded(words.ids))]
        lengths = torch.from_numpy(np.maximum(texts.lengths, 1))
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        _, last = (self.context if side == "context" else self.response)(packed)
        return torch.cat([last[0], last[1]], dim=1)

    def forward(self, q: torch.Tensor, r: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """Scores in (0, 1), float32 (b,), of states (b, 2 · hidden) each; 0.5 where `known` is false."""
        quadratic = ((q @ self.matrix) * r).sum(dim=1, keepdim=True)
        logits = self.outer(torch.tanh(self.inner(torch.cat([q, quadratic, r], dim=1))))[:, 0]
        return torch.sigmoid(logits * known)


def scores(net: RuberNet, laid: Laid, pairs: Rows) -> Floats:
    """f of `pairs`, int64 (n, 2) of rows in the contexts and responses, float64 (n,); each text is read once."""
    found = np.empty(len(pairs))
    with torch.no_grad(), one_thread():
        q, left = _states(net, "context", laid.words, laid.contexts, pairs[:, 0])
        r, right = _states(net, "response", laid.words, laid.responses, pairs[:, 1])
        for first in range(0, len(pairs), _SCORED):
            at = slice(first, first + _SCORED)
            known = torch.from_numpy(laid.known(pairs[at, 0], pairs[at, 1]))
            found[at] = net(q[left[at]], r[right[at]], known).numpy()
    return found


def _states(
    net: RuberNet, side: str, words: Words, texts: Stretches, rows: Rows
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of the texts that are among `rows`, and where each row's is, both in order."""
    used, place = np.unique(rows, return_inverse=True)
    states = torch.empty(len(used), 2 * net.hidden)
    order = np.argsort(texts.lengths[used], kind="stable")
    for first in range(0, len(order), _ENCODED):
        batch = order[first : first + _ENCODED]
        states[torch.from_numpy(batch)] = net.encode(side, words, texts.of(used[batch]))
    return states, torch.from_numpy(place)


@dataclass(frozen=True)
class Examples:
    """What is learned from, as rows of what is laid.

    context: (n,). response: (n, 1 + k), the response and for the margin loss its negatives, -1 where there is
    none; each row has one at least. targets: float32 (n,) in [0, 1], for the squared error in the margin
    loss's place.
    """

    context: Rows
    response: Rows
    targets: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.context)

    def part(self, rows: Rows) -> Examples:
        """Those at `rows`."""
        targets = None if self.targets is None else self.targets[rows]
        return Examples(self.context[rows], self.response[rows], targets)

    def negative(self, rows: Rows, turn: int) -> Rows:
        """One negative of each row: the turn-th of those that it has, in rotation."""
        there = self.response[rows, 1:] >= 0
        wanted = turn % there.sum(axis=1)
        column = (np.cumsum(there, axis=1) == (wanted + 1)[:, None]).argmax(axis=1)
        return np.asarray(self.response[rows, 1 + column])


def _losses(
    net: RuberNet, laid: Laid, examples: Examples, rows: Rows, turn: int, margin: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each row, and whether the response outranks the negative (0.5: a tie; NaN: no negative), (b,)."""
    context, response = examples.context[rows], examples.response[rows, 0]
    q = net.encode("context", laid.words, laid.contexts.of(context))
    known = torch.from_numpy(laid.known(context, response))
    if examples.targets is not None:
        found = net(q, net.encode("response", laid.words, laid.responses.of(response)), known)
        return (found - torch.from_numpy(examples.targets[rows])) ** 2, torch.full((len(rows),), torch.nan)
    random = examples.negative(rows, turn)
    both = net.encode("response", laid.words, laid.responses.of(np.concatenate([response, random])))
    high = net(q, both[: len(rows)], known)
    low = net(q, both[len(rows) :], torch.from_numpy(laid.known(context, random)))
    above = (high > low).float() + 0.5 * (high == low).float()
    return torch.relu(margin - high + low), above.detach()


@dataclass(frozen=True)
class Plan:
    """How `learn` goes about it."""

    epochs: int
    batch_size: int
    learning_rate: float
    rows: int
    """Rows an epoch at most."""


def learn(
    net: RuberNet,
    laid: Laid,
    train: Examples,
    valid: Examples,
    plan: Plan,
    config: RuberConfig,
    progress: Progress | None,
) -> tuple[tuple[dict[str, float], ...], int]:
    """Trains `net` and leaves it in the state of the epoch with the lowest validation loss.

    Adam, gradients clipped to norm 1, rows shuffled from the seed, learning rate × 0.1 on a plateau, stopped
    after `config.patience` epochs without a lower validation loss. Gives the history and the best epoch.
    """
    began = time.perf_counter()
    stream = _stream(len(train), np.random.default_rng([config.seed, 3]))
    shuffle = np.random.default_rng([config.seed, 4])
    lengths, taken = laid.contexts.lengths[train.context], min(plan.rows, len(train))
    steps = -(-taken // plan.batch_size) * plan.epochs
    history: list[dict[str, float]] = []
    best_loss, best_epoch, best, done = float("inf"), 0, net.weights(), 0
    with one_thread():
        optimiser = torch.optim.Adam(net.parameters(), lr=plan.learning_rate, foreach=False)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser, factor=0.1, patience=config.decay_patience, threshold=0.0
        )
        for epoch in range(1, plan.epochs + 1):
            total, rate = 0.0, float(optimiser.param_groups[0]["lr"])
            for rows in _batches(stream(taken), lengths, plan.batch_size, shuffle):
                loss = _losses(net, laid, train, rows, epoch - 1, config.margin)[0].mean()
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
                total += float(loss.detach()) * len(rows)
                done += 1
                if progress is not None:
                    progress(done, steps)
            valid_loss, above = _evaluate(net, laid, valid, config.margin)
            if not np.isfinite(valid_loss):
                raise EvaluatorError(
                    f"training diverged in epoch {epoch} (loss {valid_loss}); "
                    f"lower the learning rate, now {plan.learning_rate}"
                )
            seconds = time.perf_counter() - began
            entry = {"epoch": epoch, "train_loss": total / taken, "valid_loss": valid_loss}
            entry |= {"learning_rate": rate, "seconds": seconds}
            history.append(entry if np.isnan(above) else entry | {"valid_gt_above": above})
            schedule.step(valid_loss)
            if valid_loss < best_loss:
                best_loss, best_epoch, best = valid_loss, epoch, net.weights()
            if epoch - best_epoch >= config.patience:
                break
    if progress is not None and done < steps:
        progress(steps, steps)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in best.items()})
    return tuple(history), best_epoch


def _evaluate(net: RuberNet, laid: Laid, valid: Examples, margin: float) -> tuple[float, float]:
    """Mean loss, and the share of true responses that outrank their first negative."""
    loss = above = 0.0
    order = np.argsort(laid.contexts.lengths[valid.context], kind="stable")
    with torch.no_grad():
        for first in range(0, len(order), _ENCODED):
            found = _losses(net, laid, valid, order[first : first + _ENCODED], 0, margin)
            loss, above = loss + float(found[0].sum()), above + float(found[1].sum())
    return loss / len(valid), above / len(valid)


def _stream(n: int, generator: np.random.Generator) -> Callable[[int], Rows]:
    """Hands out rows in shuffled order, all of them once before any comes again."""
    left = np.zeros(0, dtype=np.int64)

    def take(count: int) -> Rows:
        nonlocal left
        while len(left) < count:
            left = np.concatenate([left, generator.permutation(n)])
        taken, left = left[:count], left[count:]
        return taken

    return take


def _batches(order: Rows, lengths: Rows, size: int, generator: np.random.Generator) -> Iterator[Rows]:
    """Batches of rows whose contexts are about as long, in random order."""
    for first in range(0, len(order), size * _BUCKET):
        bucket = order[first : first + size * _BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        starts = np.arange(0, len(bucket), size)
        for start in generator.permutation(starts).tolist():
            yield bucket[start : start + size]
