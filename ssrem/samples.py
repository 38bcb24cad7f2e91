"""Samples to score, candidates and human scores to learn from, and folds for cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""


TRAIN, VALID, TEST = 0, 1, 2
SPLIT_CODES = {"train": TRAIN, "valid": VALID, "test": TEST}
SPLIT_NAMES = {TRAIN: "training", VALID: "validation", TEST: "test"}
_LEFT_OUT = 255
KINDS = ("GT", "SC", "SP", "SS", "Rand")
CONTEXT_ATTACK = "Context"


@dataclass(frozen=True)
class Sample:
    """A response to evaluate, its context (the turns before it, oldest first) and, if there is one, its reference."""

    context: tuple[str, ...]
    response: str
    reference: str | None = None

    def last_turns(self, count: int) -> list[str]:
        """The last `count` turns of the context that are not blank, oldest first."""
        return [turn for turn in self.context if turn.strip()][-count:]


def context_key(turns: Iterable[str]) -> str:
    """A key that is equal for contexts with the same words, whatever their case, blanks and division into turns."""
    return " ".join(" ".join(turns).casefold().split())


def dialogue_units(contexts: Iterable[Iterable[str]]) -> list[str]:
    """A key for each context, which is equal for contexts of one dialogue.

    Contexts are of one dialogue if they are equal by `context_key`, or if one continues another of two turns or more,
    as where each answer of a dialogue was rated. Scores within such a unit are not independent, and its contexts
    contain its responses. Responses are therefore drawn and divided by whole units, both to estimate how figures vary
    and to test on unseen responses.
    """
    keys = [tuple(filter(None, (context_key([turn]) for turn in turns))) for turns in contexts]
    known = set(keys)
    begins = (next((key[:size] for size in range(2, len(key)) if key[:size] in known), key) for key in keys)
    return [" ".join(key) for key in begins]


@dataclass(frozen=True, repr=False)
class Candidates:
    """True responses with their contexts and negatives, as positions in one list of texts.

    texts: every turn, conversation by conversation, in order; after them, once more, the turns of contexts that are not
    contiguous there, as in threads. response (n,): position of the true response.
    context_start, context_stop (n,): the context is texts[start:stop].
    negatives: kind → positions (n, k), -1 where there is no such negative.
    split (n,): 0 train, 1 valid, 2 test, 255 for responses that `sampled` left out.
    """

    texts: Sequence[str]
    response: Rows
    context_start: Rows
    context_stop: Rows
    negatives: Mapping[str, Rows]
    split: NDArray[np.uint8]

    def __post_init__(self) -> None:
        n, texts = len(self.response), len(self.texts)
        for name in ("context_start", "context_stop", "split"):
            if (shape := getattr(self, name).shape) != (n,):
                raise EvaluatorError(f"candidates: {name} has shape {shape}, expected ({n},)")
        for kind, rows in self.negatives.items():
            if kind not in KINDS[1:] or rows.ndim != 2 or len(rows) != n:
                raise EvaluatorError(
                    f"candidates: negatives {kind!r} of shape {rows.shape}; "
                    f"expected ({n}, k) under one of {', '.join(KINDS[1:])}"
                )
            if rows.size and (rows.min() < -1 or rows.max() >= texts):
                raise EvaluatorError(f"candidates: a negative {kind} lies outside the {texts} texts")
        if n and (self.response.min() < 0 or self.response.max() >= texts):
            raise EvaluatorError(f"candidates: a response lies outside the {texts} texts")
        if n and (
            self.context_start.min() < 0
            or self.context_stop.max() > texts
            or (self.context_start > self.context_stop).any()
        ):
            raise EvaluatorError(f"candidates: a context is no range within the {texts} texts")

    def __len__(self) -> int:
        return len(self.response)

    def __repr__(self) -> str:
        return f"<Candidates: {len(self):,} responses among {len(self.texts):,} texts>"

    @property
    def has_context(self) -> NDArray[np.bool_]:
        """Whether each response has a turn before it, bool (n,)."""
        return self.context_stop > self.context_start

    def sample(self, row: int) -> Sample:
        """The true response at `row`, with its context."""
        start, stop = int(self.context_start[row]), int(self.context_stop[row])
        return Sample(tuple(self.texts[start:stop]), self.texts[int(self.response[row])])

    def sampled(self, split: int, n: int | None) -> Candidates:
        """The candidates with `n` responses of the split, drawn by a fixed seed; all if `n` is None or larger."""
        rows = self.rows(split)
        if n is None or len(rows) <= n:
            return self
        left_out = np.random.default_rng(0).permutation(rows)[n:]
        splits = self.split.copy()
        splits[left_out] = _LEFT_OUT
        return replace(self, split=splits)

    def drawn(self, split: int, n: int | None, seed: int) -> Rows:
        """Positions of `n` responses of the split, drawn by the seed, in order; all if `n` is None or larger."""
        return np.sort(np.random.default_rng(seed).permutation(self.rows(split))[:n])

    def part(self, rows: Rows) -> Candidates:
        """The responses at `rows` with only the texts that they need; a context is still a range of texts."""
        start, stop = self.context_start[rows], self.context_stop[rows]
        drawn = {kind: negatives[rows] for kind, negatives in self.negatives.items()}
        # +1 where a context begins and -1 after its end: a text with a sum above zero lies within one.
        edges = np.bincount(start, minlength=len(self.texts) + 1)
        needed = np.cumsum(edges - np.bincount(stop, minlength=len(self.texts) + 1))[:-1] > 0
        for used in (self.response[rows], *drawn.values()):
            needed[used[used >= 0]] = True
        place = np.concatenate([[0], np.cumsum(needed)])  # new position of each text, and of the end
        return Candidates(
            texts=[self.texts[at] for at in np.flatnonzero(needed).tolist()],
            response=place[self.response[rows]],
            context_start=place[start],
            context_stop=place[stop],
            negatives={kind: np.where(used >= 0, place[used], -1) for kind, used in drawn.items()},
            split=self.split[rows],
        )

    def rows(self, split: int | None) -> Rows:
        """Positions of a split's responses, in order; all of them for None."""
        return np.arange(len(self)) if split is None else np.flatnonzero(self.split == split)


