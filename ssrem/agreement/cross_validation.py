"""Scores of annotated responses by models that learned from other contexts' human scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.samples import Floats, Rows, Sample, context_key

Labelled = Sequence[tuple[Sample, float]]
"""Samples with their human score."""


class Scorer(Protocol):
    """A model that can be cross-validated: anything with `score`, as an evaluator."""

    def score(self, samples: Sequence[Sample]) -> Floats: ...


def folds_by_context(samples: Sequence[Sample], folds: int, seed: int) -> Rows:
    """The fold of each sample, int64 (n,), from 0.

    All responses to one context, by `context_key`, share a fold. Folds are of nearly the same size, and depend on the
    seed and on the set of contexts and their sizes, not on the order of samples. EvaluatorError for fewer than 2 folds,
    or fewer contexts than folds.
    """
    if folds < 2:
        raise EvaluatorError(f"cross-validation takes 2 folds or more, not {folds}")
    groups: dict[str, list[int]] = {}
    for position, sample in enumerate(samples):
        groups.setdefault(context_key(sample.context), []).append(position)
    if len(groups) < folds:
        raise EvaluatorError(
            f"{len(samples)} annotated responses to {len(groups)} contexts are too few for {folds} folds, "
            "which split them by context; annotate more contexts or ask for fewer folds"
        )
    keys = sorted(groups)
    shuffled = [keys[at] for at in np.random.default_rng(seed).permutation(len(keys))]
    fold, sizes = np.zeros(len(samples), dtype=np.int64), [0] * folds
    # The largest first, each into the smallest fold so far.
    for key in sorted(shuffled, key=lambda key: -len(groups[key])):
        smallest = sizes.index(min(sizes))
        fold[groups[key]] = smallest
        sizes[smallest] += len(groups[key])
    return fold


def out_of_fold(make: Callable[[Labelled], Scorer], annotated: Labelled, folds: int, seed: int) -> Floats:
    """A score for each annotated response by a model that saw no score of its context, float64 (n,).

    make: samples and human scores to the model that learned from them. Errors as in `folds_by_context`.
    """
    samples = [sample for sample, _ in annotated]
    fold = folds_by_context(samples, folds, seed)
    scores = np.full(len(samples), np.nan)
    for out in range(folds):
        model = make([pair for pair, at in zip(annotated, fold, strict=True) if at != out])
        rows = np.flatnonzero(fold == out)
        scores[rows] = model.score([samples[row] for row in rows])
    return scores
