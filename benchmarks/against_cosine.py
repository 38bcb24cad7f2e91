"""Checks that no default evaluator is worse than the untrained cosine of its own sentence encoder.

python -m benchmarks.against_cosine FILE…      # annotated sets; the everyday pairs come with ssrem

A line a set: Spearman with the raters' mean of both, and their difference with its 95% interval; then the share of
pairs in which the better response is higher. Ends with status 1 if the difference on a set lies below zero with its
whole interval, or the mean over the sets, or the share of pairs, is lower than the cosine's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ssrem.agreement.compare import paired_bootstrap
from ssrem.agreement.correlate import View
from ssrem.annotated_sets import read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.evaluators import best_packaged, load_evaluator
from ssrem.evaluators.baselines import Cosine
from ssrem.evaluators.blend import share_encoders
from ssrem.samples import Labels, context_key
from ssrem.studies.behaviour import Pairs, behaviour, everyday_pairs


def main() -> int:
    """Compare the blends that are installed; the status."""
    sets = {Path(file).stem: labels_of(read_set(Path(file)).rows) for file in sys.argv[1:]}
    best, _ = best_packaged()
    return max(_worse(name, sets) for name in dict.fromkeys((best, "blend-fast")))


def _worse(name: str, sets: dict[str, Labels]) -> bool:
    """Print the lines of one evaluator; whether it is worse than the cosine over its encoder."""
    blend = load_evaluator(name)
    cosine = next(member for member in blend.members.values() if isinstance(member, Cosine))  # type: ignore[attr-defined]
    cosine = Cosine(encoder=cosine.settings.encoder)
    share_encoders([*blend.members.values(), cosine])  # type: ignore[attr-defined]
    differences, worse = [], False
    for dataset, labels in sets.items():
        contexts = [context_key(sample.context) for sample in labels.samples]
        scores = [one.components(labels.samples).f for one in (blend, cosine)]
        human = [score for _, score in labels.pairs]
        found = paired_bootstrap(*scores, human, contexts, view=View("spearman"), seed=0)
        assert found.difference is not None and found.low is not None and found.high is not None, found.reason
        print(f"{name} {dataset}: {found.first:.3f}, cosine {found.second:.3f}, ", end="")
        print(f"difference {found.difference:.3f} [{found.low:.3f}, {found.high:.3f}]", flush=True)
        differences.append(found.difference)
        worse |= found.high < 0
    pairs = everyday_pairs()
    share, other = (behaviour(Pairs(pairs, one.score), 0)[0].value for one in (blend, cosine))
    print(f"{name} everyday pairs: {share:.3f}, cosine {other:.3f}", flush=True)
    return bool(worse or share < other or (differences and np.mean(differences) < 0))


if __name__ == "__main__":
    sys.exit(main())
