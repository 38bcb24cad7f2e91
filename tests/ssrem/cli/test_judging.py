"""A judge in a home folder: `score` and `correlate` with it, dry runs, limits, privacy, and what is published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.evaluators.blend import Blend, BlendSettings
from ssrem.samples import Labels, Sample
from ssrem.sql import queries
from ssrem.studies.behaviour import everyday_pairs
from ssrem.tasks.privacy import purge
from ssrem.tasks.score import score_test_splits
from ssrem.tasks.transfer import pack
from ssrem.tasks.warehouse.home import Warehouse
from support.judge_server import KEY, JudgeServer, completion, judge_server
from support.small_home import annotated_rows

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

N = 8
HOME = ["--home", "home"]


@pytest.fixture
def server(monkeypatch: Patch) -> Iterator[JudgeServer]:
    """It scores by the response's length, and refuses one."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)

    def answer(body: dict[str, Any], _: int) -> Any:
        message = body["messages"][0]["content"]
        response = message.partition("Response: ")[2].partition("\n")[0]
        return completion(str(1 + len(response) % 5))

    with judge_server(answer) as running:
        yield running


@pytest.fixture
def people(tmp_path: Path, monkeypatch: Patch) -> str:
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": ()})  # cosine loads a transformer
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    monkeypatch.chdir(tmp_path)
    Path("people_eval.json").write_text(json.dumps(annotated_rows()[:N]))
    return "people_eval.json"


def settings(server: JudgeServer, *more: str) -> list[str]:
    return [*HOME, "--evaluator", "judge", "--set", f"base_url={server.url}", "model=tiny", *more]


def test_score_asks_once_and_says_where_texts_go(server: JudgeServer, people: str, capsys: Capture) -> None:
    rows = [{"context": ["Hi"], "response": text} for text in ("Hello!", "Ho", "")]
    Path("x.json").write_text(json.dumps(rows))
    assert main(["score", "x.json", *settings(server), "--dry-run", "--json"]) == 0
    (bill,) = json.loads(capsys.readouterr().out)
    assert (bill["requests"], bill["responses"]) == (2, 3)
    assert server.asked == []
    for _ in range(2):
        assert main(["score", "x.json", *settings(server), "--json"]) == 0
    said = capsys.readouterr()
    scored = [json.loads(line) for line in said.out.splitlines()]
    assert [row["reason"] for row in scored[:3]] == [None, None, "empty response"]
    assert scored[:3] == scored[3:] and len(server.asked) == 2
    assert said.err.count(f"judge sends 3 responses with their contexts to {server.url}") == 0
    assert said.err.count(f"judge sends 2 responses with their contexts to {server.url}, model tiny") == 1
    assert KEY not in said.out + said.err


def test_correlate_publishes_scores_and_judgments(server: JudgeServer, people: str, capsys: Capture) -> None:
    usual, context = server.answer, annotated_rows()[7]["context"][-1]
    response = json.dumps(annotated_rows()[7]["response"])

    def refusing(body: dict[str, Any], n: int) -> Any:
        refused = response in body["messages"][0]["content"] and context in str(body)
        return completion("I cannot say.") if refused else usual(body, n)

    server.answer = refusing
    assert main(["correlate", people, *settings(server)]) == 0
    said = capsys.readouterr()
    assert "judge: 1 of 8 responses of people have no score: no number 1" in said.err
    home = Warehouse.at("home")
    assert home.query("SELECT count(*), count(f) FROM scores WHERE evaluator = 'judge'") == [(N, N - 1)]
    counted = "SELECT count(*), count(score), any_value(fingerprint) FROM judgments"
    assert home.query(counted) == [(N, N - 1, "fp_1")]
    refused = "SELECT response_id, answer FROM judgments WHERE reason = 'no number'"
    assert home.query(refused) == [("7", "I cannot say.")]
    assert home.query("SELECT count(*) FROM agreement WHERE evaluator = 'judge' AND outcome = 'ok'") > [(0,)]
    (row,) = home.query(queries("report")["judgments"].text)
    assert row[:4] == ("judge", 1, "people", "overall") and row[5:7] == (N, 1)
    assert row[7] == 1000 * 101
    asked = len(server.asked)
    assert main(["correlate", people, *settings(server, "concurrency=2")]) == 0
    assert len(server.asked) == asked <= N
    assert home.query("SELECT max(version) FROM evaluators WHERE evaluator = 'judge'") == [(1,)]
    files = [file for file in Path("home").rglob("*") if file.is_file()]
    assert not any(KEY.encode() in file.read_bytes() for file in files)


