"""Human scores to learn from: contexts that differ in case, blanks and cuts are one."""

from __future__ import annotations

from ssrem.evaluators.learning import HeldOutSplit, enough, number_of_contexts
from ssrem.samples import Sample

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
