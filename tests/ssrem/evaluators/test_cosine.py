"""The cosine of the last turns and the response, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved

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
    evaluator, samples = Cosine(encoder=colours, **settings), odd_contexts()
    check_independent(evaluator, samples)
    check_parts(evaluator, samples)
    check_saved(evaluator, samples, tmp_path / "saved")
    assert not evaluator.compute(samples).truncated.any()


def test_truncated_where_a_text_does_not_fit(bert: Path) -> None:
    ten, eleven = "the " * 10, "the " * 11  # it reads 12 tokens: ten words, [CLS] and [SEP]
    samples = [
        *(Sample((ten,), ten), Sample((ten,), eleven), Sample((eleven,), ten)),
        *(Sample(("red", ten), ten), Sample((eleven, "red"), ten)),  # one by one they fit
        *(Sample((eleven, "red", "red"), ten), Sample((), eleven)),
    ]
    expected = [False, True, True, True, True, False, True]
    assert Cosine(encoder=f"hf:{bert}").compute(samples).truncated.tolist() == expected
    alone = [False, True, True, False, False, False, True]
    assert Cosine(encoder=f"hf:{bert}", context_turns=1).compute(samples).truncated.tolist() == alone


def test_each_text_is_encoded_once(colours: str) -> None:
    evaluator = Cosine(encoder=colours)
    samples = [Sample(("red", "blue"), "green"), Sample(("blue",), "green")]
    expected = evaluator.score(samples)
    evaluator.encoder.cache = cached = Mock(side_effect=evaluator.encoder.compute)
    assert np.array_equal(evaluator.score(samples), expected)
    encoded = [text for call in cached.call_args_list for text in call.args[0]]
    assert sorted(encoded) == ["blue", "green", "red blue"]


def test_signature_follows_settings_which_are_checked(colours: str) -> None:
    plain, *others = (
        Cosine(encoder=colours, **settings)
        for settings in ({}, {"join": "text"}, {"context_turns": 1}, {"join": "mean"})
    )
    assert len({plain.signature, *(other.signature for other in others)}) == 3
    settings = f"context_turns:2|encoder:{colours}|join:mean"
    assert plain.signature == f"cosine|{settings}|{plain.encoder.signature}"
    for wrong, message in (
        ({"turns": 1}, "no setting turns; there are encoder, context_turns, join"),
        ({"context_turns": True}, "context_turns: input should be a valid integer, not True"),
        ({"encoder": "all-minilm-l6"}, "did you mean all-minilm-l6-v2"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            Cosine(**wrong)


def test_the_default_is_the_packaged_minilm() -> None:
    context = ("Hi, how was your weekend?", "Great, we went hiking in the mountains.")
    responses = ("Which trail did you hike?", "The invoice is attached.")
    on_topic, off_topic = Cosine().score([Sample(context, response) for response in responses])
    assert on_topic > 0.2 + off_topic
