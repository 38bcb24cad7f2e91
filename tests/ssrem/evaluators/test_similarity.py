"""g against distances worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ssrem.encoders.words import WordAverage
from ssrem.evaluators.similarity import similarity


@pytest.fixture
def encoder() -> WordAverage:
    return WordAverage("axes", ["x", "y", "z"], 3 * np.eye(3), weighting="uniform")


def test_movers_similarity_by_hand(encoder: WordAverage) -> None:
    # One word against another: word and sentence both move √2, whatever the vectors' length.
    apart = np.exp(-np.sqrt(2))
    # "x y" is {x: 1, y: 1, sentence xy: 2}, "x" is {x: 1, sentence x: 1}: x's .25 stays where it is, y's
    # .25 moves √2, the sentence's .5 moves √(2 - √2).
    half = np.exp(-(0.25 * np.sqrt(2) + 0.5 * np.sqrt(2 - np.sqrt(2))))
    similarities = similarity("sms", encoder, ["x", "x y", "x", "x y"], ["y", "x", "x", "y x"])
    assert similarities == pytest.approx([apart, half, 1, 1])


@pytest.mark.parametrize("metric", ["sms", "embedding-average"])
def test_absent_references_and_unknown_words(encoder: WordAverage, metric: str) -> None:
    similarities = similarity(metric, encoder, ["x", "x", "unknown", "x"], [None, "unknown", "x", "x"])
    assert np.isnan(similarities[0])
    assert similarities[1:] == pytest.approx([0, 0, 1])
    assert similarity(metric, encoder, [], []).shape == (0,)
