"""Learns the weights of a blend from human scores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from ssrem.agreement.correlate import spearman
from ssrem.evaluators.blend.config import BlendConfig
from ssrem.evaluators.blend.members import Members
from ssrem.evaluators.blend.state import State, scales, standardised
from ssrem.evaluators.core.human_scores import check_enough, number_of_contexts, on_scale
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Floats, Labels, Progress, Rows, Sample, folds_by_context
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

    w = a w₀ + d, where w₀ are the weights of the state `before` (without one those of `BlendConfig.prior`): a is
    free, l2 Σ d² is added to the mean squared error, and l2 is chosen by cross-validation by context. Without a state
    before, the parts are standardised by the annotated samples. Figures: `out_of_fold`, Spearman where each context is
    scored by weights and an l2 that were learned from the other folds, and `unlearned`, by the weights before.
    """
    began = time.perf_counter()
    low, high = scale
    unit = (on_scale(name, annotated, scale) - low) / (high - low)  # checked before an endpoint is asked
    pairs = [(sample, score) for (sample, _), score in zip(annotated, unit.tolist(), strict=True)]
    usable, left_out = _scored(name, members, pairs)
    samples, target = [sample for sample, _ in usable], np.array([score for _, score in usable])
    parts = _Parts.of(members, samples, before, config)
    fold = _folds(samples, config)
    path = _Path.of(parts.z, target, fold, parts.prior, began, progress)
    weights, offset = _ridge(parts.z, target, parts.prior, path.strength)
    figures = {
        "out_of_fold": _spearman(_out_of_fold(parts, samples, target, fold, config), target),
        "unlearned": _spearman(parts.z @ parts.prior, target),
    }
    note = f"learned from human scores from {low:g} to {high:g}; validation has contexts of its own"
    rows = {"train": len(samples), "contexts": len({sample.context for sample in samples})}
    return _learned(members, parts, weights, offset, path.training(began, rows, figures, (note, *left_out)))


