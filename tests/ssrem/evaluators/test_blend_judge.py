"""A blend with a judge among its parts: what it asks, learns and scores where some answers are no numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.blend import Blend, BlendRef, BlendRefSettings, BlendSettings
from ssrem.evaluators.judge.judge import asked, asks, judgments
from ssrem.samples import Candidates, Sample
from ssrem.tasks.endpoints import connected
from ssrem.tasks.warehouse.home import Warehouse
from support.judge_server import JudgeServer, completion, judge_server
from support.trained import one_set

SAMPLES = [Sample((f"How are you, {at}?",), "well " * (1 + at % 5)) for at in range(15)]
PAIRS = [(sample, float(len(sample.response.split()))) for sample in SAMPLES]
MUTE = "How are you, 7?"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """It counts the words of a response, and refuses to judge one."""

    def answer(body: dict[str, Any], _: int) -> Any:
        message = body["messages"][0]["content"]
        if MUTE in message:
            return completion("I cannot judge this.", refusal="no")
        _, _, response = message.rpartition("Response A: " if "Response A: " in message else "Response: ")
        return completion(str(response.partition("\n")[0].count("well")))

    with judge_server(answer) as running:
        yield running


def settings(
    server: JudgeServer, judge: str = "judge", other: str = "novelty", kind: Any = BlendSettings
) -> Any:
    own = {"base_url": server.url, "model": "tiny"}
    return kind(parts=[{"evaluator": judge, "settings": own}, other], negatives="drawn")


def tuned_by(blend: Blend, pairs: Any) -> Any:
    return blend.tuned_on(one_set(pairs))


def test_a_response_that_the_judge_refuses_has_no_score_and_teaches_nothing(
    server: JudgeServer, tmp_path: Path
) -> None:
    home = Warehouse.at(str(tmp_path / "home"))
    untrained = Blend(settings(server))
    connected(untrained, home)
    assert asked(untrained, SAMPLES)["requests"] == 15
    blend = tuned_by(untrained, PAIRS)
    assert blend.training is not None and blend.training.rows["train"] == 14
    assert "1 of 15 responses are left out, part judge: refused 1" in blend.training.notes
    scores = blend.components(SAMPLES)
    assert scores.reasons[7] == "part judge: refused" and np.isnan(scores.score[7])
    assert np.isnan(scores.score).sum() == 1 and scores.score[4] > scores.score[3]
    assert len(server.asked) == 15 and asked(blend, SAMPLES)["requests"] == 0
    rows = judgments(blend, SAMPLES)
    assert len(rows) == 15 and rows[7]["reason"] == "refused"
    blend.save(tmp_path / "saved")
    assert asks(tmp_path / "saved")
    again = connected(load_evaluator(tmp_path / "saved"), home)
    assert np.array_equal(again.score(SAMPLES), scores.score, equal_nan=True)
    assert len(server.asked) == 15


def test_several_sets_are_learned_without_what_the_judge_refuses(server: JudgeServer) -> None:
    more = [
        (Sample(("Hi!", *sample.context), sample.response), score)
        for sample, score in PAIRS
        if MUTE not in sample.context
    ]
    sets = {name: one_set(pairs)["set"] for name, pairs in {"first": PAIRS, "second": more}.items()}
    training = Blend(settings(server)).tuned_on(sets).training
    assert training is not None and training.rows["train"] == 28
    assert "first: 1 of 15 responses are left out, part judge: refused 1" in training.notes


def test_true_responses_are_told_from_negatives_without_what_the_judge_refuses(server: JudgeServer) -> None:
    said = ("well well well well", "well", "well well")
    texts = [text for at in range(15) for text in (f"How are you, {at}?", *said)]
    response = np.arange(15) * 4 + 1
    split = np.where(np.arange(15) % 3 == 2, 1, 0).astype(np.uint8)
    negatives = {"SC": response[:, None] + np.array([1, 2])}
    candidates = Candidates(texts, response, response - 1, response, negatives, split)
    blend = Blend(settings(server))
    training = blend.fit(candidates)
    assert training.rows["train"] == 9 and training.rows["valid"] == 5
    assert training.figures["gt_above judge"] == 1
    assert any("are left out, part judge: refused" in note for note in training.notes)
    server.answer = lambda *_: completion("I cannot judge this.", refusal="no")
    with pytest.raises(EvaluatorError, match="in the training split no true response"):
        Blend(settings(server)).fit(candidates)


def test_too_few_answers_teach_nothing(server: JudgeServer) -> None:
    server.answer = lambda *_: completion("no number")
    with pytest.raises(
        EvaluatorError, match=r"0 responses .15 of 15 responses are left out, part judge: no num"
    ):
        tuned_by(Blend(settings(server)), PAIRS)


def test_a_blend_that_reads_the_reference_takes_a_judge_of_pairs(server: JudgeServer) -> None:
    paired = [(Sample(one.context, one.response, "well well"), score) for one, score in PAIRS]
    blend = tuned_by(BlendRef(settings(server, "judge-ref", "length", BlendRefSettings)), paired)
    scores = blend.components([*(sample for sample, _ in paired), Sample(("Hi",), "alone")])
    assert np.isnan(scores.h).nonzero()[0].tolist() == [7, 15]
    assert scores.reasons[7] == "part judge-ref: refused" and scores.reasons[15] == "no reference"
