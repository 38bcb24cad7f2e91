"""Learns the weights of a blend from human scores."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ssrem.agreement.cross_validation import folds_by_context
from ssrem.evaluators.blend.config import BlendConfig
from ssrem.evaluators.blend.members import Members
from ssrem.evaluators.blend.state import State, scales, standardised
from ssrem.evaluators.core.human_scores import check_enough, on_scale
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Floats, Progress, Sample
from ssrem.training import Training

_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


def tune(
    name: str,
    members: Members,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    before: State | None,
    config: BlendConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Ridge regression of (score - low) / (high - low) on the parts, in closed form.

    w = a w₀ + d, where w₀ are the weights of the state `before` (without one equal weights, 0 for a control): a is
    free, l2 Σ d² is added to the mean squared error, and l2 is chosen by cross-validation by context. Without a state
    before, the parts are standardised by the annotated samples.
    """
    began = time.perf_counter()
    low, high = scale
    human = on_scale(name, annotated, scale)
    samples = [sample for sample, _ in annotated]
    contexts = len({sample.context for sample in samples})
    check_enough(name, samples)
    values, _ = members.scores(samples)
    target = (human - low) / (high - low)
    centre, spread = (before.centre, before.spread) if before else scales(values)
    z = standardised(values, centre, spread, config.clip)
    prior = before.weights if before else members.judging / members.judging.sum()
    fold = folds_by_context(samples, min(config.folds, contexts), config.seed)
    history = []
    for at, strength in enumerate(_STRENGTHS, 1):
        held = np.zeros(len(z))
        for out in range(int(fold.max()) + 1):
            weights, offset = _ridge(z[fold != out], target[fold != out], prior, strength)
            held[fold == out] = offset + z[fold == out] @ weights
        weights, offset = _ridge(z, target, prior, strength)
        history.append(
            {
                "epoch": at,
                "l2": strength,
                "train_loss": float(np.mean((offset + z @ weights - target) ** 2)),
                "valid_loss": float(np.mean((held - target) ** 2)),
                "seconds": time.perf_counter() - began,
            }
        )
        if progress is not None:
            progress(at, len(_STRENGTHS))
    losses = [epoch["valid_loss"] for epoch in history]
    best = max(at for at, loss in enumerate(losses) if loss <= min(losses) * (1 + 1e-9))
    weights, offset = _ridge(z, target, prior, _STRENGTHS[best])
    bounds = Bounds.of(offset + z @ weights)
    total = float(np.abs(weights).sum()) or 1.0
    figures = {key: history[best][key] for key in ("valid_loss", "l2")}
    figures |= {
        f"weight {part}": float(weight) / total for part, weight in zip(members.names, weights, strict=True)
    }
    training = Training(
        history=tuple(history),
        best_epoch=best + 1,
        seconds=time.perf_counter() - began,
        rows={"train": len(z), "contexts": contexts},
        figures=figures,
        notes=(f"learned from human scores from {low:g} to {high:g}; validation has contexts of its own",),
    )
    return State(weights, centre, spread, offset, bounds, tuned=len(z)), training


def _ridge(z: Floats, target: Floats, prior: Floats, strength: float) -> tuple[Floats, float]:
    """Weights and offset of `tune`'s minimum; its least-norm solution where the prior gives all samples one value."""
    middle, mean = z.mean(axis=0), target.mean()
    centred = z - middle
    design = np.column_stack([centred @ prior, centred])
    penalty = np.diag([0.0, *np.full(z.shape[1], strength)])
    solved = np.linalg.pinv(design.T @ design / len(z) + penalty) @ (design.T @ (target - mean) / len(z))
    weights = solved[0] * prior + solved[1:]
    return weights, float(mean - middle @ weights)
