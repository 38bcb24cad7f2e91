"""Checks that no default evaluator is worse than the untrained cosine of its own sentence encoder, and that it ranks
responses as it does with products in float32.

python -m benchmarks.against_cosine FILE…      # annotated sets; the everyday pairs come with ssrem

Prints for each set Spearman of both with the raters' mean, their difference with its 95% interval, and Spearman of the
evaluator with itself in float32; then the share of pairs in which the better response is higher. Ends with status 1 if
the difference on a set lies below zero with its whole interval, the mean over the sets, or the share of pairs, is lower
than the cosine's, or Spearman with float32 is less than .995.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ssrem.agreement.compare import paired_bootstrap
from ssrem.agreement.correlate import View, spearman
from ssrem.annotated_sets import read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.evaluators import best_packaged, load_evaluator
from ssrem.evaluators.baselines import Cosine
from ssrem.samples import Labels, dialogue_units
from ssrem.studies.behaviour import Pairs, behaviour, everyday_pairs


def main() -> int:
    """Compare the best packaged evaluator and blend-fast; returns 1 if one is worse, else 0."""
    sets = {Path(file).stem: labels_of(read_set(Path(file)).rows) for file in sys.argv[1:]}
    best, _ = best_packaged()
    return max(_worse(name, sets) for name in dict.fromkeys((best, "blend-fast")))


def _worse(name: str, sets: dict[str, Labels]) -> bool:
    """Print the lines of one evaluator; returns whether it is worse than the cosine, or ranks unlike float32."""
    blend: Any = load_evaluator(name)
    exact = type(blend)(blend.settings.model_copy(update={"products": "float32"}))
    exact.take(blend.tensors, blend.bounds)
    cosine = next(member for member in blend.members.values() if isinstance(member, Cosine))
    cosine = Cosine(encoder=cosine.settings.encoder)
    differences, worse = [], False
    for dataset, labels in sets.items():
        contexts = dialogue_units(sample.context for sample in labels.samples)
        scores = [one.components(labels.samples).f for one in (blend, cosine)]
        same = spearman(scores[0], exact.components(labels.samples).f).statistic
        human = [score for _, score in labels.pairs]
        found = paired_bootstrap(*scores, human, contexts, view=View("spearman"), seed=0)
        assert found.difference is not None and found.low is not None and found.high is not None, found.reason
        print(f"{name} {dataset}: {found.first:.3f}, cosine {found.second:.3f}, ", end="")
        print(
            f"difference {found.difference:.3f} [{found.low:.3f}, {found.high:.3f}], float32 {same:.4f}",
            flush=True,
        )
        differences.append(found.difference)
        worse |= found.high < 0 or same < 0.995
    pairs = everyday_pairs()
    share, other = (behaviour(Pairs(pairs, one.score), 0)[0].value for one in (blend, cosine))
    print(f"{name} everyday pairs: {share:.3f}, cosine {other:.3f}", flush=True)
    return bool(worse or share < other or (differences and np.mean(differences) < 0))


if __name__ == "__main__":
    sys.exit(main())
