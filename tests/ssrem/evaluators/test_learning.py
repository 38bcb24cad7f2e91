"""What evaluators learn from: negatives, kept for a training that goes on, and human scores, held out by context."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssrem.evaluators.learning import HeldOutSplit, enough, negatives_by_response, number_of_contexts
from ssrem.negatives import load_generator
from ssrem.negatives.base import Case
from ssrem.samples import TRAIN, Candidates, Sample
from support.trained import KilledError, killed_at

WRITTEN = [("Hi", "there {}"), ("hi there {}",), ("HI  there", "{}")]


def test_a_context_is_held_out_however_it_is_written() -> None:
    samples = [
        Sample(tuple(turn.format(number) for turn in WRITTEN[number % 3]), f"response {number}")
        for number in (*range(10), *range(10))
    ] + [Sample(tuple(turn.format(number) for turn in WRITTEN[0]), "another") for number in range(10)]
    assert number_of_contexts(samples) == 10
    split = HeldOutSplit.of("x", [(sample, 3.0) for sample in samples], (1, 5), share=0.3, seed=[0])
    learned, held_out = (
        {" ".join(split.samples[row].context).lower().split()[-1] for row in rows} for rows in split.split
    )
    assert len(held_out) == 3 and not learned & held_out
    assert split.counts["contexts"] == 10
    assert not enough([Sample(WRITTEN[number % 3], "a") for number in range(12)])


def test_negatives_are_kept_for_a_training_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 600  # three batches
    texts = [
        text for number in range(count) for text in (f"what is {number}", f"{number} is one of many numbers")
    ]
    start = np.arange(0, 2 * count, 2)
    candidates = Candidates(texts, start + 1, start, start + 1, {}, np.zeros(count, dtype=np.uint8))
    rows, generator = np.arange(count), load_generator("shuffle-golden")
    expected = negatives_by_response("x", candidates, TRAIN, rows, generator, 0)
    with pytest.raises(KilledError):
        negatives_by_response(
            "x", candidates, TRAIN, rows, generator, 0, progress=killed_at(512), folder=tmp_path
        )
    (file,) = tmp_path.iterdir()
    with file.open("a") as stream:
        stream.write('[[513, "shuffle-golden", 0, "cut o')
    made: list[int] = []
    admitted = type(generator).admitted

    def counted(self: object, case: Case, seed: int) -> object:
        made.append(case.row)
        return admitted(self, case, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(type(generator), "admitted", counted)
    for new in (list(range(512, count)), []):
        made.clear()
        assert negatives_by_response("x", candidates, TRAIN, rows, generator, 0, folder=tmp_path) == expected
        assert made == new
    negatives_by_response("x", candidates, TRAIN, rows, generator, 1, folder=tmp_path)
    assert len(made) == count and len(list(tmp_path.iterdir())) == 2  # another seed has other negatives
