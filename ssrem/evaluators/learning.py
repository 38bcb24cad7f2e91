"""Data that evaluators learn from: responses with their negatives, and human scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError, counted
from ssrem.negatives.base import BATCH, Generator, Negative
from ssrem.samples import (
    CONTEXT_ATTACK,
    SPLIT_NAMES,
    TRAIN,
    VALID,
    Candidates,
    Floats,
    Progress,
    Rows,
    Sample,
    dialogue_units,
    draw,
)

_FEWEST_SAMPLES, _FEWEST_CONTEXTS = 10, 5


@dataclass(frozen=True)
class CandidateColumns:
    """The candidates of n responses, in columns. rows (n,): positions of the responses in the `Candidates`.

    start, stop (n,): the range of texts that is the context. joined (n, m): the candidates of all kinds, kind by kind,
    as rows of the texts, -1 for a missing one. widths: kind → number of its columns.
    """

    rows: Rows
    start: Rows
    stop: Rows
    joined: Rows
    widths: dict[str, int]

    @classmethod
    def of(cls, candidates: Candidates, split: int | None) -> CandidateColumns:
        """Columns of a split's responses: GT, the kinds of `candidates.negatives`, and Context (the last turn)."""
        rows = candidates.rows(split)
        start, stop = candidates.context_start[rows], candidates.context_stop[rows]
        wanted = {"GT": candidates.response[rows, None]}
        wanted |= {kind: negatives[rows] for kind, negatives in candidates.negatives.items()}
        wanted[CONTEXT_ATTACK] = np.where(stop > start, stop - 1, -1)[:, None]
        joined = np.concatenate(list(wanted.values()), axis=1)
        return cls(rows, start, stop, joined, {kind: column.shape[1] for kind, column in wanted.items()})

    def by_kind(self, values: Floats) -> dict[str, Floats]:
        """Split `values` (n, m), which has the columns of `joined`, into kind → its columns."""
        edges = np.cumsum(list(self.widths.values()))[:-1]
        return dict(zip(self.widths, np.split(values, edges, axis=1), strict=True))


def usable_rows(
    name: str, candidates: Candidates, split: int, usable: NDArray[np.bool_], lacking: str
) -> Rows:
    """Positions of those responses of the split that are usable; EvaluatorError if there are none.

    usable: bool, one for each of all responses. lacking: what unusable ones lack, for the error message.
    """
    rows = candidates.rows(split)
    rows = rows[usable[rows]]
    if len(rows) == 0:
        raise EvaluatorError(
            f"{name}: no response of the {SPLIT_NAMES[split]} split has {lacking}; more conversations are needed"
        )
    return rows


def learned_and_valid(
    name: str, candidates: Candidates, usable: NDArray[np.bool_], lacking: str, config: Any
) -> tuple[Rows, Rows, list[str]]:
    """Usable responses of the training split, and at most `config.max_valid` of the validation split; notes."""
    learned, valid = (usable_rows(name, candidates, split, usable, lacking) for split in (TRAIN, VALID))
    drawn = draw(valid, config.max_valid, [config.seed, 5])
    note = f"validation takes {len(drawn)} of {len(valid)} responses, drawn once (max_valid)"
    return learned, drawn, [note] if len(drawn) < len(valid) else []


def contents(texts: Sequence[str]) -> Rows:
    """For each text the position of the first text that is equal up to case and spaces, int64 (n,)."""
    same: dict[str, int] = {}
    return np.array([same.setdefault(" ".join(text.lower().split()), at) for at, text in enumerate(texts)])


def negatives_by_response(
    name: str,
    candidates: Candidates,
    split: int,
    rows: Rows,
    generator: Generator,
    seed: int,
    *,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> list[tuple[Sample, list[Negative]]]:
    """True response and negatives for each of `rows` that has a negative; EvaluatorError if none has.

    split: which split the rows are from, for the error. progress: called with the number of rows done and of all rows.
    folder: where the negatives are kept, so that a resumed training does not generate them again.
    """
    by_row: dict[int, list[Negative]] = {int(row): [] for row in rows}
    batches = generator.generate(candidates, rows, seed=seed, folder=folder)
    for done, batch in enumerate(batches, 1):
        for negative in batch:
            by_row[negative.response].append(negative)
        if progress is not None:
            progress(min(done * BATCH, len(rows)), len(rows))
    if not any(by_row.values()):
        raise EvaluatorError(
            f"{name}: no response of the {SPLIT_NAMES[split]} split has a negative from {generator.name}; "
            "more conversations are needed, or other negatives"
        )
    return [(candidates.sample(row), negatives) for row, negatives in by_row.items() if negatives]


@dataclass(frozen=True)
class HeldOutSplit:
    """Annotated samples, some of which are held out; they are sorted, so that their order in a file has no effect.

    unit: float64 (n,), the human scores scaled to the unit range. held_out: bool (n,), the samples that choose the
    epoch; they share no context with the others. note: a remark for the record of the training.
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
        """Hold out the samples of a random share of the contexts: at least of one context, and never of all.

        kind: what messages call the samples. EvaluatorError for scores beyond the scale, or if there are fewer than 10
        samples or 5 contexts.
        """
        low, high = scale
        ordered = sorted(
            annotated, key=lambda pair: (pair[0].context, pair[0].response, pair[0].reference or "", pair[1])
        )
        scores = on_scale(name, ordered, scale)
        samples = [sample for sample, _ in ordered]
        check_enough(name, samples, kind)
        keys = dialogue_units(sample.context for sample in samples)
        contexts = list(dict.fromkeys(keys))
        order = np.random.default_rng(seed).permutation(len(contexts))
        size = min(max(1, round(share * len(contexts))), len(contexts) - 1)
        chosen = {contexts[at] for at in order[:size].tolist()}
        held_out = np.array([key in chosen for key in keys], dtype=bool)
        note = f"learned from human scores from {low:g} to {high:g}; validation has contexts of its own"
        return cls(samples, (scores - low) / (high - low), held_out, note)

    @property
    def split(self) -> tuple[Rows, Rows]:
        """Positions of the samples that are learned from, and of those that are held out."""
        return np.flatnonzero(~self.held_out), np.flatnonzero(self.held_out)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of the samples that are learned from ("train"), of those held out ("valid"), and of contexts."""
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
    """Number of contexts of the samples; contexts of one dialogue count as one (`dialogue_units`)."""
    return len({*dialogue_units(sample.context for sample in samples)})


def enough(samples: Sequence[Sample]) -> bool:
    """Whether there are at least 10 samples with at least 5 contexts."""
    contexts = number_of_contexts(samples)
    return len(samples) >= _FEWEST_SAMPLES and contexts >= _FEWEST_CONTEXTS


def check_enough(name: str, samples: Sequence[Sample], kind: str = "annotated responses") -> None:
    """Raise EvaluatorError if the samples are not `enough`. kind: what the message calls them."""
    if not enough(samples):
        contexts = number_of_contexts(samples)
        raise EvaluatorError(
            f"{name}: {len(samples)} {kind} to {counted(contexts, 'context')} are too few to learn from; "
            f"give {_FEWEST_SAMPLES} to {_FEWEST_CONTEXTS} contexts or more"
        )


def left_out(reasons: Sequence[str]) -> list[str]:
    """One line that says how many responses are left out and why; an empty list if none is.

    reasons: one for each response, "" if it is kept."""
    counts = Counter(filter(None, reasons))
    listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
    return [f"{counts.total():,} of {len(reasons):,} responses are left out, {listed}"] if counts else []
