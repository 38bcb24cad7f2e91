"""How a blend learns its weights: by telling true responses from negatives, or from human scores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlate import spearman
from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST, PACKAGED, packaged
from ssrem.evaluators.base import WEIGHTS
from ssrem.evaluators.learning import (
    check_enough,
    left_out,
    negatives_by_response,
    number_of_contexts,
    on_scale,
)
from ssrem.files import read_json, read_tensors
from ssrem.negatives import load_generator
from ssrem.negatives.turns import KIND_OF
from ssrem.samples import (
    SPLIT_NAMES,
    TRAIN,
    VALID,
    Candidates,
    Floats,
    Labels,
    Progress,
    Rows,
    Sample,
    draw,
    folds_by_context,
)
from ssrem.training import Training

Blend = Any
"""Stands for `ssrem.evaluators.blend.Blend`, whose module imports this one."""

_BLOCK = 256
_TAIL = 1.0
# Keeps the coefficient of the length finite where the length alone tells all true responses from their negatives.
_LENGTH_L2 = 1e-5
_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Trials:
    """The true responses of a split, each followed by its negatives, with their scores; r responses in all.

    values (r, m): scores by the parts. words (r,): log(1 + number of words). true (r,): for a negative the row of its
    true response, for a true response its own row.
    """

    values: Floats
    words: Floats
    true: Rows

    @property
    def is_true(self) -> NDArray[np.bool_]:
        """Which rows are true responses, bool (r,)."""
        return np.equal(self.true, np.arange(len(self.true)))

    def apart(self, scores: Floats) -> Floats:
        """For each negative, the score of its true response minus its own, by scores (r, …)."""
        negatives = np.flatnonzero(~self.is_true)
        return scores[self.true[negatives]] - scores[negatives]

    @property
    def shares(self) -> Floats:
        """The weight of each negative in a mean over each response's negatives and then over responses; sum 1."""
        true = self.true[~self.is_true]
        return 1 / np.bincount(true)[true] / len(np.unique(true))

    def above(self, scores: Floats) -> float:
        """The share of negatives that the true response outranks by scores (r,); ties count half."""
        return float(np.heaviside(self.apart(scores), 0.5).mean())


def learn_pairs(blend: Blend, candidates: Candidates, progress: Progress | None) -> Training:
    """Learn weights by pairwise logistic regression of each true response against each of its own negatives.

    Minimises the mean of -log σ(f(true) - f(negative)) + l2 Σ (w - p Σ w)², w ≥ 0, where f = Σ w z + β log(1 + words).
    The mean is over a response's negatives and then over responses. Regularisation draws the weights to the prior p,
    not to zero. z is a part's score, standardised by the true responses of the train split, so that its scale does not
    depend on the kinds of negatives, or by all responses where the true ones hardly differ. A control has weight 0.
    Finally β is dropped and the weights are scaled to sum 1. The valid split gives figures and bounds.
    """
    from scipy.optimize import minimize

    began, settings, prior = time.perf_counter(), blend.settings, blend.settings.prior
    trials, notes = _trials(blend, candidates, progress)
    train, valid = trials[TRAIN], trials[VALID]
    centre, spread = scales(train.values[train.is_true], np.concatenate([train.values, valid.values]))
    z, valid_z = (blend.standardised(one.values, centre, spread) for one in (train, valid))
    apart, shares, parts = train.apart(np.column_stack([z, train.words])), train.shares, len(prior)

    def loss(at: Floats) -> tuple[float, Floats]:
        margins = apart @ at
        away = np.where(prior > 0, at[:parts] - prior * at[:parts].sum(), 0.0)
        gradient = -(shares * np.exp(-np.logaddexp(0, margins))) @ apart
        gradient[:parts] += 2 * settings.l2 * np.where(prior > 0, away - away @ prior, 0.0)
        gradient[parts] += 2 * _LENGTH_L2 * at[parts]
        mean = shares @ np.logaddexp(0, -margins)
        return float(mean + settings.l2 * away @ away + _LENGTH_L2 * at[parts] ** 2), gradient

    bounds = [(0.0, None if judges else 0.0) for judges in (prior > 0).tolist()] + [(None, None)]
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-8}
    start = np.append(prior, 0.0)
    solved = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    weights, beta = np.asarray(solved.x[:parts], dtype=np.float64), float(solved.x[parts])
    apart_valid = valid.apart(np.column_stack([valid_z, valid.words]))
    epoch = {
        "epoch": 1.0,
        "l2": settings.l2,
        "train_loss": float(shares @ np.logaddexp(0, -apart @ solved.x)),
        "valid_loss": float(valid.shares @ np.logaddexp(0, -apart_valid @ solved.x)),
        "valid_gt_above": valid.above(valid_z @ weights),
        "seconds": time.perf_counter() - began,
    }
    constant = compress(blend.members, np.ptp(train.values, axis=0) == 0)
    remarks = [f"{part} is the same for all responses and tells nothing" for part in constant]
    if weights.sum() < 1e-6:
        weights = prior
        remarks.append("no part tells true responses from negatives: the weights are those before the fit")
    weights = weights / weights.sum()
    f = valid_z @ weights
    figures = {key: epoch[key] for key in ("valid_loss", "valid_gt_above", "l2")}
    figures |= {f"weight {part}": float(one) for part, one in zip(blend.members, weights, strict=True)}
    figures |= {f"gt_above {part}": valid.above(valid_z[:, at]) for at, part in enumerate(blend.members)}
    figures |= {"gt_above prior": valid.above(valid_z @ prior), "gt_above length": valid.above(valid.words)}
    figures["length_coefficient"] = beta
    for name, rows in (("", valid.is_true), (" negatives", ~valid.is_true)):
        if (rho := spearman(f[rows], valid.words[rows]).statistic) is not None:
            figures[f"length_correlation{name}"] = rho
    blend.learned(weights, (centre, spread), 0.0, valid_z, 0)
    counts = {"train": int(train.is_true.sum()), "valid": int(valid.is_true.sum())}
    counts |= {
        f"{name}_negatives": len(of.true) - counts[name] for name, of in (("train", train), ("valid", valid))
    }
    return Training((epoch,), 1, time.perf_counter() - began, counts, figures, (*remarks, *notes))


