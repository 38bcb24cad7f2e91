"""How RUBER's unreferenced part learns: the margin loss against random negatives, or the squared error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.evaluators.ruber.layout import Laid
from ssrem.evaluators.ruber.model import RuberNet
from ssrem.samples import Rows
from ssrem.training.trainer import Group, Loss, Step, shuffled_epochs

_MEASURED = 256


@dataclass(frozen=True)
class Examples:
    """What is learned from, as rows of the contexts and responses of a layout.

    context: (n,). response: (n, 1 + k), the response and for the margin loss its negatives, -1 where there is
    none; each row has one at least. targets: float32 (n,) in [0, 1], for the squared error instead.
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
        present = self.response[rows, 1:] >= 0
        wanted = turn % present.sum(axis=1)
        column = (np.cumsum(present, axis=1) == (wanted + 1)[:, None]).argmax(axis=1)
        return np.asarray(self.response[rows, 1 + column])


@dataclass(frozen=True)
class RuberObjective:
    """`net`, learned from `train` and judged on `valid`. taken: how many examples an epoch takes at most."""

    net: RuberNet
    laid: Laid
    train: Examples
    valid: Examples
    margin: float
    batch_size: int
    rate: float
    taken: int
    seed: int

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, lengths = len(self.train), self.laid.contexts.lengths[self.train.context]
        taken = min(self.taken, n)
        return shuffled_epochs(n, self.batch_size, [self.seed, 3], taken=taken, lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.of(losses(self.net, self.laid, self.train, rows, step.epoch - 1, self.margin)[0])

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss, and the share of true responses that outrank their first negative, where there are negatives."""
        loss = above = 0.0
        order = np.argsort(self.laid.contexts.lengths[self.valid.context], kind="stable")
        for first in range(0, len(order), _MEASURED):
            rows = order[first : first + _MEASURED]
            of_rows, wins = losses(self.net, self.laid, self.valid, rows, 0, self.margin)
            loss, above = loss + float(of_rows.sum()), above + float(wins.sum())
        figures = {"valid_loss": loss / len(self.valid), "valid_gt_above": above / len(self.valid)}
        return {name: value for name, value in figures.items() if name == "valid_loss" or not np.isnan(value)}

    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""
        words, contexts = self.laid.words, self.laid.contexts
        laid: list[NDArray[Any]] = [words.ids, words.ends, words.vectors, contexts.start, contexts.stop]
        return [*laid, self.train.response, self.valid.response]


def losses(
    net: RuberNet, laid: Laid, examples: Examples, rows: Rows, turn: int, margin: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each row, and whether the response outranks the negative (0.5: a tie; NaN: no negative), (b,)."""
    context, response = examples.context[rows], examples.response[rows, 0]
    q = net.encode("context", laid.words, laid.contexts.of(context))
    known = torch.from_numpy(laid.known(context, response))
    if examples.targets is not None:
        f = net(q, net.encode("response", laid.words, laid.responses.of(response)), known)
        return (f - torch.from_numpy(examples.targets[rows])) ** 2, torch.full((len(rows),), torch.nan)
    random = examples.negative(rows, turn)
    both = net.encode("response", laid.words, laid.responses.of(np.concatenate([response, random])))
    high = net(q, both[: len(rows)], known)
    low = net(q, both[len(rows) :], torch.from_numpy(laid.known(context, random)))
    above = (high > low).float() + 0.5 * (high == low).float()
    return torch.relu(margin - high + low), above.detach()
