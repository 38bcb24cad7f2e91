"""Trains a cross-encoder, on a corpus' responses and their negatives or on human scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.store import VectorStore
from ssrem.evaluators.base import Bounds
from ssrem.evaluators.cross_encoder_network import CrossNet, Inputs, logits, sigmoid
from ssrem.evaluators.learning import HeldOutSplit, negatives_by_response
from ssrem.negatives.base import Generator
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Labels, Progress, Rows, Sample, draw
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, shuffled_epochs, train

_HELD_OUT = 0.1
_STEPS_A_STATE = 50


def fit(
    evaluator: Any, candidates: Candidates, progress: Progress | None, checkpoint: Path | None
) -> Training:
    """Train by next-utterance prediction (Park et al. 2021, section 4.1.2; Zhao et al. 2020, section 5.2).

    With a prior, its slope and offset are fitted first; that is epoch 0, which can be the best one.
    """
    began, net, settings = time.perf_counter(), evaluator.fresh_net(), evaluator.settings
    generator = evaluator.negatives()
    counts = {TRAIN: settings.contexts, VALID: settings.valid_contexts}
    encoder: Any = net.base.cosine and net.base.cosine.encoder
    if encoder and checkpoint:
        # With a large encoder the cosines take a third of the time; a resumed training does not repeat them.
        encoder.cache = partial(VectorStore(checkpoint / "vectors").encode, encoder)
    try:
        learned, valid = (
            _examples(evaluator.name, candidates, split, count, generator, net, progress, checkpoint)
            for split, count in counts.items()
        )
    finally:
        if encoder:
            encoder.cache = None
    prior = settings.prior == "cosine"
    if prior:
        calibrate(net, learned.inputs.prior.astype(np.float64), learned.targets)
    key = [evaluator.name, settings.model_dump(), net.base.fingerprint]
    data = [*learned.data(), *valid.data()]
    unfinished = Checkpoint(checkpoint, key, data, every=_STEPS_A_STATE) if checkpoint else None
    learned, valid = (replace(part, inputs=net.with_frozen_output(part.inputs)) for part in (learned, valid))
    objective = CrossObjective(net, learned, valid, settings, settings.loss)
    curve = objective.learn(progress, unfinished, from_0=prior)
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
        notes.append(f"no epoch of {settings.epochs} was better than the prior alone, which is kept")
    _learned(evaluator, net, valid.inputs)
    return curve.training(began, rows, figures, notes)


def tune(evaluator: Any, labels: Labels, progress: Progress | None) -> Training:
    """Train by the mean squared error of f on human scores scaled to the unit range (Zhao et al. 2020, eq. 6).

    A tenth of the contexts is held out. After `fit`, or with a prior, slope and offset of the logit are fitted to the
    scores first; that is epoch 0, which can be the best one.
    """
    began, net, chosen = time.perf_counter(), evaluator.fresh_net(), evaluator.settings
    if evaluator.tensors:
        net.take(evaluator.tensors)
    from_0 = bool(evaluator.tensors) or chosen.prior == "cosine"
    seed = [chosen.seed, 6]
    human = HeldOutSplit.of(evaluator.name, labels.pairs, labels.scale, share=_HELD_OUT, seed=seed)
    inputs = net.with_frozen_output(net.base.read(human.samples))
    learned, valid = (
        Groups(inputs.part(rows), human.unit[rows].astype(np.float32), np.arange(len(rows)))
        for rows in human.split
    )
    if from_0:
        calibrate(net, logits(net, learned.inputs), learned.targets)
    curve = CrossObjective(net, learned, valid, chosen.tuning, "squared").learn(progress, None, from_0=from_0)
    figures = {"valid_loss": curve.best["valid_loss"]}
    if from_0:
        figures["prior_valid_loss"] = curve.history[0]["valid_loss"]
    _learned(evaluator, net, inputs, tuned=len(labels.pairs))
    return curve.training(began, human.counts, figures, [human.note])


def _learned(evaluator: Any, net: CrossNet, inputs: Inputs, tuned: int = 0) -> None:
    """Give the evaluator the network's weights, and the bounds of its scores of the inputs."""
    weights = net.weights()
    net.take(weights)
    evaluator.take(weights, {"f": Bounds.of(sigmoid(logits(net, inputs)))}, tuned=tuned)