def _trials(
    blend: Blend, candidates: Candidates, progress: Progress | None
) -> tuple[dict[int, Trials], list[str]]:
    """Map each split to its drawn true responses and their negatives, scored by the parts; and notes on omissions.

    A response without a score by every part is left out, and so are negatives whose true response is left out and true
    responses without a remaining negative. EvaluatorError if nothing of a split remains.
    """
    samples: list[Sample] = []
    true, split = [], []
    for of in (TRAIN, VALID):
        for response, negatives in _groups(blend, candidates, of):
            true += [len(samples)] * (1 + len(negatives))
            split += [of] * (1 + len(negatives))
            samples += [response, *(Sample(response.context, text) for text in negatives)]
    blocks, values, reasons = range(0, len(samples), _BLOCK), [], list[str]()
    for done, first in enumerate(blocks, 1):
        of_block, _, why = blend.part_scores(samples[first : first + _BLOCK])
        values.append(of_block)
        reasons += why
        if progress is not None:
            progress(done, len(blocks))
    has, row_of_true = np.array(reasons) == "", np.array(true)
    negative = row_of_true != np.arange(len(samples))
    left = np.bincount(row_of_true[has & negative], minlength=len(samples)) > 0
    keep = has & has[row_of_true] & left[row_of_true]
    every = np.concatenate(values)
    words = np.array([np.log1p(len(sample.response.split())) for sample in samples])
    trials = {}
    for of in (TRAIN, VALID):
        rows = np.flatnonzero(keep & (np.array(split) == of))
        if not len(rows):
            raise EvaluatorError(
                f"{blend.name}: in the {SPLIT_NAMES[of]} split no true response, and a negative of it, has a score by "
                "every part; leave a part out"
            )
        trials[of] = Trials(every[rows], words[rows], np.searchsorted(rows, row_of_true[rows]))
    return trials, left_out(reasons)


def _groups(blend: Blend, candidates: Candidates, split: int) -> list[tuple[Sample, list[str]]]:
    """Drawn true responses, each with one negative of each generator: the one nearest to it in number of words."""
    settings = blend.settings
    drawn = ((kind, candidates.negatives.get(KIND_OF[kind])) for kind in KIND_OF)
    listed = "+".join(f"{kind}-{rows.shape[1]}" for kind, rows in drawn if rows is not None and rows.size)
    kinds = [listed if kind == "drawn" else kind for kind in settings.negatives.split("+")]
    if not (spec := "+".join(filter(None, kinds))):
        raise EvaluatorError(
            f"{blend.name}: the candidates hold no negatives; draw some, or name a generator"
        )
    generator = load_generator(spec, **settings.generator_settings)
    wanted = settings.contexts if split == TRAIN else settings.valid_contexts
    rows = draw(candidates.rows(split), wanted, [settings.seed, split])
    groups = []
    for true, negatives in negatives_by_response(
        blend.name, candidates, split, rows, generator, settings.seed
    ):
        words = len(true.response.split())
        texts = [
            min((one.text for one in own), key=lambda text: abs(len(text.split()) - words))
            for _, own in groupby(negatives, key=lambda negative: negative.generator)
        ]
        groups.append((true, texts))
    return groups


