"""What a cross-encoder learns from: a corpus' responses and their negatives, or human scores."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.core.human_scores import check_enough, held_out, on_scale
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.cross_encoder.cross_encoder import CrossEncoder, CrossEncoderConfig, State, sigmoid
from ssrem.evaluators.cross_encoder.inputs import Base
from ssrem.evaluators.cross_encoder.model import CrossNet, logits
from ssrem.evaluators.cross_encoder.resume import Checkpoint
from ssrem.evaluators.cross_encoder.trainer import Examples, Plan, learn
from ssrem.negatives.base import Generator
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress, Rows, Sample

_HELD_OUT = 0.1
_STEPS_A_STATE = 50
_WORDS = {TRAIN: "training", VALID: "validation"}


def fit(
    evaluator: CrossEncoder,
    candidates: Candidates,
    generator: Generator,
    progress: Progress | None,
    checkpoint: Path | None,
) -> tuple[State, Training, CrossNet]:
    """Next-utterance prediction (Park et al. 2021, section 4.1.2; Zhao et al. 2020, section 5.2)."""
    began = time.perf_counter()
    name, config, base = evaluator.name, evaluator.config, evaluator.base
    train = _examples(name, candidates, TRAIN, config.contexts, generator, base, config)
    valid = _examples(name, candidates, VALID, config.valid_contexts, generator, base, config)
    net = CrossNet(base, config, evaluator.head)
    if config.prior == "cosine":
        calibrate(net, train.inputs.prior.astype(np.float64), train.targets)
    plan = Plan(
        config.loss, config.epochs, config.batch_size, config.learning_rate, config.head_learning_rate,
        from_0=config.prior == "cosine",
    )  # fmt: skip
    kept = None
    if checkpoint is not None:
        about = {**asdict(replace(config, device="auto")), "evaluator": name, "base": base.fingerprint}
        key = hashlib.sha256(json.dumps([about, train.digest, valid.digest]).encode()).hexdigest()
        kept = Checkpoint(checkpoint, key, every=_STEPS_A_STATE)
    train, valid = (replace(part, inputs=net.held(base, part.inputs)) for part in (train, valid))
    history, best_epoch = learn(base, net, train, valid, plan, config, progress, kept)
    best = next(entry for entry in history if entry["epoch"] == best_epoch)
    figures = {figure: best[figure] for figure in ("valid_loss", "valid_gt_above")}
    if plan.from_0:
        figures |= {f"prior_{figure}": history[0][figure] for figure in ("valid_loss", "valid_gt_above")}
    training = Training(
        history=history,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={
            "train": len(train.starts),
            "train_negatives": len(train) - len(train.starts),
            "valid": len(valid.starts),
            "valid_negatives": len(valid) - len(valid.starts),
        },
        figures=figures,
        notes=_notes(train, valid, best_epoch, config),
    )
    state = State(net.weights(), Bounds.of(sigmoid(logits(base, net, valid.inputs))))
    return state, training, net


def tune(
    evaluator: CrossEncoder,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    net: CrossNet,
    plan: Plan,
    *,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Mean squared error of f on human scores scaled to the unit range (Zhao et al. 2020, eq. 6); `net` learns.

    Before the first step, slope and offset of the logit are fitted to the scores; that is epoch 0.
    """
    began = time.perf_counter()
    name, config, base = evaluator.name, evaluator.config, evaluator.base
    low, high = scale
    on_scale(name, annotated, scale)
    # Sorted, so that the rows' order in a file does not show.
    ordered = sorted(annotated, key=lambda pair: (pair[0].context, pair[0].response, pair[1]))
    samples = [sample for sample, _ in ordered]
    check_enough(name, samples)
    out = held_out(samples, _HELD_OUT, [config.seed, 6])
    inputs = net.held(base, base.read(samples))
    targets = (np.array([score for _, score in ordered]) - low) / (high - low)
    train, valid = (
        Examples(inputs.part(rows), targets[rows].astype(np.float32), np.arange(len(rows)))
        for rows in (np.flatnonzero(~out), np.flatnonzero(out))
    )
    if plan.from_0:
        calibrate(net, logits(base, net, train.inputs), train.targets)
    history, best_epoch = learn(base, net, train, valid, plan, config, progress, None)
    best = next(entry for entry in history if entry["epoch"] == best_epoch)
    figures = {"valid_loss": best["valid_loss"]}
    if plan.from_0:
        figures["prior_valid_loss"] = history[0]["valid_loss"]
    training = Training(
        history=history,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={
            "train": len(train),
            "valid": len(valid),
            "contexts": len({sample.context for sample in samples}),
        },
        figures=figures,
        notes=(f"learned human scores from {low:g} to {high:g}; validation has contexts of its own",),
    )
    bounds = Bounds.of(sigmoid(logits(base, net, inputs)))
    return State(net.weights(), bounds, tuned=len(ordered)), training


def calibrate(net: CrossNet, values: Floats, targets: NDArray[np.float32]) -> None:
    """Make the network's logits `values` its best linear fit to targets in [0, 1] under the log loss.

    A slope below 0 would turn the prior around: then it is 0.
    """
    from scipy.optimize import minimize

    wanted = targets.astype(np.float64)

    def loss(found: Floats) -> tuple[float, Floats]:
        z = found[0] * values + found[1]
        error = (sigmoid(z) - wanted) / len(z)
        # Where the targets can be told apart without an error, the slope would have no end.
        total = float(np.mean(np.logaddexp(0, z) - wanted * z)) + 5e-6 * float(found[0]) ** 2
        return total, np.array([error @ values + 1e-5 * found[0], error.sum()])

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
    if len(rows) > count:
        rows = np.sort(np.random.default_rng([config.seed, 5, split]).choice(rows, count, replace=False))
    samples: list[Sample] = []
    targets: list[float] = []
    starts: list[int] = []
    row = -1
    for negatives in generator.generate(candidates, rows, seed=config.seed):
        for negative in negatives:
            if negative.response != row:
                row = negative.response
                starts.append(len(samples))
                samples.append(_sample(candidates, row))
                targets.append(1.0)
            samples.append(Sample(samples[starts[-1]].context, negative.text))
            targets.append(0.0)
    if not starts:
        raise EvaluatorError(
            f"{name}: no response of the {_WORDS[split]} split has a negative from {generator.name}; "
            "more conversations are needed, or other negatives"
        )
    where: Rows = np.array(starts, dtype=np.int64)
    return Examples(base.read(samples), np.array(targets, dtype=np.float32), where)


def _sample(candidates: Candidates, row: int) -> Sample:
    turns = range(int(candidates.context_start[row]), int(candidates.context_stop[row]))
    context = tuple(candidates.texts[turn] for turn in turns)
    return Sample(context, candidates.texts[int(candidates.response[row])])


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
