"""The cosine of the last turns and the response, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved
from support.tiny_transformer import write_bert

BLUE_GREEN = 0.8
BOTH_GREEN = 7 / (5 * np.sqrt(2))  # (½, ½), of red and blue, against (3, 4)


def one(evaluator: Cosine, *context: str, response: str = "green") -> float:
    return float(evaluator.compute([Sample(context, response)]).score[0])


def test_two_turns_by_hand(colours: str) -> None:
    mean, text = Cosine(encoder=colours), Cosine(encoder=colours, join="text")
    last = Cosine(encoder=colours, context_turns=1)
    near = {"abs": 1e-3}  # vectors are rounded to what float16 holds
    assert one(mean, "red", "blue") == pytest.approx((BLUE_GREEN + BOTH_GREEN) / 2, **near)
    assert one(text, "red", "blue") == pytest.approx(BOTH_GREEN, **near)
    assert one(last, "red", "blue") == pytest.approx(BLUE_GREEN, **near)
    # No more turns than are asked for; one turn alone is both texts.
    assert one(mean, "green", "red", "blue") == one(mean, "red", "blue")
    assert one(mean, "blue") == one(last, "blue")
    assert one(Cosine(encoder=colours, context_turns=3, join="text"), "blue", "red", "red") == pytest.approx(
        (2 * 3 + 4) / (5 * np.sqrt(5)), **near
    )


def test_blank_turns_are_passed_over(colours: str) -> None:
    evaluator = Cosine(encoder=colours)
    assert one(evaluator, "red", " ", "blue", "\n") == one(evaluator, "red", "blue")


def test_nothing_known_is_0(colours: str) -> None:
    evaluator = Cosine(encoder=colours)
    for context, response in (((), "green"), (("", " "), "green"), (("red",), ""), (("unknown",), "red")):
        assert one(evaluator, *context, response=response) == 0
    # What the last turn does not say the one before it may: half of the cosine.
    assert one(evaluator, "green", "unknown") == pytest.approx(0.5, abs=1e-3)


def odd_contexts() -> list[Sample]:
    known = ("red dog", "the blue cat")
    texts = [*ODD, "green cat"]
    return [Sample((), "green cat"), *(Sample((*known, odd), odd) for odd in texts)] + [
        sample for odd in texts for sample in (Sample((odd,), "green cat", odd), Sample(known, odd, "green"))
    ]


@pytest.mark.parametrize("settings", [{}, {"join": "text", "context_turns": 3}])
def test_every_text_has_a_score(colours: str, tmp_path: Path, settings: dict[str, object]) -> None:
    evaluator = Cosine(encoder=colours, **settings)
    check_independent(evaluator, odd_contexts())
    check_parts(evaluator, odd_contexts())
    check_saved(evaluator, odd_contexts(), tmp_path / "saved")
    assert not evaluator.compute(odd_contexts()).truncated.any()


def test_with_a_transformer(tmp_path: Path) -> None:
    evaluator = Cosine(encoder=f"hf:{write_bert(tmp_path)}")
    check_independent(evaluator, odd_contexts())


def test_nothing_depends_on_the_number_of_threads(tmp_path: Path) -> None:
    evaluator, before = Cosine(encoder=f"hf:{write_bert(tmp_path)}"), torch.get_num_threads()
    scores = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            scores.append(evaluator.compute(odd_contexts()).score)
    finally:
        torch.set_num_threads(before)
    assert np.ptp(scores, axis=0).max() < 1e-5


def test_truncated_where_a_text_does_not_fit(tmp_path: Path) -> None:
    spec = f"hf:{write_bert(tmp_path)}"  # reads 12 tokens: ten words, [CLS] and [SEP]
    ten, eleven = "the " * 10, "the " * 11
    samples = [
        Sample((ten,), ten),
        Sample((ten,), eleven),
        Sample((eleven,), ten),
        Sample(("red", ten), ten),  # one by one they fit
        Sample((eleven, "red"), ten),
        Sample((eleven, "red", "red"), ten),
        Sample((), eleven),
    ]
    expected = [False, True, True, True, True, False, True]
    assert Cosine(encoder=spec).compute(samples).truncated.tolist() == expected
    alone = [False, True, True, False, False, False, True]
    assert Cosine(encoder=spec, context_turns=1).compute(samples).truncated.tolist() == alone


def test_each_text_is_encoded_once(colours: str) -> None:
    evaluator = Cosine(encoder=colours)
    samples = [Sample(("red", "blue"), "green"), Sample(("blue",), "green")]
    expected = evaluator.score(samples)
    encoded: list[str] = []

    def cached(texts: Sequence[str]) -> NDArray[np.float32]:
        encoded.extend(texts)
        return evaluator.encoder.compute(texts)

    evaluator.encoder.cache = cached
    assert np.array_equal(evaluator.score(samples), expected)
    assert sorted(encoded) == ["blue", "green", "red blue"]


def test_nothing_depends_on_what_is_held_at_a_time(colours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Cosine(encoder=colours)
    expected = evaluator.compute(odd_contexts())
    monkeypatch.setattr(Cosine, "batch_samples", 3)
    assert np.abs(evaluator.compute(odd_contexts()).score - expected.f).max() < 1e-12


def test_signature_follows_settings_and_encoder(colours: str) -> None:
    evaluators = [
        Cosine(encoder=colours, **settings)
        for settings in ({}, {"join": "text"}, {"context_turns": 1}, {"join": "mean"})
    ]
    assert len({evaluator.signature for evaluator in evaluators}) == 3
    assert (
        evaluators[0].signature
        == f"cosine|context_turns:2|encoder:{colours}|join:mean|{evaluators[0].encoder.signature}"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turns": 1}, "no setting turns; there are encoder, context_turns, join"),
        ({"context_turns": 0}, "context_turns: input should be greater than or equal to 1, not 0"),
        ({"context_turns": True}, "context_turns: input should be a valid integer, not True"),
        ({"join": "max"}, "join: input should be 'mean' or 'text', not 'max'"),
        ({"encoder": None}, "encoder: input should be a valid string, not None"),
        ({"encoder": "all-minilm-l6"}, "did you mean all-minilm-l6-v2"),
    ],
)
def test_wrong_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        Cosine(**settings)


def test_the_default_is_the_packaged_minilm() -> None:
    evaluator = Cosine()
    context = ("Hi, how was your weekend?", "Great, we went hiking in the mountains.")
    assert one(evaluator, *context, response="Which trail did you hike?") > 0.2 + one(
        evaluator, *context, response="The invoice is attached."
    )
