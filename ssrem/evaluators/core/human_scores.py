"""Human scores to learn from: checks, and which of them are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.samples import Floats, Rows, Sample, context_key

_FEWEST_SAMPLES, _FEWEST_CONTEXTS = 10, 5


@dataclass(frozen=True)
class HeldOutSplit:
    """Annotated samples, of which some are held out; sorted, so that their order in a file has no effect.

    unit: float64 (n,), the human scores scaled to the unit range. held_out: bool (n,), the samples that choose the
    epoch, with contexts that no other sample has. note: a remark for the record of the training.
    """

    samples: Sequence[Sample]
    unit: Floats
    held_out: NDArray[np.bool_]
    note: str

    @classmethod
    def of(
        cls,
        name: str,
        annotated: Sequence[tuple[Sample, float]],
        scale: tuple[float, float],
        *,
        share: float,
        seed: Sequence[int],
        kind: str = "annotated responses",
    ) -> HeldOutSplit:
        """The annotated samples, of whose contexts a share is held out, one at least. kind: names them in messages.

        EvaluatorError for scores beyond the scale, or fewer than 10 samples or 5 contexts.
        """
        low, high = scale
        ordered = sorted(
            annotated, key=lambda pair: (pair[0].context, pair[0].response, pair[0].reference or "", pair[1])
        )
        scores = on_scale(name, ordered, scale)
        samples = [sample for sample, _ in ordered]
        check_enough(name, samples, kind)
        keys = [context_key(sample.context) for sample in samples]
        contexts = list(dict.fromkeys(keys))
        order = np.random.default_rng(seed).permutation(len(contexts))
        chosen = {contexts[at] for at in order[: max(1, round(share * len(contexts)))].tolist()}
        held_out = np.array([key in chosen for key in keys], dtype=bool)
        note = f"learned from human scores from {low:g} to {high:g}; validation has contexts of its own"
        return cls(samples, (scores - low) / (high - low), held_out, note)

    @property
    def split(self) -> tuple[Rows, Rows]:
        """Positions of the samples that are learned from, and of those held out."""
        return np.flatnonzero(~self.held_out), np.flatnonzero(self.held_out)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of samples that are learned from and held out, and of all contexts."""
        valid = int(self.held_out.sum())
        contexts = number_of_contexts(self.samples)
        return {"train": len(self.samples) - valid, "valid": valid, "contexts": contexts}


def on_scale(name: str, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float]) -> Floats:
    """The human scores, float64 (n,); EvaluatorError if one lies beyond the scale."""
    low, high = scale
    scores = np.array([score for _, score in annotated], dtype=np.float64)
    if not low < high or not (np.isfinite(scores) & (scores >= low) & (scores <= high)).all():
        raise EvaluatorError(
            f"{name}: human scores must lie on the scale, which is {low:g} to {high:g}; "
            "give the lowest and the highest score that a rater could choose as scale"
        )
    return scores


def number_of_contexts(samples: Sequence[Sample]) -> int:
    """How many contexts the samples have, by `context_key`."""
    return len({context_key(sample.context) for sample in samples})


def enough(samples: Sequence[Sample]) -> bool:
    """Whether there are at least 10 samples with at least 5 contexts."""
    contexts = number_of_contexts(samples)
    return len(samples) >= _FEWEST_SAMPLES and contexts >= _FEWEST_CONTEXTS


def check_enough(name: str, samples: Sequence[Sample], kind: str = "annotated responses") -> None:
    """EvaluatorError unless there are `enough`."""
    if not enough(samples):
        contexts = number_of_contexts(samples)
        raise EvaluatorError(
            f"{name}: {len(samples)} {kind} to {contexts} contexts are too few to learn from; "
            f"give {_FEWEST_SAMPLES} to {_FEWEST_CONTEXTS} contexts or more"
        )
