"""What a blend learns from without human scores: true responses, each beside its own negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlation import spearman
from ssrem.errors import EvaluatorError
from ssrem.evaluators.blend.config import BlendConfig
from ssrem.evaluators.core.candidate_columns import draw, negatives_by_response
from ssrem.negatives import load_generator
from ssrem.negatives.speaker_sets import KIND_OF
from ssrem.samples import TRAIN, Candidates, Floats, Sample


@dataclass(frozen=True)
class Trials:
    """True responses, each before its negatives. z (n, 1 + k, m), words (n, 1 + k): log(1 + number of words).

    present (n, 1 + k): where there is one; elsewhere the values are 0.
    """

    z: Floats
    words: Floats
    present: NDArray[np.bool_]

    def f(self, weights: Floats) -> Floats:
        return self.z @ weights


def groups_of(name: str, candidates: Candidates, split: int, config: BlendConfig) -> list[list[Sample]]:
    """The true response and then its negatives, response by response; those without a negative are left out."""
    spec = config.negatives
    if spec == "drawn":
        drawn = ((kind, candidates.negatives.get(KIND_OF[kind])) for kind in KIND_OF)
        spec = "+".join(f"{kind}-{rows.shape[1]}" for kind, rows in drawn if rows is not None and rows.size)
        if not spec:
            raise EvaluatorError(f"{name}: the candidates hold no negatives; draw some, or name a generator")
    wanted = config.contexts if split == TRAIN else config.valid_contexts
    rows = draw(candidates.rows(split), wanted, [config.seed, split])
    generator = load_generator(spec, **config.generator)
    groups: list[list[Sample]] = []
    for true, negatives in negatives_by_response(name, candidates, split, rows, generator, config.seed):
        by_generator: dict[str, list[str]] = {}
        for negative in negatives:
            by_generator.setdefault(negative.generator, []).append(negative.text)
        texts: list[str] = []
        for generated in by_generator.values():
            texts += [_nearest(generated, true.response)] if config.nearest_length else generated
        groups.append([true, *(Sample(true.context, text) for text in texts)])
    return groups


def _nearest(texts: Sequence[str], response: str) -> str:
    """The first of those nearest to the response in number of words."""
    return min(texts, key=lambda text: abs(_words(text) - _words(response)))


def _words(text: str) -> int:
    return len(text.split())


def trials_of(groups: Sequence[Sequence[Sample]], z: Floats) -> Trials:
    width, parts = max(map(len, groups)), z.shape[1]
    laid = np.zeros((len(groups), width, parts))
    words, present = np.zeros((len(groups), width)), np.zeros((len(groups), width), dtype=bool)
    first = 0
    for at, group in enumerate(groups):
        laid[at, : len(group)] = z[first : first + len(group)]
        words[at, : len(group)] = [np.log1p(_words(sample.response)) for sample in group]
        present[at, : len(group)] = True
        first += len(group)
    return Trials(laid, words, present)


def above(f: Floats, present: NDArray[np.bool_]) -> float:
    """The share of negatives that the true response outranks; ties count half."""
    apart = f[:, :1] - f[:, 1:]
    wins = (apart > 0) + 0.5 * (apart == 0)
    return float(wins[present[:, 1:]].mean())


def length_correlations(f: Floats, trials: Trials) -> dict[str, float]:
    """Spearman's ρ of f with the number of words, of true responses and of negatives; left out where undefined."""
    negative = trials.present.copy()
    negative[:, 0] = False
    correlations = {}
    for name, rows in (
        ("length_correlation", trials.present & ~negative),
        ("length_correlation negatives", negative),
    ):
        rho = spearman(f[rows], trials.words[rows]).statistic
        if rho is not None:
            correlations[name] = rho
    return correlations
