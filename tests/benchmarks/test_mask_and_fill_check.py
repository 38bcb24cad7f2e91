"""What the check of mask-and-fill counts, without its tagger."""

from __future__ import annotations

from benchmarks.mask_and_fill import replaced, universal


def test_replaced_words_are_those_that_no_longer_stand() -> None:
    assert list(replaced(["i", "like", "cats"], ["i", "like", "dogs"])) == [2]
    assert list(replaced(["i", "like", "cats"], [])) == []


def test_tags_become_universal() -> None:
    tags = {"VVB": "VERB", "NP0": "NOUN", "ORD": "ADJ", "PNP": "PRON", "PRP": "ADP", "PUN": ".", "ITJ": "X"}
    assert {tag: universal(tag) for tag in tags} == tags
