"""What a blend learns from without human scores: true responses, each beside its own negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.blend.config import BlendConfig
from ssrem.negatives import load_generator
from ssrem.negatives.base import Case
from ssrem.negatives.speaker_sets import KIND_OF
from ssrem.samples import TRAIN, Candidates, Floats, Sample


@dataclass(frozen=True)
class Trials:
    """True responses, each before its negatives. z (n, 1 + k, m), words (n, 1 + k): log(1 + number of words).

    there (n, 1 + k): where there is one; what is not there is 0.
    """

    z: Floats
    words: Floats
    there: NDArray[np.bool_]

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
    rows = candidates.rows(split)
    wanted = config.contexts if split == TRAIN else config.valid_contexts
    if len(rows) > wanted:
        chosen = np.random.default_rng([config.seed, split]).choice(rows, wanted, replace=False)
        rows = np.sort(chosen)
    generator = load_generator(spec, **config.generator)
    found: dict[int, dict[str, list[str]]] = {int(row): {} for row in rows}
    for batch in generator.generate(candidates, rows, seed=config.seed):
        for negative in batch:
            found[negative.response].setdefault(negative.generator, []).append(negative.text)
    groups: list[list[Sample]] = []
    for row, by_generator in found.items():
        case = Case(candidates, row)
        texts = []
        for given in by_generator.values():
            texts += [_nearest(given, case.response)] if config.nearest_length else given
        if texts:
            groups.append([Sample(case.context, text) for text in (case.response, *texts)])
    if not groups:
        word = "training" if split == TRAIN else "validation"
        raise EvaluatorError(f"{name}: no response of the {word} split has a negative; more text is needed")
    return groups


def _nearest(texts: Sequence[str], response: str) -> str:
    """The first of those nearest to the response in number of words."""
    return min(texts, key=lambda text: abs(_words(text) - _words(response)))


def _words(text: str) -> int:
    return len(text.split())


def trials_of(groups: Sequence[Sequence[Sample]], z: Floats) -> Trials:
    width, parts = max(map(len, groups)), z.shape[1]
    laid = np.zeros((len(groups), width, parts))
    words, there = np.zeros((len(groups), width)), np.zeros((len(groups), width), dtype=bool)
    first = 0
    for at, group in enumerate(groups):
        laid[at, : len(group)] = z[first : first + len(group)]
        words[at, : len(group)] = [np.log1p(_words(sample.response)) for sample in group]
        there[at, : len(group)] = True
        first += len(group)
    return Trials(laid, words, there)


def above(f: Floats, there: NDArray[np.bool_]) -> float:
    """The share of negatives that the true response outranks; ties count half."""
    apart = f[:, :1] - f[:, 1:]
    wins = (apart > 0) + 0.5 * (apart == 0)
    return float(wins[there[:, 1:]].mean())


def length_correlations(f: Floats, trials: Trials) -> dict[str, float]:
    """Spearman's ρ of f with the number of words, of true responses and of negatives; left out where undefined."""
    from ssrem.agreement.correlation import spearman

    negative = trials.there.copy()
    negative[:, 0] = False
    found = {}
    for name, rows in (
        ("length_correlation", trials.there & ~negative),
        ("length_correlation negatives", negative),
    ):
        rho = spearman(f[rows], trials.words[rows]).statistic
        if rho is not None:
            found[name] = rho
    return found
