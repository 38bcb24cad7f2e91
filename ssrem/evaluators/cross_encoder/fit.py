"""Trains a cross-encoder: on a corpus' responses and their negatives, or on human scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.evaluators.core.candidate_columns import draw, negatives_by_response
from ssrem.evaluators.core.human_scores import HeldOutSplit
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.inputs import Inputs
from ssrem.evaluators.cross_encoder.model import CrossNet, logits, sigmoid
from ssrem.negatives.base import Generator
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress, Rows, Sample
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, shuffled_epochs, train

_HELD_OUT = 0.1
_STEPS_A_STATE = 50


def fit(
    name: str,
    net: CrossNet,
    candidates: Candidates,
    generator: Generator,
    run: Run,
) -> tuple[NetworkState, Training]:
    """Next-utterance prediction (Park et al. 2021, section 4.1.2; Zhao et al. 2020, section 5.2); `net` learns.

    With a prior, its slope and offset are fitted first; that is epoch 0, which can be the best one.
    """
    config, counts = net.config, {TRAIN: net.config.contexts, VALID: net.config.valid_contexts}
    learned, valid = (
        _examples(name, candidates, split, counts[split], generator, net) for split in (TRAIN, VALID)
    )
    prior = config.prior == "cosine"
    if prior:
        calibrate(net, learned.inputs.prior.astype(np.float64), learned.targets)
    settings = [name, asdict(replace(config, device="auto")), net.base.fingerprint]
    data = [*learned.data(), *valid.data()]
    unfinished = run.unfinished(settings, data, every=_STEPS_A_STATE)
    learned, valid = (replace(part, inputs=net.with_frozen_output(part.inputs)) for part in (learned, valid))
    curve = CrossObjective(net, learned, valid, config, config.loss).learn(
        run.progress, unfinished, from_0=prior
    )
    names = ("valid_loss", "valid_gt_above")
    figures = {figure: curve.best[figure] for figure in names}
    if prior:
        figures |= {f"prior_{figure}": curve.history[0][figure] for figure in names}
    rows: dict[str, int] = {}
    for part, examples in (("train", learned), ("valid", valid)):
        rows |= {part: len(examples.starts), f"{part}_negatives": len(examples) - len(examples.starts)}
    notes = [
        f"{part}: {int(examples.inputs.truncated.sum())} of {len(examples)} samples are truncated"
        for part, examples in (("training", learned), ("validation", valid))
        if examples.inputs.truncated.any()
    ]
    if curve.best_epoch == 0:
        notes.append(f"no epoch of {config.epochs} was better than the prior alone, which is kept")
    state = NetworkState(net.weights(), {"f": Bounds.of(sigmoid(logits(net, valid.inputs)))})
    return state, curve.training(run.began, rows, figures, notes)


def tune(
    name: str,
    net: CrossNet,
    config: CrossEncoderConfig,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    run: Run,
    *,
    from_0: bool,
) -> tuple[NetworkState, Training]:
    """Mean squared error of f on human scores scaled to the unit range (Zhao et al. 2020, eq. 6); `net` learns.

    A tenth of the contexts is held out. from_0: slope and offset of the logit are fitted to the scores first; that is
    epoch 0, which can be the best one.
    """
    human = HeldOutSplit.of(name, annotated, scale, share=_HELD_OUT, seed=[config.seed, 6])
    inputs = net.with_frozen_output(net.base.read(human.samples))
    learned, valid = (
        Examples(inputs.part(rows), human.unit[rows].astype(np.float32), np.arange(len(rows)))
        for rows in human.split
    )
    if from_0:
        calibrate(net, logits(net, learned.inputs), learned.targets)
    curve = CrossObjective(net, learned, valid, config, "squared").learn(run.progress, None, from_0=from_0)
    figures = {"valid_loss": curve.best["valid_loss"]}
    if from_0:
        figures["prior_valid_loss"] = curve.history[0]["valid_loss"]
    training = curve.training(run.began, human.counts, figures, [human.note])
    bounds = Bounds.of(sigmoid(logits(net, inputs)))
    return NetworkState(net.weights(), {"f": bounds}, tuned=len(annotated)), training


@dataclass(frozen=True)
class Examples:
    """Inputs with targets in [0, 1], float32 (m,), in groups; starts, int64 (n,): the first row of each group.

    A group is a true response followed by its negatives, or one annotated response.
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
class CrossObjective:
    """`net`, learned from `learned` and judged on `valid`. kind: of the loss, 'binary', 'softmax' or 'squared'.

    config: its epochs, batch size (in groups) and rates.
    """

    net: CrossNet
    learned: Examples
    valid: Examples
    config: CrossEncoderConfig
    kind: str

    def learn(self, progress: Progress | None, checkpoint: Checkpoint | None, *, from_0: bool) -> Curve:
        """Warm-up and decay, gradients clipped to norm 1; `net` ends in the state of the best epoch."""
        config = self.config
        plan = Plan(
            config.epochs,
            config.seed,
            patience=config.patience,
            from_0=from_0,
            warmup=config.warmup,
            bf16=self.net.base.device if config.bf16 == "auto" else None,
            one_thread=False,
        )
        curve = train(self, plan, progress=progress, checkpoint=checkpoint)
        self.net.eval()
        return curve

    def groups(self) -> Sequence[Group]:
        trained = self.net.trained
        body = {name: value for name, value in trained.items() if name.startswith("model.")}
        head = {name: value for name, value in trained.items() if name not in body}
        return [Group(head, self.config.head_learning_rate), Group(body, self.config.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        lengths = self.learned.lengths
        return shuffled_epochs(len(lengths), self.config.batch_size, [self.config.seed, 3], lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        samples, sizes = self.learned.rows(rows), self.learned.sizes[rows]
        targets = torch.from_numpy(self.learned.targets[samples]).to(self.net.base.device)
        self.net.train()
        z = self.net(**self.net.base.batch(self.learned.inputs, samples))
        return Loss.averaged(losses(self.kind, z.float(), targets, sizes).mean(), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss and, with negatives, the share of them that score below the true response.

        In epoch 0 the training loss too, which the trainer measures while it learns.
        """
        z, examples = logits(self.net, self.valid.inputs), self.valid
        figures = {"valid_loss": self._mean_loss(z, examples)}
        if epoch == 0:
            figures["train_loss"] = self._mean_loss(logits(self.net, self.learned.inputs), self.learned)
        if examples.sizes.max() > 1:
            first = np.repeat(z[examples.starts], examples.sizes)
            above = (first > z) + 0.5 * (first == z)
            figures["valid_gt_above"] = float(np.delete(above, examples.starts).mean())
        return figures

    def _mean_loss(self, z: Floats, examples: Examples) -> float:
        targets = torch.from_numpy(examples.targets.astype(np.float64))
        return float(losses(self.kind, torch.from_numpy(z), targets, examples.sizes).mean())


def losses(kind: str, z: torch.Tensor, targets: torch.Tensor, sizes: Rows) -> torch.Tensor:
    """Loss of each sample or, for 'softmax', of each group, from logits and targets (b,) and the groups' sizes."""
    if kind == "squared":
        return (torch.sigmoid(z) - targets) ** 2
    if kind == "binary":
        return torch.nn.functional.binary_cross_entropy_with_logits(z, targets, reduction="none")
    parts = torch.split(z, sizes.tolist())
    return torch.stack([part.logsumexp(dim=0) - part[0] for part in parts])


def calibrate(net: CrossNet, values: Floats, targets: NDArray[np.float32]) -> None:
    """Make the network's logits the linear function of `values` with the least log loss on targets in [0, 1].

    The slope is at least 0, so that the order of the values is never reversed.
    """
    from scipy.optimize import minimize

    wanted = targets.astype(np.float64)

    def loss(line: Floats) -> tuple[float, Floats]:
        z = line[0] * values + line[1]
        error = (sigmoid(z) - wanted) / len(z)
        # The penalty bounds the slope if the values separate the targets without an error.
        total = float(np.mean(np.logaddexp(0, z) - wanted * z)) + 5e-6 * float(line[0]) ** 2
        return total, np.array([error @ values + 1e-5 * line[0], error.sum()])

    limits = ((0.0, None), (None, None))
    slope, offset = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=limits).x
    net.rescale(float(slope), float(offset))


def _examples(
    name: str, candidates: Candidates, split: int, count: int, generator: Generator, net: CrossNet
) -> Examples:
    """`count` responses of the split, drawn once, each with its negatives; responses without one are left out."""
    rows, seed = candidates.rows(split), net.config.seed
    rows = rows[candidates.context_stop[rows] > candidates.context_start[rows]]
    rows = draw(rows, count, [seed, 5, split])
    samples: list[Sample] = []
    starts: list[int] = []
    for true, negatives in negatives_by_response(name, candidates, split, rows, generator, seed):
        starts.append(len(samples))
        samples += [true, *(Sample(true.context, negative.text) for negative in negatives)]
    targets = np.zeros(len(samples), dtype=np.float32)
    targets[starts] = 1.0
    return Examples(net.base.read(samples), targets, np.array(starts, dtype=np.int64))
