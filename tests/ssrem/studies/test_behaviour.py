"""Behaviour on everyday pairs: shares by category with intervals, and pairs that differ in one way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from ssrem.samples import Sample
from ssrem.studies.behaviour import ALL, STUDY, Pair, Pairs, behaviour, everyday_pairs
from ssrem.studies.study import Finding


def test_the_packaged_pairs_are_minimal_and_of_their_category() -> None:
    pairs = everyday_pairs()
    assert set(Counter(pair.category for pair in pairs).values()) == {20}
    assert len({(pair.context, pair.better, pair.worse) for pair in pairs}) == len(pairs) == 240
    for pair in pairs:
        assert pair.better.strip() and pair.worse.strip() and pair.better != pair.worse and pair.context
        match pair.category:
            case "copied":
                assert pair.worse in pair.context
            case "scrambled":
                assert sorted(words(pair.better)) == sorted(words(pair.worse))
            case "casing":
                assert pair.better in (pair.better.upper(), pair.better.lower())


def words(text: str) -> list[str]:
    return text.lower().replace(",", "").replace(".", "").split()


def scored_by(values: dict[str, float]) -> Any:
    def score(samples: Sequence[Sample]) -> Any:
        assert all(sample.reference is None for sample in samples)
        return np.array([values[sample.response] for sample in samples])

    return score


def test_shares_count_ties_and_missing_scores_as_not_higher() -> None:
    values = {"good": 1.0, "bad": 0.0, "tied": 1.0, "unscored": np.nan}
    pairs = [
        *[Pair("one", ("hi",), "good", "bad")] * 3,
        Pair("one", ("hi",), "good", "tied"),
        Pair("two", ("hi",), "good", "unscored"),
        Pair("two", ("hi",), "bad", "good"),
    ]
    findings = {f.condition: f for f in behaviour(Pairs(pairs, scored_by(values)), 0)}
    assert [(f.condition, f.value, f.n) for f in findings.values()] == [
        (ALL, 0.5, 6),
        ("one", 0.75, 4),
        ("two", 0.0, 2),
    ]
    low, high = binomtest(3, 4).proportion_ci(method="wilson")
    assert (findings["one"].low, findings["one"].high) == pytest.approx((low, high))


def test_sentences_name_what_is_no_better_than_chance() -> None:
    findings = [
        Finding(ALL, "better", 0.7, 60, low=0.6, high=0.8),
        Finding("copied", "better", 0.4, 20, low=0.2, high=0.6),
        Finding("off-topic", "better", 1.0, 20, low=0.8, high=1.0),
        Finding("rare", "better", 0.0, 2, low=0.0, high=0.6),
    ]
    first, second = STUDY.sentences(findings)
    assert "in 70% of 60 pairs (95% interval 60% to 80%)" in first
    assert second == "It is not shown to be better than chance at: copied (40%)."
    assert "every category" in STUDY.sentences([findings[0], findings[2]])[1]
