"""Novelty, own turn and fluency, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.aspects import COUNTS, Fluency, Novelty, OwnTurn, Repetition, WordCounts
from ssrem.evaluators.metric import Metric
from ssrem.samples import Sample
from support.metric_checks import check_independent, check_parts, check_saved, odd_samples


def one(metric: Metric, *context: str, response: str) -> float:
    return float(metric.compute([Sample(context, response)]).score[0])


@pytest.mark.parametrize(
    ("context", "response", "expected"),
    [
        (("Do you like cats?",), "Do you like cats?", -0.5),
        (("Do you like cats?",), "do YOU like dogs", -1 / 6),  # two of three bigrams
        (("Do you like cats?",), "I like cats", 0.0),  # one of two
        (("You like cats", "and they like you"), "they like cats", -0.5),  # one of each turn
        (("I like cats",), "cats like I", 0.0),
        (("Seven",), "seven!", -0.5),
        (("At seven",), "Seven", 0.0),
        (("?!",), "...", 0.0),  # no words
    ],
)
def test_novelty_by_hand(context: tuple[str, ...], response: str, expected: float) -> None:
    assert one(Novelty(), *context, response=response) == pytest.approx(expected)


def test_own_turn_by_hand(colours: str) -> None:
    evaluator = OwnTurn(encoder=colours)
    assert one(evaluator, "red", "blue", response="red") == pytest.approx(-0.5, abs=1e-3)
    assert one(evaluator, "green", "blue", response="red") == pytest.approx(-0.1, abs=1e-3)  # a cosine of .6
    assert one(evaluator, "blue", "red", response="red") == 0
    # The turn before the last one alone is the speaker's own.
    assert one(evaluator, "red", response="red") == 0
    assert one(evaluator, "red", "green", "blue", response="red") == pytest.approx(-0.1, abs=1e-3)
    assert one(evaluator, " ", "blue", response="red") == 0


def test_repetition_by_hand(colours: str) -> None:
    assert {kind().settings.encoder for kind in (OwnTurn, Repetition)} == {MINILM}
    evaluator = Repetition(encoder=colours)
    assert one(evaluator, "blue", response="green") == 0  # a cosine of .8
    assert one(evaluator, "red", "blue", "blue", response="red") == pytest.approx(-0.2, abs=1e-3)
    assert one(evaluator, "red", "blue", "blue", "blue", response="red") == 0  # the fourth turn before
    assert one(evaluator, "blue red red red red", response="red") == pytest.approx(
        0.8 - 4 / 17**0.5, abs=1e-3
    )


TURNS = ["I like cats", "I like dogs", "I like you", "you like cats", "yes", "yes"]


def test_counts_by_hand() -> None:
    counts = WordCounts.of(TURNS)
    assert counts.texts == 6
    assert counts.occurrences == {" ": 6, "i": 3, "like": 4, "cats": 2, "you": 2, "yes": 2}  # dogs: once
    assert counts.pairs[("i", "like")] == 3 and counts.pairs[("yes", " ")] == 2
    assert ("you", "like") not in counts.pairs
    total = 6 + 3 + 4 + 2 + 2 + 2
    pairs = [(3, 6 * 3), (3, 3 * 4), (2, 4 * 2), (2, 2 * 6)]
    expected = np.mean([np.log((seen + 1) / (both / total + 1)) for seen, both in pairs])
    assert counts.association("I like CATS!") == pytest.approx(expected)
    assert counts.association("cats like I") < 0 < counts.association("I like cats")
    for neutral in ("qwerty", "🎉", ":)"):  # an unknown word, and no word at all
        assert counts.association(neutral) == 0


def test_counts_are_saved_and_damage_is_noticed(tmp_path: Path) -> None:
    counts = WordCounts.of(TURNS)
    counts.save(tmp_path, "a test")
    loaded = WordCounts.load(tmp_path)
    assert loaded.texts == counts.texts
    assert (loaded.occurrences, loaded.pairs) == (counts.occurrences, counts.pairs)
    assert len(loaded.digest) == 12
    (tmp_path / "counts.safetensors").write_bytes(b"no")
    with pytest.raises(EvaluatorError, match="sha256"):
        WordCounts.load(tmp_path)


def test_the_packaged_counts_know_order() -> None:
    fluency = Fluency()
    for right, scrambled in (
        ("I usually go hiking with my brother.", "hiking my go with brother usually I."),
        ("You can use my charger on the desk.", "charger you desk my the use on can."),
    ):
        assert one(fluency, response=right) > one(fluency, response=scrambled) + 1
    assert (COUNTS / "card.json").is_file()


@pytest.mark.parametrize("name", ["novelty", "own-turn", "repetition", "fluency"])
def test_they_are_metrics_like_others(name: str, tmp_path: Path, colours: str) -> None:
    kind = evaluator_class(name)
    evaluator = kind(**({"encoder": colours} if kind in (OwnTurn, Repetition) else {}))
    assert isinstance(evaluator, Metric)
    samples = odd_samples("the red cat")
    check_independent(evaluator, samples)
    check_saved(evaluator, samples, tmp_path / "saved")
    check_parts(evaluator, samples)