@dataclass(frozen=True)
class Groups:
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
        """Number of samples in each group, int64 (n,)."""
        return np.diff(self.starts, append=len(self))

    def data(self) -> list[NDArray[Any]]:
        """What a checkpoint recognises the data by: all token ids; lengths, first and targets (m,); starts (n,)."""
        tokens = np.concatenate([np.array(ids, dtype=np.int64) for ids in self.inputs.ids])
        return [tokens, self.inputs.lengths, self.inputs.first, self.targets, self.starts]


@dataclass(frozen=True)
class CrossObjective:
    """The training of `net` on `learned`, validated on `valid`. kind: the loss, 'binary', 'softmax' or 'squared'.

    settings: epochs, batch size (in groups), learning rates, warm-up, patience, seed and precision.
    """

    net: CrossNet
    learned: Groups
    valid: Groups
    settings: Any
    kind: str

    def learn(self, progress: Progress | None, checkpoint: Checkpoint | None, *, from_0: bool) -> Curve:
        """Train with warm-up, decay and gradients clipped to norm 1; `net` ends in the state of the best epoch."""
        plan = Schedule(
            self.settings.epochs,
            self.settings.seed,
            patience=self.settings.patience,
            from_0=from_0,
            warmup=self.settings.warmup,
            bf16=self.net.base.device if self.settings.bf16 == "auto" else None,
            one_thread=False,
        )
        curve = train(self, plan, progress=progress, checkpoint=checkpoint)
        self.net.eval()
        return curve

    def groups(self) -> Sequence[Group]:
        trained = self.net.trained
        body = {name: value for name, value in trained.items() if name.startswith("model.")}
        head = {name: value for name, value in trained.items() if name not in body}
        return [Group(head, self.settings.head_learning_rate), Group(body, self.settings.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        lengths = np.maximum.reduceat(
            self.learned.inputs.lengths, self.learned.starts
        )  # of the longest sample in each group
        seed = [self.settings.seed, 3]
        return shuffled_epochs(len(lengths), self.settings.batch_size, seed, lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        starts, sizes = self.learned.starts[rows], self.learned.sizes[rows]
        samples = np.concatenate([np.arange(s, s + size) for s, size in zip(starts, sizes, strict=True)])
        targets = torch.from_numpy(self.learned.targets[samples]).to(self.net.base.device)
        self.net.train()
        z = self.net(**self.net.base.batch(self.learned.inputs, samples))
        return Loss.averaged(losses(self.kind, z.float(), targets, sizes).mean(), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss and, if there are negatives, the share of them that score below their true response.

        In epoch 0 also the training loss; in later epochs the trainer measures it during training.
        """
        z, examples = logits(self.net, self.valid.inputs), self.valid
        figures = {"valid_loss": self._mean_loss(z, examples)}
        if epoch == 0:
            figures["train_loss"] = self._mean_loss(logits(self.net, self.learned.inputs), self.learned)
        if examples.sizes.max() > 1:
            first = np.repeat(z[examples.starts], examples.sizes)
            above = np.heaviside(first - z, 0.5)
            figures["valid_gt_above"] = float(np.delete(above, examples.starts).mean())
        return figures

    def _mean_loss(self, z: Floats, examples: Groups) -> float:
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
        # The penalty keeps the slope finite if the values separate the targets without an error.
        total = float(np.mean(np.logaddexp(0, z) - wanted * z)) + 5e-6 * float(line[0]) ** 2
        return total, np.array([error @ values + 1e-5 * line[0], error.sum()])

    limits = ((0.0, None), (None, None))
    slope, offset = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=limits).x
    net.rescale(float(slope), float(offset))


def _examples(
    name: str,
    candidates: Candidates,
    split: int,
    count: int,
    generator: Generator,
    net: CrossNet,
    progress: Progress | None,
    folder: Path | None,
) -> Groups:
    """`count` responses of the split, drawn once, each with its negatives; responses without one are left out.

    progress: called for the negatives, then for the prior's cosines; either can take as long as the training. folder:
    where `negatives_by_response` keeps the negatives.
    """
    rows, seed = candidates.rows(split), net.settings.seed
    rows = draw(rows[candidates.has_context[rows]], count, [seed, 5, split])
    samples: list[Sample] = []
    starts: list[int] = []
    groups = negatives_by_response(
        name, candidates, split, rows, generator, seed, progress=progress, folder=folder
    )
    for true, negatives in groups:
        starts.append(len(samples))
        samples += [true, *(Sample(true.context, negative.text) for negative in negatives)]
    targets = np.zeros(len(samples), dtype=np.float32)
    targets[starts] = 1.0
    return Groups(net.base.read(samples, progress), targets, np.array(starts, dtype=np.int64))
