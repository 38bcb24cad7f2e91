"""Learns the weights of a blend without human scores, by telling true responses from their negatives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlate import spearman
from ssrem.errors import EvaluatorError
from ssrem.evaluators.blend.config import BlendConfig
from ssrem.evaluators.blend.members import Members, PartScores
from ssrem.evaluators.blend.state import State, scales, standardised
from ssrem.evaluators.core.candidate_columns import draw, negatives_by_response
from ssrem.evaluators.core.scaling import Bounds
from ssrem.negatives import load_generator
from ssrem.negatives.turns import KIND_OF
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress, Sample
from ssrem.training import Training

_BLOCK = 256
# Keeps the coefficient of the length finite where the length alone tells all true responses from their negatives.
_LENGTH_L2 = 1e-5


@dataclass(frozen=True)
class Trials:
    """True responses, each before its negatives. z (n, 1 + k, m), words (n, 1 + k): log(1 + number of words).

    present (n, 1 + k): whether there is such a negative; elsewhere the values are 0.
    """

    z: Floats
    words: Floats
    present: NDArray[np.bool_]

    @classmethod
    def of(cls, groups: Sequence[Sequence[Sample]], z: Floats) -> Trials:
        """z (samples in all, m): of the groups' samples in order."""
        present = np.arange(max(map(len, groups))) < np.array([len(group) for group in groups])[:, None]
        laid, words = np.zeros((*present.shape, z.shape[1])), np.zeros(present.shape)
        laid[present] = z
        words[present] = [np.log1p(len(sample.response.split())) for group in groups for sample in group]
        return cls(laid, words, present)

    def f(self, weights: Floats) -> Floats:
        """(n, 1 + k)."""
        return self.z @ weights

    def above(self, f: Floats) -> float:
        """The share of negatives that the true response outranks by f (n, 1 + k); ties count half."""
        apart = f[:, :1] - f[:, 1:]
        wins = (apart > 0) + 0.5 * (apart == 0)
        return float(wins[self.present[:, 1:]].mean())

    def length_correlations(self, f: Floats) -> dict[str, float]:
        """Spearman's ρ of f (n, 1 + k) with the number of words, of true responses and of negatives; left out where
        undefined."""
        columns = {"length_correlation": np.s_[:, :1], "length_correlation negatives": np.s_[:, 1:]}
        correlations = {}
        for name, column in columns.items():
            present = self.present[column]
            rho = spearman(f[column][present], self.words[column][present]).statistic
            if rho is not None:
                correlations[name] = rho
        return correlations


def groups_of(name: str, candidates: Candidates, split: int, config: BlendConfig) -> list[list[Sample]]:
    """The true response and then its negatives, response by response; those without a negative are left out."""
    kinds = config.negatives.split("+")
    if "drawn" in kinds:
        drawn = ((kind, candidates.negatives.get(KIND_OF[kind])) for kind in KIND_OF)
        at = kinds.index("drawn")
        kinds[at : at + 1] = [
            f"{kind}-{rows.shape[1]}" for kind, rows in drawn if rows is not None and rows.size
        ]
        if not kinds:
            raise EvaluatorError(f"{name}: the candidates hold no negatives; draw some, or name a generator")
    wanted = config.contexts if split == TRAIN else config.valid_contexts
    rows = draw(candidates.rows(split), wanted, [config.seed, split])
    generator = load_generator("+".join(kinds), **config.generator)
    groups: list[list[Sample]] = []
    for true, negatives in negatives_by_response(name, candidates, split, rows, generator, config.seed):
        words, group = len(true.response.split()), [true]
        for _, generated in groupby(negatives, key=lambda negative: negative.generator):
            texts = [negative.text for negative in generated]
            if config.nearest_length:
                texts = [min(texts, key=lambda text: abs(len(text.split()) - words))]
            group += [Sample(true.context, text) for text in texts]
        groups.append(group)
    return groups


def _usable(
    name: str, groups: dict[int, list[list[Sample]]], complete: NDArray[np.bool_]
) -> tuple[dict[int, list[list[Sample]]], NDArray[np.bool_]]:
    """The groups of each split without the samples that a part has no score of, and which samples are left, bool (n,).

    A group without its true response, or without a negative, is left out. EvaluatorError if nothing is left of a split.
    """
    used, first = complete.copy(), 0
    usable: dict[int, list[list[Sample]]] = {}
    for split, of_split in groups.items():
        usable[split] = []
        for group in of_split:
            own = slice(first, first := first + len(group))
            if not (complete[own][0] and complete[own][1:].any()):
                used[own] = False
                continue
            usable[split].append([one for one, stays in zip(group, complete[own], strict=True) if stays])
        if not usable[split]:
            what = ("training", "validation")[split]
            raise EvaluatorError(
                f"{name}: in the {what} split no true response, and a negative of it, has a score by every part; leave "
                "a part out"
            )
    return usable, used


