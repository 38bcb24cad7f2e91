"""What evaluators learn from: negatives, kept for a training that goes on, and human scores, held out by context."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from ssrem.evaluators.learning import HeldOutSplit, enough, negatives_by_response, number_of_contexts
from ssrem.negatives import load_generator
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
    nearly_all = HeldOutSplit.of("x", [(sample, 3.0) for sample in samples], (1, 5), share=0.99, seed=[0])
    assert number_of_contexts([nearly_all.samples[row] for row in nearly_all.split[0]]) == 1
    assert not enough([Sample(WRITTEN[number % 3], "a") for number in range(12)])


def test_negatives_are_kept_for_a_training_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 600  # three batches
    texts = [
        said.format(number) for number in range(count) for said in ("what is {}", "{} is one of many numbers")
    ]
    start = np.arange(0, 2 * count, 2)
    candidates = Candidates(texts, start + 1, start, start + 1, {}, np.zeros(count, dtype=np.uint8))
    generator = load_generator("shuffle-golden")

    def negatives(seed: int = 0, **more: Any) -> Any:
        return negatives_by_response("x", candidates, TRAIN, np.arange(count), generator, seed, **more)

    expected = negatives()
    with pytest.raises(KilledError):
        negatives(progress=killed_at(512), folder=tmp_path)
    (file,) = tmp_path.iterdir()
    with file.open("a") as stream:
        stream.write('[[513, "shuffle-golden", 0, "cut o')
    made = create_autospec(type(generator).admitted, side_effect=type(generator).admitted)
    monkeypatch.setattr(type(generator), "admitted", made)
    for new in (list(range(512, count)), []):
        made.reset_mock()
        assert negatives(folder=tmp_path) == expected
        assert [call.args[1].row for call in made.call_args_list] == new
    negatives(1, folder=tmp_path)
    assert made.call_count == count and len(list(tmp_path.iterdir())) == 2  # another seed has other negatives
