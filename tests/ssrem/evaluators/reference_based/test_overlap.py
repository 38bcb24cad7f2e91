"""Overlap with the reference, against values worked out by hand and the libraries that are usual."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer

from ssrem.evaluators.reference_based.overlap import (
    Bleu1,
    Bleu1Of1,
    Bleu2,
    Bleu2Of2,
    Bleu3,
    Bleu3Of3,
    Bleu4,
    Meteor,
    OverlapMetric,
    RougeL,
    tokens,
)
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved, odd_samples

BLEUS = (Bleu1, Bleu2, Bleu3, Bleu4)
OF_THEIR_ORDERS = (Bleu1Of1, Bleu2Of2, Bleu3Of3)
WORDS = st.lists(
    st.sampled_from(["the", "cat", "cats", "sat", "on", "mat", "running", "runs", "."]), max_size=12
)


def one(metric: type[OverlapMetric], response: str, reference: str) -> float:
    return float(metric().compute([Sample((), response, reference)]).score[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm FINE...  thanks , you?", ["i", "'", "m", "fine", "...", "thanks", ",", "you", "?"]),
        ("a_b 42nd!?\n", ["a", "_", "b", "42nd", "!?"]),
        ("Été e\u0301te\u0301", ["été", "été"]),
        ("这是 test。カタ", ["这", "是", "test", "。", "カ", "タ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        (" \t", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@settings(deadline=None, max_examples=30)
@given(WORDS, WORDS)
def test_bleu_is_nltks(response: list[str], reference: list[str]) -> None:
    given_, expected = tokens(" ".join(response)), tokens(" ".join(reference))
    assume(given_ != expected)  # see below
    four = [tuple(1 / order if n < order else 0 for n in range(4)) for order in range(1, 5)]
    own = [(1 / order,) * order for order in range(1, 4)]
    for metric, weights in zip((*BLEUS, *OF_THEIR_ORDERS), (*four, *own), strict=True):
        bleu = sentence_bleu([expected], given_, weights, SmoothingFunction().method7)
        assert one(metric, " ".join(response), " ".join(reference)) == pytest.approx(bleu)


@pytest.mark.parametrize("metric", [*BLEUS, *OF_THEIR_ORDERS])
def test_bleu_ends_where_a_perfect_match_is(metric: type[OverlapMetric]) -> None:
    text = "one two three four five six"
    assert metric.range[0] < one(metric, f"{text} seven", text) < one(metric, text, text)
    assert one(metric, text, text) == pytest.approx(metric.range[1])
    assert one(metric, "Yes", "yes") == pytest.approx(1) and one(metric, "yes sir", "yes sir") >= 1


TEXTS = ["Don't you like my two_dogs?", "you LIKE dogs, don't you", "my 2 dogs like you - you?", "", "?!"]
TEXT = WORDS.map(" ".join) | st.sampled_from(TEXTS)


@settings(deadline=None, max_examples=50)
@given(TEXT, TEXT)
def test_rouge_is_rouge_scores(response: str, reference: str) -> None:
    expected = RougeScorer(["rougeL"]).score(target=reference, prediction=response)["rougeL"].fmeasure
    assert one(RougeL, response, reference) == pytest.approx(expected)


@settings(deadline=None, max_examples=30)
@given(WORDS, WORDS)
def test_meteor_is_nltks_without_synonyms(response: list[str], reference: list[str]) -> None:
    none = SimpleNamespace(synsets=lambda word: [])
    expected = single_meteor_score(reference, response, stemmer=PorterStemmer(), wordnet=none)
    assert one(Meteor, " ".join(response), " ".join(reference)) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [Bleu4, Bleu2Of2, RougeL, Meteor])
def test_every_text_has_a_score(metric: type[OverlapMetric], tmp_path: Path) -> None:
    samples = odd_samples("The cat sat on the mat.")
    check_independent(metric(), samples)
    check_parts(metric(), samples)
    check_saved(metric(), samples, tmp_path)
    assert not metric().compute(samples).truncated.any()
    for odd in ODD:
        assert one(metric, odd, "") == one(metric, "", odd) == 0


def test_signatures_say_what_is_computed() -> None:
    assert Bleu1().signature != Bleu2().signature
    assert "nltk-" in Bleu4().signature and "tokens:1" in Bleu4().signature
    assert "rapidfuzz-" in RougeL().signature
    assert "stages:exact+stem" in Meteor().signature