def learn_scores(blend: Blend, sets: Mapping[str, Labels], progress: Progress | None) -> Training:
    """Learn weights by ridge regression on human scores, in closed form; a weight may be negative.

    w = a w₀ + d, where w₀ are the weights of before, a is free, and l2 Σ d² is added to the mean squared error. The
    weights of before, and the scales of the parts, are those that the blend has learned, or else those of the packaged
    blend with the same parts; for other parts they are the prior, and the annotated samples standardise the parts. A
    guard is not learned: it keeps its share of Σ |w|.

    With one set, f learns (score - low) / (high - low), and l2 is chosen by cross-validation by context. Figures:
    `out_of_fold`, Spearman's correlation where each context is scored by weights and an l2 that were learned from the
    other folds, and `unlearned`, that of scores by w₀. With several sets, which count equally, scores are standardised
    and parts centred within each set, so that neither its scale nor its mean has an effect; f predicts how many
    standard deviations of a set a score lies above its mean, and l2 is chosen by leaving one set out. Figures:
    `left_out SET` and `unlearned SET`, and their means.
    """
    began, several, settings = time.perf_counter(), len(sets) > 1, blend.settings
    samples, human, notes = list[Sample](), list[Floats](), list[str]()
    for dataset, labels in sets.items():
        own, scores, why = _scored(f"{blend.name}, {dataset}" if several else blend.name, blend, labels)
        samples += own
        if several and np.ptp(scores) == 0:
            raise EvaluatorError(f"{blend.name}, {dataset}: all human scores are equal; leave the set out")
        human.append(scores)
        notes += [f"{dataset}: {note}" if several else note for note in why]
    values, of = blend.part_scores(samples)[0], np.repeat(np.arange(len(sets)), [len(one) for one in human])
    known = _before(blend)
    centre, spread = (known["centre"], known["spread"]) if known else scales(values, values)
    prior = known["weights"] if known else settings.prior
    z = blend.standardised(values, centre, spread)
    middles = np.array([z[of == one].mean(axis=0) for one in range(len(sets))])
    guards = np.array([part.guard for part in settings.parts])
    target = np.concatenate([(one - one.mean()) / one.std() if several else one for one in human])
    # The rows of each set have the same weight in all.
    weight = np.sqrt(len(of) / (len(sets) * np.bincount(of)[of]))
    design = (z - middles[of]) * weight[:, None] if several else z
    wanted = target * weight if several else target

    def folds(rows: Rows) -> Rows:
        """The fold of each of the rows, (k,): its set or, if all are of one set, a fold by context."""
        if len(np.unique(of[rows])) > 1:
            return of[rows]
        some = [samples[row] for row in rows.tolist()]
        return folds_by_context(some, min(settings.folds, number_of_contexts(some)), settings.seed)

    every = np.arange(len(z))
    fold, held = folds(every), np.zeros(len(z))
    for out in np.unique(fold).tolist():
        rest = every[fold != out]
        _, weights, offset = _guarded_ridge(design[rest], wanted[rest], folds(rest), prior, guards)
        held[fold == out] = z[fold == out] @ weights + (0 if several else offset)
    best, weights, offset = _guarded_ridge(design, wanted, fold, prior, guards, progress)
    figures = {key: best[key] for key in ("valid_loss", "l2")}
    if several:
        for figure, scores in (("left_out", held), ("unlearned", z @ prior)):
            found = {name: _rho(scores[of == one], target[of == one]) for one, name in enumerate(sets)}
            figures |= {f"{figure} {name}": rho for name, rho in found.items()}
            figures[f"{figure} mean"] = float(np.mean(list(found.values())))
        offset = -float(middles.mean(axis=0) @ weights)
        listed = (
            f"the human scores of {', '.join(sets)}, standardised within each; validation leaves one set out"
        )
    else:
        figures |= {"out_of_fold": _rho(held, target), "unlearned": _rho(z @ prior, target)}
        (labels,) = sets.values()
        low, high = labels.scale
        listed = f"human scores ({labels.criterion}, {low:g} to {high:g}); validation has contexts of its own"
    blend.learned(weights, (centre, spread), offset, z, len(z))
    figures |= {f"weight {part}": one for part, one in blend.weights.items()}
    counts = {"train": len(z), "sets": len(sets), "contexts": len({sample.context for sample in samples})}
    if not several:
        del counts["sets"]
    taken = time.perf_counter() - began
    epoch = {"epoch": 1.0, **best, "seconds": taken}
    return Training((epoch,), 1, taken, counts, figures, (f"learned from {listed}", *notes))


def _before(blend: Blend) -> Mapping[str, NDArray[Any]]:
    """The tensors that the blend has learned, or else those of the packaged blend of its name, if that has the same
    parts, limits and products; empty without either."""
    learned: Mapping[str, NDArray[Any]] = blend.tensors
    if not learned and blend.name in packaged():
        folder = PACKAGED / blend.name
        about = read_json(folder / MANIFEST, ("config", "sha256"))
        own = blend.settings.model_dump(mode="json", include={"parts", "clip", "cap", "products"})
        if own == {name: about["config"][name] for name in own}:
            # Its parts are those of the blend, so they are not loaded again.
            learned = read_tensors(folder / WEIGHTS, about["sha256"][WEIGHTS], ())
    return learned


