"""What the check of mask-and-fill counts, without its tagger."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mask_and_fill import replaced, universal
from benchmarks.negative_statistics import negative_statistics
from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Negative


def test_replaced_words_are_those_that_no_longer_stand() -> None:
    assert list(replaced(["i", "like", "cats"], ["i", "like", "dogs"])) == [2]
    assert list(replaced(["i", "like", "cats"], [])) == []


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("VVB", "VERB"),
        ("NP0", "NOUN"),
        ("ORD", "ADJ"),
        ("PNP", "PRON"),
        ("PRP", "ADP"),
        ("PUN", "."),
        ("ITJ", "X"),
    ],
)
def test_tags_become_universal(tag: str, expected: str) -> None:
    assert universal(tag) == expected


def test_statistics_count_a_response_once() -> None:
    generated = [
        Negative(0, "mask-and-fill", 0, "a", 1, 4),
        Negative(0, "mask-and-fill", 1, "b", 4, 4),
        Negative(0, "random-1", 0, "c", 4, 4),
        Negative(2, "mask-and-fill", 0, "d", 3, 4),
    ]
    statistics = negative_statistics(iter(generated), responses=5)
    assert (statistics.with_negative, statistics.replaced, statistics.replaced_where_any) == (0.4, 0.2, 0.5)
    assert np.isnan(negative_statistics([], 3).replaced_where_any)
    with pytest.raises(EvaluatorError, match="more than the 1 in all"):
        negative_statistics(generated, 1)