def test_a_study_asks_once_and_within_its_limit(
    server: JudgeServer, people: str, capsys: Capture, monkeypatch: Patch
) -> None:
    pairs = everyday_pairs()[:9]
    monkeypatch.setattr("ssrem.tasks.study.everyday_pairs", lambda: pairs)
    run = ["study", "behaviour", *settings(server)]
    assert main([*run, "--max-requests", "5"]) == 1
    assert "stopped at max_requests=5 with 13 of 18 requests left" in capsys.readouterr().err
    assert main(run) == 0
    assert "judge  " in capsys.readouterr().out and len(server.asked) == 18
    assert main(["study", "behaviour", *HOME, "--evaluator", "judge", "--seed", "1"]) == 0
    assert len(server.asked) == 18
    assert Warehouse.at("home").query("SELECT max(n) FROM studies WHERE evaluator = 'judge'") == [(9,)]
    capsys.readouterr()
    assert main(["study", "behaviour", *HOME, "--evaluator", "length"]) == 0
    assert "length  " in (shown := capsys.readouterr().out) and "judge" not in shown


def test_a_blend_with_a_judge_publishes_its_answers_too(
    server: JudgeServer, people: str, capsys: Capture
) -> None:
    judge = {"base_url": server.url, "model": "tiny"}
    judges = [
        {"evaluator": "judge", "name": prompt, "settings": {**judge, "prompt": prompt}}
        for prompt in ("overall", "relevance")
    ]
    pairs = ((Sample((f"Hi {at}",), "ho" * (1 + at % 5)), 1.0 + at % 5) for at in range(10))
    labels = Labels(tuple(pairs), (1.0, 5.0), "overall", 0)
    Blend(BlendSettings(parts=[*judges, "novelty"])).tuned_on({"a": labels}).save(Path("model"))
    pack(Path("model"), Path("blend.ssrem"))
    asked = len(server.asked)
    assert main(["evaluators", "import", "blend.ssrem", *HOME]) == 1
    assert f"{server.url}" in capsys.readouterr().err and len(server.asked) == asked
    assert main(["evaluators", "import", "blend.ssrem", *HOME, "--allow", server.url]) == 0
    capsys.readouterr()
    asked = len(server.asked)
    run = ["correlate", people, *HOME, "--evaluator", "blend"]
    assert main([*run, "--dry-run", "--json"]) == 0
    (bill,) = json.loads(capsys.readouterr().out)
    assert bill["requests"] == 2 * N and len(server.asked) == asked
    assert main([*run, "--max-requests", str(2 * N)]) == 0
    assert len(server.asked) == asked + 2 * N
    home = Warehouse.at("home")
    counted = "SELECT count(*), count(DISTINCT prompt) FROM judgments WHERE evaluator = 'blend'"
    assert home.query(counted) == [(2 * N, 2)]
    assert not score_test_splits("blend", 1, ["nowhere"], "home")


def test_answers_about_texts_that_are_gone_are_deleted(server: JudgeServer, people: str) -> None:
    assert main(["score", people, *settings(server)]) == 0
    home = Warehouse.at("home")
    assert purge(home) == N
    assert not any(file.read_bytes() for file in home.judgments.iterdir())
