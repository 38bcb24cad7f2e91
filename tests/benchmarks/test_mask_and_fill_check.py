"""What the check of mask-and-fill counts, without its tagger."""

from __future__ import annotations

from benchmarks.mask_and_fill import replaced


def test_replaced_words_are_those_that_no_longer_stand() -> None:
    assert list(replaced(["i", "like", "cats"], ["i", "like", "dogs"])) == [2]
    assert list(replaced(["i", "like", "cats"], [])) == []