def fit(
    name: str,
    members: Members,
    candidates: Candidates,
    config: BlendConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Weights by pairwise logistic regression: each true response against each of its own negatives.

    Minimises the mean of -log σ(f(true) - f(negative)) + l2 Σ (w - p Σ w)², where f = Σ w z + β log(1 + words), a
    mean over a response's negatives and then over responses: regularisation draws the weights to the prior p,
    not to zero. z is a part's score, standardised by the true responses, so that its scale does not depend on
    the kinds of negatives; by all responses only where the true ones do not differ. A control has weight 0. Of the
    strengths whose validation loss is within one standard error of the lowest the strongest is taken. The weights of
    the state sum to 1, without β.
    """
    began = time.perf_counter()
    groups = {split: groups_of(name, candidates, split, config) for split in (TRAIN, VALID)}
    samples = [sample for split in (TRAIN, VALID) for group in groups[split] for sample in group]
    blocks, strengths = range(0, len(samples), _BLOCK), config.strengths
    steps, scored = len(blocks) + len(strengths), []
    for done, first in enumerate(blocks, 1):
        scored.append(members.scores(samples[first : first + _BLOCK]))
        if progress is not None:
            progress(done, steps)
    columns = (np.concatenate([getattr(one, field.name) for one in scored]) for field in fields(PartScores))
    all_scored = PartScores(*columns)
    groups, used = _usable(name, groups, all_scored.complete)
    values, learned = all_scored.values[used], sum(map(len, groups[TRAIN]))
    true = np.cumsum([0, *map(len, groups[TRAIN][:-1])])
    centre, spread = scales(values[true], values)
    z = standardised(values, centre, spread, config.limits)
    train, valid = Trials.of(groups[TRAIN], z[:learned]), Trials.of(groups[VALID], z[learned:])
    solutions, losses, history = [], [], []
    for at, strength in enumerate(strengths, 1):
        weights, beta = _minimised(train, strength, config.prior, config)
        losses.append(_losses(valid, weights, beta))
        solutions.append((weights, beta))
        history.append(
            {
                "epoch": at,
                "l2": strength,
                "train_loss": float(_losses(train, weights, beta).mean()),
                "valid_loss": float(losses[-1].mean()),
                "valid_gt_above": valid.above(valid.f(weights)),
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
        weights, total = config.prior, 1.0
        notes.append("no part tells true responses from negatives: the weights are those before the fit")
    notes += all_scored.notes
    weights = weights / total
    figures = {key: history[chosen][key] for key in ("valid_loss", "valid_gt_above", "l2")}
    figures |= _figures(members, config, valid, weights, beta)
    state = State(weights, centre, spread, 0.0, Bounds.of(valid.f(weights)[valid.present]))
    counts = {
        "train": len(train.z),
        "valid": len(valid.z),
        "train_negatives": learned - len(train.z),
        "valid_negatives": len(z) - learned - len(valid.z),
    }
    seconds = time.perf_counter() - began
    return state, Training(tuple(history), chosen + 1, seconds, counts, figures, tuple(notes))


def _figures(
    members: Members, config: BlendConfig, valid: Trials, weights: Floats, beta: float
) -> dict[str, float]:
    """Each part's weight; the share of negatives that the true response outranks by each part, by the prior's weights
    and by the length; and how f follows the length."""
    names = members.names
    figures = {f"weight {part}": float(weight) for part, weight in zip(names, weights, strict=True)}
    figures |= {f"gt_above {part}": valid.above(valid.z[:, :, at]) for at, part in enumerate(names)}
    figures["gt_above prior"] = valid.above(valid.f(config.prior))
    figures["gt_above length"] = valid.above(valid.words)
    figures["length_coefficient"] = beta
    return figures | valid.length_correlations(valid.f(weights))


def _margins(trials: Trials, weights: Floats, beta: float) -> Floats:
    """How far each true response is above each of its negatives, (n, k)."""
    values = trials.f(weights) + beta * trials.words
    return values[:, :1] - values[:, 1:]


def _shares(trials: Trials) -> Floats:
    """The share of each negative in its response's loss, (n, k)."""
    present = trials.present[:, 1:]
    shares: Floats = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
    return shares


def _losses(trials: Trials, weights: Floats, beta: float) -> Floats:
    """Mean of -log σ(margin) over the negatives of each true response, float64 (n,)."""
    losses: Floats = (np.logaddexp(0, -_margins(trials, weights, beta)) * _shares(trials)).sum(axis=1)
    return losses


def _minimised(trials: Trials, strength: float, prior: Floats, config: BlendConfig) -> tuple[Floats, float]:
    """The weights and the coefficient of the length that minimise the loss of `fit`, which is convex."""
    from scipy.optimize import minimize

    parts, judging = trials.z.shape[2], prior > 0
    columns = np.concatenate([trials.z, trials.words[:, :, None]], axis=2)
    apart_columns, shares = columns[:, :1] - columns[:, 1:], _shares(trials)

    def loss(at: Floats) -> tuple[float, Floats]:
        weights, beta = at[:parts], float(at[parts])
        margins = _margins(trials, weights, beta)
        error = -shares * np.exp(-np.logaddexp(0, margins))
        gradient = np.einsum("nk,nkm->m", error, apart_columns) / len(columns)
        apart = np.where(judging, weights - prior * weights[judging].sum(), 0.0)
        gradient[:parts] += 2 * strength * np.where(judging, apart - apart @ prior, 0.0)
        gradient[parts] += 2 * _LENGTH_L2 * beta
        mean = (np.logaddexp(0, -margins) * shares).sum(axis=1).mean()
        return float(strength * apart @ apart + _LENGTH_L2 * beta**2 + mean), gradient

    lowest = 0.0 if config.non_negative else None
    free: tuple[float | None, float | None] = (lowest, None)
    bounds = [free if judges else (0.0, 0.0) for judges in judging.tolist()]
    bounds.append((None, None) if config.length_control else (0.0, 0.0))
    start = np.append(prior, 0.0)
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