def tune_on_sets(
    name: str,
    members: Members,
    sets: Mapping[str, Labels],
    before: State | None,
    config: BlendConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """The ridge regression of `tune` on the human scores of two or more annotated sets, which count equally.

    Scores are standardised within a set, and the parts centred there, so that neither its scale nor its mean teaches
    anything; f predicts how many standard deviations of a set a score lies above its mean. l2 is chosen by leaving one
    set out. Figures: `left_out SET`, Spearman on each set by weights and an l2 that were learned from the others, and
    `unlearned SET`, by the weights before.
    """
    began = time.perf_counter()
    left_out: list[str] = []
    for dataset, labels in sets.items():
        pairs, notes = _scored(f"{name}, {dataset}", members, labels.pairs)
        sets = {**sets, dataset: replace(labels, pairs=tuple(pairs))}
        left_out += [f"{dataset}: {note}" for note in notes]
    samples = [sample for labels in sets.values() for sample in labels.samples]
    parts = _Parts.of(members, samples, before, config)
    own = np.repeat(np.arange(len(sets)), [len(labels.pairs) for labels in sets.values()])
    human = np.concatenate([_standardised(labels.human) for labels in sets.values()])
    middles = np.array([parts.z[own == one].mean(axis=0) for one in range(len(sets))])
    # Rows of a set weigh as much together as those of another.
    weight = np.sqrt(len(own) / (len(sets) * np.bincount(own)[own]))
    z, target = (parts.z - middles[own]) * weight[:, None], human * weight
    figures = {}
    for one, dataset in enumerate(sets):
        rest, left = own != one, own == one
        fold = own[rest] if len(sets) > 2 else _folds([*compress(samples, rest)], config)
        weights, _ = _chosen_ridge(z[rest], target[rest], fold, parts.prior)
        for figure, learned in (("left_out", weights), ("unlearned", parts.prior)):
            figures[f"{figure} {dataset}"] = _spearman(parts.z[left] @ learned, human[left])
    for figure in ("left_out", "unlearned"):
        figures[f"{figure} mean"] = float(np.mean([figures[f"{figure} {dataset}"] for dataset in sets]))
    path = _Path.of(z, target, own, parts.prior, began, progress)
    weights, _ = _ridge(z, target, parts.prior, path.strength)
    listed = ", ".join(sets)
    note = (
        f"learned from the human scores of {listed}, standardised within each; validation leaves one set out"
    )
    rows = {"train": len(own), "sets": len(sets), "contexts": len({sample.context for sample in samples})}
    offset = -float(middles.mean(axis=0) @ weights)
    return _learned(members, parts, weights, offset, path.training(began, rows, figures, (note, *left_out)))


@dataclass(frozen=True)
class _Parts:
    """The parts' standardised scores z (n, m), on what scales, and the weights (m,) that learning starts from."""

    z: Floats
    centre: Floats
    spread: Floats
    prior: Floats

    @classmethod
    def of(
        cls, members: Members, samples: Sequence[Sample], before: State | None, config: BlendConfig
    ) -> _Parts:
        """Of the samples; scales and weights are those of the state `before`, else the samples' and `config.prior`."""
        values = members.scores(samples).values
        centre, spread = (before.centre, before.spread) if before else scales(values, values)
        prior = before.weights if before else config.prior
        return cls(standardised(values, centre, spread, config.limits), centre, spread, prior)


@dataclass(frozen=True)
class _Path:
    """Losses of each strength of regularisation. best: the one with the lowest loss out of fold, the strongest such."""

    history: tuple[dict[str, float], ...]
    best: int

    @classmethod
    def of(
        cls, z: Floats, target: Floats, fold: Rows, prior: Floats, began: float, progress: Progress | None
    ) -> _Path:
        """Of ridge regression of `target` (n,) on `z` (n, m). fold: int64 (n,), the fold that holds each row out."""
        history = []
        for at, strength in enumerate(_STRENGTHS, 1):
            held = np.zeros(len(z))
            for out in np.unique(fold).tolist():
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
        return cls(
            tuple(history), max(at for at, loss in enumerate(losses) if loss <= min(losses) * (1 + 1e-9))
        )

    @property
    def strength(self) -> float:
        """The strength of `best`."""
        return self.history[self.best]["l2"]

    def training(
        self, began: float, rows: Mapping[str, int], figures: Mapping[str, float], notes: tuple[str, ...]
    ) -> Training:
        """The record of the training."""
        chosen = {key: self.history[self.best][key] for key in ("valid_loss", "l2")}
        return Training(
            self.history, self.best + 1, time.perf_counter() - began, rows, {**chosen, **figures}, notes
        )


def _scored(
    name: str, members: Members, annotated: Sequence[tuple[Sample, float]]
) -> tuple[list[tuple[Sample, float]], tuple[str, ...]]:
    """The pairs that every part scores, and a note on the others; EvaluatorError if too few are left."""
    check_enough(name, [sample for sample, _ in annotated])  # before an endpoint is asked
    scored = members.scores([sample for sample, _ in annotated])
    usable = [pair for pair, complete in zip(annotated, scored.complete.tolist(), strict=True) if complete]
    kind = f"responses ({scored.notes[0]})" if scored.notes else "responses"
    check_enough(name, [sample for sample, _ in usable], kind)
    return usable, scored.notes


def _learned(
    members: Members, parts: _Parts, weights: Floats, offset: float, training: Training
) -> tuple[State, Training]:
    """The state with these weights, and the record with them as shares."""
    total = float(np.abs(weights).sum()) or 1.0
    shares = {f"weight {part}": float(one) / total for part, one in zip(members.names, weights, strict=True)}
    bounds = Bounds.of(offset + parts.z @ weights)
    state = State(weights, parts.centre, parts.spread, offset, bounds, tuned=len(parts.z))
    return state, replace(training, figures={**training.figures, **shares})


def _out_of_fold(
    parts: _Parts, samples: Sequence[Sample], target: Floats, fold: Rows, config: BlendConfig
) -> Floats:
    """f (n,) of each sample by weights, and an l2, that were learned from the other folds."""
    held = np.zeros(len(target))
    for out in np.unique(fold).tolist():
        rest = fold != out
        inner = _folds([*compress(samples, rest)], config)
        weights, offset = _chosen_ridge(parts.z[rest], target[rest], inner, parts.prior)
        held[~rest] = offset + parts.z[~rest] @ weights
    return held


def _folds(samples: Sequence[Sample], config: BlendConfig) -> Rows:
    """Folds by context, int64 (n,)."""
    return folds_by_context(samples, min(config.folds, number_of_contexts(samples)), config.seed)


def _spearman(one: Floats, other: Floats) -> float:
    """0 where it is undefined, as one side is the same for all."""
    return spearman(one, other).statistic or 0.0


def _standardised(human: Floats) -> Floats:
    return np.asarray((human - human.mean()) / human.std())


def _ridge(z: Floats, target: Floats, prior: Floats, strength: float) -> tuple[Floats, float]:
    """Weights and offset of `tune`'s minimum; its least-norm solution where the prior gives all samples one value."""
    middle, mean = z.mean(axis=0), target.mean()
    centred = z - middle
    design = np.column_stack([centred @ prior, centred])
    penalty = np.diag([0.0, *np.full(z.shape[1], strength)])
    solved = np.linalg.pinv(design.T @ design / len(z) + penalty) @ (design.T @ (target - mean) / len(z))
    weights = solved[0] * prior + solved[1:]
    return weights, float(mean - middle @ weights)


def _chosen_ridge(z: Floats, target: Floats, fold: Rows, prior: Floats) -> tuple[Floats, float]:
    """`_ridge` with the strength that is best out of fold."""
    return _ridge(z, target, prior, _Path.of(z, target, fold, prior, 0.0, None).strength)
