"""How a cross-encoder learns: a transformer's rate and a head's, warm-up and decay, bf16 where there is some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.inputs import Base, Inputs
from ssrem.evaluators.cross_encoder.model import CrossNet, logits
from ssrem.samples import Floats, Progress, Rows
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, shuffled_epochs, train


@dataclass(frozen=True)
class Examples:
    """Inputs with targets in [0, 1], float32 (m,), in groups: starts, int64 (n,), says where each begins.

    A group is a true response, first, and its negatives, or one annotated response.
    """

    inputs: Inputs
    targets: NDArray[np.float32]
    starts: Rows

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def sizes(self) -> Rows:
        """Samples of each group, int64 (n,)."""
        return np.diff(self.starts, append=len(self))

    def rows(self, groups: Rows) -> Rows:
        """Samples of `groups`, group by group."""
        return np.concatenate([np.arange(self.starts[g], self.starts[g] + self.sizes[g]) for g in groups])

    @cached_property
    def lengths(self) -> Rows:
        """Tokens of the longest sample of each group, int64 (n,)."""
        return np.maximum.reduceat(self.inputs.lengths, self.starts)

    def data(self) -> list[NDArray[Any]]:
        """Tokens, targets and groups."""
        tokens = np.concatenate([np.array(ids, dtype=np.int64) for ids in self.inputs.ids])
        return [tokens, self.inputs.lengths, self.inputs.first, self.targets, self.starts]


@dataclass(frozen=True)
class Rates:
    """What `fit` and `fine_tuned` differ in. loss: 'binary', 'softmax' or 'squared'. batch_size: counts groups.

    learning_rate: of the transformer, head_learning_rate: of the head. from_0: whether epoch 0 can be the best one.
    """

    loss: str
    epochs: int
    batch_size: int
    learning_rate: float
    head_learning_rate: float
    from_0: bool


@dataclass(frozen=True)
class CrossObjective:
    """`net`, learned from `learned` and judged on `valid`."""

    base: Base
    net: CrossNet
    learned: Examples
    valid: Examples
    rates: Rates
    seed: int

    def groups(self) -> Sequence[Group]:
        trained = self.net.trained
        body = {name: value for name, value in trained.items() if name.startswith("model.")}
        head = {name: value for name, value in trained.items() if name not in body}
        return [Group(head, self.rates.head_learning_rate), Group(body, self.rates.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        lengths = self.learned.lengths
        return shuffled_epochs(len(lengths), self.rates.batch_size, [self.seed, 3], lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        samples, sizes = self.learned.rows(rows), self.learned.sizes[rows]
        targets = torch.from_numpy(self.learned.targets[samples]).to(self.base.device)
        self.net.train()
        z = self.net(**self.base.batch(self.learned.inputs, samples))
        return Loss.averaged(losses(self.rates.loss, z.float(), targets, sizes).mean(), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Loss, and the share of negatives that the true response outranks; the training loss before learning."""
        z, examples = logits(self.base, self.net, self.valid.inputs), self.valid
        figures = {"valid_loss": self._mean_loss(z, examples)}
        if epoch == 0:
            z_learned = logits(self.base, self.net, self.learned.inputs)
            figures["train_loss"] = self._mean_loss(z_learned, self.learned)
        if examples.sizes.max() > 1:
            first = np.repeat(z[examples.starts], examples.sizes)
            above = (first > z) + 0.5 * (first == z)
            figures["valid_gt_above"] = float(np.delete(above, examples.starts).mean())
        return figures

    def _mean_loss(self, z: Floats, examples: Examples) -> float:
        targets = torch.from_numpy(examples.targets.astype(np.float64))
        return float(losses(self.rates.loss, torch.from_numpy(z), targets, examples.sizes).mean())


def learn(
    objective: CrossObjective,
    config: CrossEncoderConfig,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> Curve:
    """Gradients clipped to norm 1; the network is left in the state of the epoch with the lowest validation loss."""
    plan = Plan(
        objective.rates.epochs,
        config.seed,
        patience=config.patience,
        from_0=objective.rates.from_0,
        warmup=config.warmup,
        bf16=objective.base.device if config.bf16 == "auto" else None,
        one_thread=False,
    )
    curve = train(objective, plan, progress=progress, checkpoint=checkpoint)
    objective.net.eval()
    return curve


def losses(kind: str, z: torch.Tensor, targets: torch.Tensor, groups: Rows) -> torch.Tensor:
    """Loss of each sample or, for 'softmax', of each group, of logits and targets (b,); groups: their sizes."""
    if kind == "squared":
        return (torch.sigmoid(z) - targets) ** 2
    if kind == "binary":
        return torch.nn.functional.binary_cross_entropy_with_logits(z, targets, reduction="none")
    parts = torch.split(z, groups.tolist())
    return torch.stack([part.logsumexp(dim=0) - part[0] for part in parts])
