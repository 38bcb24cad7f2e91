"""What a cross-encoder learns from: a corpus' responses and their negatives, or human scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ssrem.evaluators.base import Training
from ssrem.evaluators.core.candidate_columns import draw, negatives_by_response
from ssrem.evaluators.core.human_scores import HumanScores
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.inputs import Base
from ssrem.evaluators.cross_encoder.model import CrossNet, logits
from ssrem.evaluators.cross_encoder.state import State, sigmoid
from ssrem.evaluators.cross_encoder.training import CrossObjective, Examples, Rates, learn
from ssrem.negatives.base import Generator
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress, Sample
from ssrem.training.checkpoint import Checkpoint

_HELD_OUT = 0.1
_STEPS_A_STATE = 50


def fit(
    name: str,
    base: Base,
    net: CrossNet,
    config: CrossEncoderConfig,
    candidates: Candidates,
    generator: Generator,
    progress: Progress | None,
    checkpoint: Path | None,
) -> tuple[State, Training]:
    """Next-utterance prediction (Park et al. 2021, section 4.1.2; Zhao et al. 2020, section 5.2); `net` learns."""
    began = time.perf_counter()
    counts = {TRAIN: config.contexts, VALID: config.valid_contexts}
    learned, valid = (
        _examples(name, candidates, split, counts[split], generator, base, config) for split in (TRAIN, VALID)
    )
    if config.prior == "cosine":
        calibrate(net, learned.inputs.prior.astype(np.float64), learned.targets)
    rates = Rates(
        config.loss, config.epochs, config.batch_size, config.learning_rate, config.head_learning_rate,
        from_0=config.prior == "cosine",
    )  # fmt: skip
    settings = [name, asdict(replace(config, device="auto")), base.fingerprint]
    data = [*learned.data(), *valid.data()]
    unfinished = Checkpoint.of(checkpoint, settings, data, every=_STEPS_A_STATE)
    learned, valid = (replace(part, inputs=net.held(base, part.inputs)) for part in (learned, valid))
    objective = CrossObjective(base, net, learned, valid, rates, config.seed)
    curve = learn(objective, config, progress, unfinished)
    names = ("valid_loss", "valid_gt_above")
    figures = {figure: curve.best[figure] for figure in names}
    if rates.from_0:
        figures |= {f"prior_{figure}": curve.history[0][figure] for figure in names}
    rows: dict[str, int] = {}
    for part, examples in (("train", learned), ("valid", valid)):
        rows |= {part: len(examples.starts), f"{part}_negatives": len(examples) - len(examples.starts)}
    state = State(net.weights(), Bounds.of(sigmoid(logits(base, net, valid.inputs))))
    return state, curve.training(began, rows, figures, _notes(learned, valid, curve.best_epoch, config))


def tune(
    name: str,
    base: Base,
    net: CrossNet,
    config: CrossEncoderConfig,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    rates: Rates,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Mean squared error of f on human scores scaled to the unit range (Zhao et al. 2020, eq. 6); `net` learns.

    Before the first step, slope and offset of the logit are fitted to the scores; that is epoch 0.
    """
    began = time.perf_counter()
    human = HumanScores.of(name, annotated, scale, share=_HELD_OUT, seed=[config.seed, 6])
    inputs = net.held(base, base.read(human.samples))
    learned, valid = (
        Examples(inputs.part(rows), human.unit[rows].astype(np.float32), np.arange(len(rows)))
        for rows in (np.flatnonzero(human.held_out == out) for out in (False, True))
    )
    if rates.from_0:
        calibrate(net, logits(base, net, learned.inputs), learned.targets)
    objective = CrossObjective(base, net, learned, valid, rates, config.seed)
    curve = learn(objective, config, progress, None)
    figures = {"valid_loss": curve.best["valid_loss"]}
    if rates.from_0:
        figures["prior_valid_loss"] = curve.history[0]["valid_loss"]
    training = curve.training(began, human.counts, figures, [human.note])
    bounds = Bounds.of(sigmoid(logits(base, net, inputs)))
    return State(net.weights(), bounds, tuned=len(annotated)), training


def calibrate(net: CrossNet, values: Floats, targets: NDArray[np.float32]) -> None:
    """Make the network's logits `values` its best linear fit to targets in [0, 1] under the log loss.

    A slope below 0 would turn the prior around: then it is 0.
    """
    wanted = targets.astype(np.float64)

    def loss(line: Floats) -> tuple[float, Floats]:
        z = line[0] * values + line[1]
        error = (sigmoid(z) - wanted) / len(z)
        # Where the targets can be told apart without an error, the slope would have no end.
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
    base: Base,
    config: CrossEncoderConfig,
) -> Examples:
    """`count` responses of the split, drawn once, each with its negatives; those without one are left out."""
    rows = candidates.rows(split)
    rows = rows[candidates.context_stop[rows] > candidates.context_start[rows]]
    rows = draw(rows, count, [config.seed, 5, split])
    samples: list[Sample] = []
    starts: list[int] = []
    for true, negatives in negatives_by_response(name, candidates, split, rows, generator, config.seed):
        starts.append(len(samples))
        samples += [true, *(Sample(true.context, negative.text) for negative in negatives)]
    targets = np.zeros(len(samples), dtype=np.float32)
    targets[starts] = 1.0
    return Examples(base.read(samples), targets, np.array(starts, dtype=np.int64))


def _notes(train: Examples, valid: Examples, best_epoch: int, config: CrossEncoderConfig) -> tuple[str, ...]:
    cut: dict[str, Any] = {"training": train, "validation": valid}
    notes = [
        f"{part}: {int(some.inputs.truncated.sum())} of {len(some)} samples are truncated"
        for part, some in cut.items()
        if some.inputs.truncated.any()
    ]
    if best_epoch == 0:
        notes.append(f"no epoch of {config.epochs} was better than the prior alone, which is kept")
    return tuple(notes)