def _scored(name: str, blend: Blend, labels: Labels) -> tuple[list[Sample], Floats, list[str]]:
    """The samples that every part scores, their human scores on the unit range, and a note on the others."""
    low, high = labels.scale
    scores = (on_scale(name, labels.pairs, labels.scale) - low) / (high - low)
    check_enough(name, labels.samples)  # before a judge sends requests
    reasons = blend.part_scores(labels.samples)[2]
    usable, notes = [not reason for reason in reasons], left_out(reasons)
    samples = [*compress(labels.samples, usable)]
    check_enough(name, samples, f"responses ({notes[0]})" if notes else "responses")
    return samples, scores[usable], notes


def _guarded_ridge(
    z: Floats,
    target: Floats,
    fold: Rows,
    prior: Floats,
    guards: NDArray[np.bool_],
    progress: Progress | None = None,
) -> tuple[dict[str, float], Floats, float]:
    """Weights (m,) and offset by `ridge` on the parts that are no guards (m,), each guard at its share of the prior;
    and the losses, without guards, with the strength that is best out of fold."""
    free, weights = ~guards, prior.copy()
    best = _best(ridge_path(z[:, free], target, fold, prior[free], progress))
    weights[free] = ridge(z[:, free], target, prior[free], best["l2"])[0]
    if before := np.abs(prior[free]).sum():
        weights[guards] *= np.abs(weights[free]).sum() / before
    return best, weights, float(target.mean() - z.mean(axis=0) @ weights)


def ridge_path(
    z: Floats, target: Floats, fold: Rows, prior: Floats, progress: Progress | None = None
) -> list[dict[str, float]]:
    """The losses of `ridge` with each strength, weakest first: when learning from all rows, and out of fold.

    Out of fold, each row is predicted from the rows of other folds. fold (n,): the fold of each row.
    """
    path = []
    for at, strength in enumerate(_STRENGTHS, 1):
        held = np.zeros(len(z))
        for out in np.unique(fold).tolist():
            weights, offset = ridge(z[fold != out], target[fold != out], prior, strength)
            held[fold == out] = offset + z[fold == out] @ weights
        weights, offset = ridge(z, target, prior, strength)
        train_loss, valid_loss = (
            float(np.mean((guess - target) ** 2)) for guess in (offset + z @ weights, held)
        )
        path.append({"l2": strength, "train_loss": train_loss, "valid_loss": valid_loss})
        if progress is not None:
            progress(at, len(_STRENGTHS))
    return path


def _best(path: Sequence[dict[str, float]]) -> dict[str, float]:
    """The strongest regularisation with the lowest loss out of fold."""
    lowest = min(losses["valid_loss"] for losses in path)
    return [losses for losses in path if losses["valid_loss"] <= lowest * (1 + 1e-9)][-1]


def ridge(z: Floats, target: Floats, prior: Floats, strength: float) -> tuple[Floats, float]:
    """Weights (m,) and offset that minimise the mean of (offset + z w - target)² + strength Σ d², w = a prior + d, with
    a free; the least-norm solution where the prior gives all samples one value."""
    middle, mean = z.mean(axis=0), target.mean()
    centred = z - middle
    design = np.column_stack([centred @ prior, centred])
    penalty = np.diag([0.0, *np.full(z.shape[1], strength)])
    solved = np.linalg.pinv(design.T @ design / len(z) + penalty) @ (design.T @ (target - mean) / len(z))
    weights = solved[0] * prior + solved[1:]
    return weights, float(mean - middle @ weights)


def scales(values: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Centre and spread (m,): mean and standard deviation of `values` (n, m), clipped at percentiles 1 and 99.

    Where that deviation is less than a tenth of that of `others` (k, m), as for a part that recognises something rare,
    the spread is the deviation of `others`, clipped alike unless they are constant then; 1 if they are all the same.
    """
    inner, wider = (
        np.clip(rows, *np.percentile(rows, [_TAIL, 100 - _TAIL], axis=0)) for rows in (values, others)
    )
    spread = np.ones(values.shape[1])
    for rows, least in ((others, 0.0), (wider, 0.0), (inner, 0.1)):
        deviation = rows.std(axis=0)
        differs = deviation > 1e-9 * (1 + np.abs(rows).max(axis=0))
        spread = np.where(differs & (deviation > least * spread), deviation, spread)
    return inner.mean(axis=0), spread


def _rho(one: Floats, other: Floats) -> float:
    """Spearman's correlation; 0 where it is undefined because one side is constant."""
    return spearman(one, other).statistic or 0.0
