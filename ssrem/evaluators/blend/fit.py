"""Learns the weights of a blend without human scores, by telling true responses from their negatives."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators.blend.config import BlendConfig
from ssrem.evaluators.blend.members import Members
from ssrem.evaluators.blend.negatives import Trials, above, groups_of, length_correlations, trials_of
from ssrem.evaluators.blend.state import State, scales, standardised
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress
from ssrem.training import Training

_BLOCK = 256
# Keeps the coefficient of the length finite where the length alone tells all true responses apart.
_LENGTH_L2 = 1e-5


def fit(
    name: str,
    members: Members,
    candidates: Candidates,
    config: BlendConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Weights by conditional logistic regression: each true response against its own negatives.

    Minimises -log softmax(Σ w z + β log(1 + words))[true], averaged, + l2 Σ (w - mean w)²: it is the equal weights
    that are held on to, not zero. A control has no weight. The strongest l2 is taken whose validation loss is
    within one standard error of the lowest. The weights that are kept sum to 1, and β is left out.
    """
    began = time.perf_counter()
    groups = {split: groups_of(name, candidates, split, config) for split in (TRAIN, VALID)}
    samples = [sample for split in (TRAIN, VALID) for group in groups[split] for sample in group]
    blocks, strengths = range(0, len(samples), _BLOCK), config.strengths
    steps, rows = len(blocks) + len(strengths), []
    for done, first in enumerate(blocks, 1):
        rows.append(members.features(samples[first : first + _BLOCK]).values)
        if progress is not None:
            progress(done, steps)
    values = np.concatenate(rows)
    learned = sum(map(len, groups[TRAIN]))
    centre, spread = scales(values[:learned])
    z = standardised(values, centre, spread, config.clip)
    train, valid = trials_of(groups[TRAIN], z[:learned]), trials_of(groups[VALID], z[learned:])
    solutions, losses, history = [], [], []
    for at, strength in enumerate(strengths, 1):
        weights, beta = _minimised(train, strength, members.judging, config)
        losses.append(_losses(valid, weights, beta))
        solutions.append((weights, beta))
        history.append(
            {
                "epoch": at,
                "l2": strength,
                "train_loss": float(_losses(train, weights, beta).mean()),
                "valid_loss": float(losses[-1].mean()),
                "valid_gt_above": above(valid.f(weights), valid.present),
                "seconds": time.perf_counter() - began,
            }
        )
        if progress is not None:
            progress(len(blocks) + at, steps)
    chosen = _chosen(losses)
    weights, beta = solutions[chosen]
    notes = [
        f"{part} is the same for all responses and tells nothing"
        for part, column in zip(members.names, values[:learned].T, strict=True)
        if np.ptp(column) == 0
    ]
    total = float(np.abs(weights).sum())
    if total < 1e-6:
        weights, total = members.judging.astype(np.float64), float(members.judging.sum())
        notes.append("no part tells true responses from negatives: the weights are equal")
    weights = weights / total
    f = valid.f(weights)
    figures = {key: history[chosen][key] for key in ("valid_loss", "valid_gt_above", "l2")}
    figures |= {f"weight {part}": float(weight) for part, weight in zip(members.names, weights, strict=True)}
    figures |= {
        f"gt_above {part}": above(valid.z[:, :, at], valid.present) for at, part in enumerate(members.names)
    }
    figures["gt_above equal weights"] = above(valid.z[:, :, members.judging].mean(axis=2), valid.present)
    figures["gt_above length"] = above(valid.words, valid.present)
    figures["length_coefficient"] = beta
    figures |= length_correlations(f, valid)
    state = State(weights, centre, spread, 0.0, Bounds.of(f[valid.present]))
    counts = {
        "train": len(train.z),
        "valid": len(valid.z),
        "train_negatives": learned - len(train.z),
        "valid_negatives": len(samples) - learned - len(valid.z),
    }
    seconds = time.perf_counter() - began
    return state, Training(tuple(history), chosen + 1, seconds, counts, figures, tuple(notes))


def _log_softmax(trials: Trials, weights: Floats, beta: float) -> Floats:
    logits = np.where(trials.present, trials.f(weights) + beta * trials.words, -np.inf)
    logits -= logits.max(axis=1, keepdims=True)
    log_p: Floats = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return log_p


def _losses(trials: Trials, weights: Floats, beta: float) -> Floats:
    """-log p(true response), float64 (n,)."""
    return -_log_softmax(trials, weights, beta)[:, 0]


def _minimised(
    trials: Trials, strength: float, judging: NDArray[np.bool_], config: BlendConfig
) -> tuple[Floats, float]:
    """The weights and the coefficient of the length that minimise the loss of `fit`, which is convex."""
    from scipy.optimize import minimize

    parts = trials.z.shape[2]
    columns = np.concatenate([trials.z, trials.words[:, :, None]], axis=2)

    def loss(at: Floats) -> tuple[float, Floats]:
        weights, beta = at[:parts], float(at[parts])
        log_p = _log_softmax(trials, weights, beta)
        error = np.exp(log_p)
        error[:, 0] -= 1
        gradient = np.einsum("nk,nkm->m", error, columns) / len(columns)
        apart = np.where(judging, weights - weights[judging].mean(), 0.0)
        gradient[:parts] += 2 * strength * apart
        gradient[parts] += 2 * _LENGTH_L2 * beta
        return float(strength * apart @ apart + _LENGTH_L2 * beta**2 - log_p[:, 0].mean()), gradient

    lowest = 0.0 if config.non_negative else None
    free: tuple[float | None, float | None] = (lowest, None)
    bounds = [free if judges else (0.0, 0.0) for judges in judging.tolist()]
    bounds.append((None, None) if config.length_control else (0.0, 0.0))
    start = np.append(judging / judging.sum(), 0.0)
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-8}
    solved = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return np.asarray(solved.x[:parts], dtype=np.float64), float(solved.x[parts])


def _chosen(losses: Sequence[Floats]) -> int:
    """The strongest regularisation that is not worse than the best by more than a standard error, over responses."""
    best = min(range(len(losses)), key=lambda at: (float(losses[at].mean()), -at))
    chosen = best
    for at in range(best + 1, len(losses)):
        worse = losses[at] - losses[best]
        error = worse.std(ddof=1) / np.sqrt(len(worse)) if len(worse) > 1 else 0.0
        if worse.mean() <= error:
            chosen = at
    return chosen