@dataclass(frozen=True)
class Labels:
    """Human scores of one criterion. pairs: samples with the mean of their raters' scores.

    scale: the lowest and highest score that a rater gave. criterion: what the raters scored. excluded: ground-truth
    rows that were left out.
    """

    pairs: tuple[tuple[Sample, float], ...]
    scale: tuple[float, float]
    criterion: str
    excluded: int

    @property
    def samples(self) -> list[Sample]:
        """The samples, in order."""
        return [sample for sample, _ in self.pairs]

    @property
    def human(self) -> Floats:
        """The human scores of the samples, float64 (n,)."""
        return np.array([score for _, score in self.pairs], dtype=np.float64)


Labelled = Sequence[tuple[Sample, float]]
"""Samples with their human score."""


class Scorer(Protocol):
    """A model that can be cross-validated: anything with a method `score`, such as an evaluator."""

    def score(self, samples: Sequence[Sample]) -> Floats: ...


def draw(rows: Rows, count: int, seed: Sequence[int]) -> Rows:
    """A random sample of `count` rows, in ascending order; all rows as they are if there are no more."""
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def folds_by_context(samples: Sequence[Sample], folds: int, seed: int) -> Rows:
    """The fold of each sample, int64 (n,), from 0.

    All responses to one context, and to those that continue it (`dialogue_units`), share a fold. Folds are of nearly
    the same size. They depend on the seed and on the set of contexts and their sizes, not on the order of samples.
    Raises EvaluatorError for fewer than 2 folds, or fewer contexts than folds.
    """
    if folds < 2:
        raise EvaluatorError(f"cross-validation takes 2 folds or more, not {folds}")
    groups: dict[str, list[int]] = {}
    for position, unit in enumerate(dialogue_units(sample.context for sample in samples)):
        groups.setdefault(unit, []).append(position)
    if len(groups) < folds:
        raise EvaluatorError(
            f"{len(samples)} annotated responses to {len(groups)} contexts are too few for {folds} folds, "
            "which split them by context; annotate more contexts or ask for fewer folds"
        )
    keys = sorted(groups)
    shuffled = [keys[at] for at in np.random.default_rng(seed).permutation(len(keys))]
    fold, sizes = np.zeros(len(samples), dtype=np.int64), [0] * folds
    # The largest groups first, each into the fold that is smallest so far.
    for key in sorted(shuffled, key=lambda key: -len(groups[key])):
        smallest = sizes.index(min(sizes))
        fold[groups[key]] = smallest
        sizes[smallest] += len(groups[key])
    return fold


def out_of_fold(make: Callable[[Labelled], Scorer], annotated: Labelled, folds: int, seed: int) -> Floats:
    """A score for each annotated response by a model that saw no score of its context, float64 (n,).

    make: returns a model that learned from the given samples and human scores. Raises as `folds_by_context` does.
    """
    samples = [sample for sample, _ in annotated]
    fold = folds_by_context(samples, folds, seed)
    scores = np.full(len(samples), np.nan)
    for out in range(folds):
        model = make([pair for pair, at in zip(annotated, fold, strict=True) if at != out])
        rows = np.flatnonzero(fold == out)
        scores[rows] = model.score([samples[row] for row in rows])
    return scores
