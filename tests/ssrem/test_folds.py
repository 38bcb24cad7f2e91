"""Cross-validation by context: no context in two folds, no label of a context seen by who scores it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.samples import Sample, dialogue_units, folds_by_context, out_of_fold


def key(sample: Sample) -> str:
    return "".join(sample.context).replace(" ", "").lower()


# 30 contexts with 1 to 7 responses, every second response with another case, blanks or cut.
SAMPLES = [
    Sample((f"How  ARE you {n}", "fine ") if response % 2 else (f"how are you {n} fine",), f"r{response}")
    for n in range(30)
    for response in range(1 + n % 7)
]


def test_a_context_is_in_one_fold_and_folds_are_balanced() -> None:
    fold = folds_by_context(SAMPLES, 5, seed=0)
    by_context: dict[str, set[int]] = {}
    for sample, at in zip(SAMPLES, fold.tolist(), strict=True):
        by_context.setdefault(key(sample), set()).add(at)
    assert len(by_context) == 30 and all(len(folds) == 1 for folds in by_context.values())
    sizes = np.bincount(fold)
    assert len(sizes) == 5 and np.ptp(sizes) <= 1


def test_folds_depend_on_the_seed_and_not_on_the_order() -> None:
    fold = folds_by_context(SAMPLES, 5, seed=0)
    assert np.array_equal(fold, folds_by_context(SAMPLES, 5, seed=0))
    assert not np.array_equal(fold, folds_by_context(SAMPLES, 5, seed=1))
    order = np.random.default_rng(0).permutation(len(SAMPLES))
    shuffled = folds_by_context([SAMPLES[at] for at in order], 5, seed=0)
    assert np.array_equal(shuffled, fold[order])


def test_contexts_that_continue_one_another_are_of_one_dialogue() -> None:
    contexts = [
        ("Hi",),
        ("hi", "yo", "what"),
        ("Hi ", "YO"),
        ("hi", "no"),
        ("hi", "yo", "what", "", "so"),
        ("hi yo", "x"),
    ]
    first, *units = dialogue_units(contexts)
    assert units[0] == units[1] == units[3] == "hi yo"
    assert len({first, *units}) == 4, "an opening of one turn is that of many dialogues"
    fold = folds_by_context([Sample(context, "r") for context in contexts], 4, seed=0)
    assert fold[1] == fold[2] == fold[4] and len(set(fold.tolist())) == 4


def test_one_large_context_keeps_a_fold_to_itself() -> None:
    samples = [Sample(("long",), f"r{n}") for n in range(8)] + [Sample((f"c{n}",), "r") for n in range(8)]
    assert sorted(np.bincount(folds_by_context(samples, 3, seed=4)).tolist()) == [4, 4, 8]


class Memory:
    """Scores a response with the human score it saw for its context, 0 for a context that it never saw."""

    def __init__(self, annotated: Sequence[tuple[Sample, float]]) -> None:
        self.seen = {key(sample): score for sample, score in annotated}

    def score(self, samples: Sequence[Sample]) -> np.ndarray:
        return np.array([self.seen.get(key(sample), 0.0) + len(self.seen) / 1000 for sample in samples])


def test_no_context_leaks() -> None:
    annotated = [(sample, 5.0) for sample in SAMPLES]
    assert Memory(annotated).score(SAMPLES).min() > 5
    scores = out_of_fold(Memory, annotated, 5, seed=2)
    assert scores.dtype == np.float64 and scores.shape == (len(SAMPLES),)
    assert (scores < 1).all()
    # Each fold's model has seen all the other contexts.
    fold = folds_by_context(SAMPLES, 5, seed=2)
    for out in range(5):
        held = {key(sample) for sample, at in zip(SAMPLES, fold, strict=True) if at == out}
        assert scores[fold == out] == pytest.approx((30 - len(held)) / 1000)


def test_scores_return_to_the_rows_they_belong_to() -> None:
    class Length:
        def __init__(self, annotated: Sequence[tuple[Sample, float]]) -> None:
            assert annotated

        def score(self, samples: Sequence[Sample]) -> np.ndarray:
            return np.array([float(SAMPLES.index(sample)) for sample in samples])

    scores = out_of_fold(Length, [(sample, 1.0) for sample in SAMPLES], 4, seed=0)
    assert scores.tolist() == list(range(len(SAMPLES)))


def test_too_few_contexts() -> None:
    samples = [Sample(("one",), "a"), Sample((" ONE",), "b"), Sample(("two",), "c")]
    assert sorted(folds_by_context(samples, 2, seed=0).tolist()) in ([0, 0, 1], [0, 1, 1])
    with pytest.raises(EvaluatorError, match="3 annotated responses to 2 contexts are too few for 3 folds"):
        folds_by_context(samples, 3, seed=0)
    with pytest.raises(EvaluatorError, match="2 folds or more, not 1"):
        folds_by_context(samples, 1, seed=0)
    with pytest.raises(EvaluatorError, match="too few"):
        out_of_fold(Memory, [], 2, seed=0)
