"""What every evaluator asks of human scores before it learns from them, and which of them it holds out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.samples import Floats, Sample

_FEWEST_SAMPLES, _FEWEST_CONTEXTS = 10, 5


def on_scale(name: str, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float]) -> Floats:
    """The human scores, float64 (n,); EvaluatorError where one lies beyond the scale."""
    low, high = scale
    given = np.array([score for _, score in annotated], dtype=np.float64)
    if not low < high or not (np.isfinite(given) & (given >= low) & (given <= high)).all():
        raise EvaluatorError(
            f"{name}: human scores must lie on the scale, which is {low:g} to {high:g}; "
            "give the lowest and the highest score that a rater could choose as scale"
        )
    return given


def enough(samples: Sequence[Sample]) -> bool:
    """Whether there are 10 samples or more, to 5 contexts or more."""
    contexts = len({sample.context for sample in samples})
    return len(samples) >= _FEWEST_SAMPLES and contexts >= _FEWEST_CONTEXTS


def check_enough(
    name: str, samples: Sequence[Sample], kind: str = "annotated responses", aim: str = "learn from"
) -> None:
    """EvaluatorError where `enough` says no."""
    if not enough(samples):
        contexts = len({sample.context for sample in samples})
        raise EvaluatorError(
            f"{name}: {len(samples)} {kind} to {contexts} contexts are too few to {aim}; "
            f"give {_FEWEST_SAMPLES} to {_FEWEST_CONTEXTS} contexts or more"
        )


def held_out(samples: Sequence[Sample], share: float, seed: Sequence[int]) -> NDArray[np.bool_]:
    """Which samples belong to the share of the contexts that is held out, bool (n,); one context at least."""
    contexts = list(dict.fromkeys(sample.context for sample in samples))
    order = np.random.default_rng(seed).permutation(len(contexts))
    chosen = {contexts[at] for at in order[: max(1, round(share * len(contexts)))].tolist()}
    return np.array([sample.context in chosen for sample in samples], dtype=bool)
