"""Distilling: labels from a judge, by a scripted endpoint, and judge and student side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.blend import Blend
from ssrem.samples import TRAIN
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.distil import graded
from ssrem.tasks.settings import TrainSettings
from ssrem.tasks.versions import register
from ssrem.tasks.warehouse.home import Warehouse
from support.judge_server import KEY, JudgeServer, completion, judge_server
from support.small_home import Made

Capture = pytest.CaptureFixture[str]

N = 40


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    """It dislikes copies of a turn."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": ()})  # cosine loads a transformer

    def answer(body: dict[str, Any], _: int) -> Any:
        said, _, rest = body["messages"][0]["content"].partition("Response: ")
        return completion("1" if rest.partition("\n")[0] in said else "5")

    with judge_server(answer) as running:
        yield running


def distil(home: Warehouse, *more: str, name: str = "blend", n: str = str(N)) -> list[str]:
    parts = ["--set", 'parts=["novelty", "fluency"]'] if name == "blend" else []
    asking = ["--labels-from", "judge", "--responses", n, "--labels-only"]
    return ["train", name, *parts, *asking, "--home", str(home.root), *more]


def set_up(home: Warehouse, server: JudgeServer) -> None:
    settings = {"base_url": server.url, "model": "tiny"}
    assert register("judge", str(home.root), settings) == (1, True) and server.asked == []


def judge_and_student(shown: str) -> list[list[str]]:
    """The words of the last two lines that begin with their names."""
    lines = [line.split() for line in shown.splitlines()]
    return [line for line in lines if line[:1] in (["judge"], ["blend"])][-2:]


def test_true_and_wrong_responses_are_asked_about(made: Made) -> None:
    settings = TrainSettings(labels_from="judge", responses=N)
    with made.home.reader() as connection:
        candidates = load_candidates(connection, ["tiny"])
    samples = graded("blend", candidates, settings)
    texts, rows = candidates.texts, candidates.rows(TRAIN)
    true = {(texts[candidates.context_stop[row] - 1], texts[candidates.response[row]]) for row in rows}
    shown = [(sample.context[-1], sample.response) in true for sample in samples]
    assert shown == [True, False] * (N // 2)
    assert all(one.context == other.context for one, other in zip(samples[::2], samples[1::2], strict=True))
    wrong = samples[1::2]
    copies = [sample.response == sample.context[-1] for sample in wrong]
    words = [sorted(sample.response.split()) for sample in samples]
    shuffled = [a == b for a, b in zip(words[::2], words[1::2], strict=True)]
    turns = [sample.response in texts for sample in wrong]
    assert 0 < sum(copies) < len(wrong) / 2 and 0 < sum(shuffled) < len(wrong) / 2 < sum(turns)
    assert samples == graded("blend", candidates, settings)
    more = graded("blend", candidates, settings.model_copy(update={"responses": N + 10}))
    assert more[:N] == samples and len(more) == N + 10
    assert samples != graded("blend", candidates, settings.model_copy(update={"seed": 1}))


def test_a_student_learns_what_the_judge_answers_and_nothing_is_asked_twice(
    copy: Warehouse, server: JudgeServer, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(copy, server)
    assert main(distil(copy, "--max-requests", "15")) == 1
    said = capsys.readouterr().err
    assert "stopped at max_requests=15 with 25 of 40 requests left" in said
    assert f"judge sends 40 responses with their contexts to {server.url}, model tiny" in said
    monkeypatch.setenv("OTHER_KEY", "other")
    assert main(distil(copy, "--asking", "concurrency=2", "key_env=OTHER_KEY")) == 0
    assert server.keys[15:] == ["Bearer other"] * (N - 15)
    said = capsys.readouterr()
    assert len(server.asked) == N and len(set(server.messages())) == N
    assert "blend: trained; version 1, in use: first version" in said.out
    of_weights = "each context scored by weights learned from the other ones"
    assert f"blend: Spearman on judge@1, {of_weights}" in said.err
    folder = copy.models / "blend" / "1"
    blend, card = load_evaluator(folder), json.loads((folder / "card.json").read_text())
    assert isinstance(blend, Blend) and blend.weights["novelty"] > 0.5
    assert card["figures"]["out_of_fold"] > 0.5
    assert card["human_scores"] == {"judge@1": {"criterion": "overall", "responses": N, "scale": [1.0, 5.0]}}
    assert len(card["labels"]) == 64
    judge, student = judge_and_student(said.out)
    assert judge[:2] == ["judge", "1"] and student[:2] == ["blend", "1"]
    assert "1,000" in judge and student[-4:-1] == ["0", "0", "0"] and float(student[-1]) >= 0
    # On an annotated set that the judge has scored, agreement with people stands side by side.
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    responses = [(n, "so " * n if n % 3 else f"hi {n}") for n in range(1, 25)]
    rows = [
        {"context": [f"hi {n}"], "response": response, "annotations": {"overall": [1 + n % 3]}}
        for n, response in responses
    ]
    Path(tmp_path / "others_eval.json").write_text(json.dumps(rows))
    compare = ["correlate", str(tmp_path / "others_eval.json"), "--evaluator", "judge"]
    assert main([*compare, "--home", str(copy.root)]) == 0
    asked = len(server.asked)
    capsys.readouterr()
    assert main(distil(copy)) == 0
    again = capsys.readouterr().out
    assert "nothing new to train" in again and len(server.asked) == asked
    judge, student = judge_and_student(again)
    assert all(line[2:4] == ["others", "overall"] and line[5] == "24" for line in (judge, student))
    assert judge[-4] == "1,000" and all(float(line[6]) > 0.5 for line in (judge, student))


def test_what_cannot_be_distilled(copy: Warehouse, server: JudgeServer, capsys: Capture) -> None:
    assert main(distil(copy)) == 1
    assert "none is set up in" in capsys.readouterr().err
    set_up(copy, server)
    apart = "ssrem does not learn from human scores; leave --labels and --labels-from out"
    for more, of, says in (
        ((), {"name": "ssrem"}, apart),
        ((), {"name": "cosine"}, "cosine learns nothing, so it cannot learn from labels"),
        ((), {"n": "4"}, "4 responses to ask a judge about to 2 contexts are too few"),
        (("--asking", "concurency=1"), {}, "concurency"),
        (("--asking", f"key_env={KEY}"), {}, "environment variable, not the key"),
    ):
        assert main(distil(copy, *more, **of)) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert says in error and KEY not in error and server.asked == []
    for options, says in (
        (["--labels-from", "judge"], "--labels-from needs --responses N"),
        (["--max-requests", "3"], "need --labels-from judge"),
        (["--seed", "3", "--set", "seed=4"], "--seed and --set seed= say different things; leave one out"),
    ):
        assert main(["train", "blend", *options]) > 0
        assert says in capsys.readouterr().err
    server.answer = lambda body, n: completion("3" if n < 8 else "I cannot say.")
    assert main(distil(copy)) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "8 answers of judge (32 of 40 responses are left out, no number 32)" in error
    server.answer = lambda body, n: completion("3")
    assert main(distil(copy, "--seed", "1")) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "judge gives all" in error and "responses the score 3, which teaches nothing" in error
