"""The pipeline as an operator has it: a Prefect server, a worker, deployments, events, and what dies among them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect_server import ROOT, PrefectServer, wait_for
from small_home import command, write_conversations

from tasks.home import Home

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.skipif(
        "SSREM_SERVER_TESTS" not in os.environ, reason="minutes: SSREM_SERVER_TESTS=1 runs it"
    ),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrefectServer]:
    found = PrefectServer(tmp_path / "prefect")
    try:
        yield found
    finally:
        found.stop_all()


def deploy(server: PrefectServer, home: Home, folder: Path) -> None:
    """All deployments, with this home folder instead of the default one."""
    file = folder / "prefect.yaml"
    text = (ROOT / "prefect.yaml").read_text().replace("home: warehouse", f"home: {home.root}")
    file.write_text(text)
    server.prefect("work-pool", "create", "ssrem", "--type", "process")
    server.prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(file))


def ask(home: Home, query: str) -> list[Any]:
    with home.reader() as reader:
        return reader.execute(query).fetchall()


def versions(home: Home) -> list[Any]:
    return ask(home, "SELECT evaluator, version FROM evaluators ORDER BY ALL")


def dump(folder: Path, name: str, conversations: int) -> str:
    path = folder / f"{name}.jsonl"
    write_conversations(path, conversations=conversations)
    return str(path)


def artifacts(server: PrefectServer) -> dict[str, str]:
    return {a["key"]: str(a["data"]) for a in server.post("artifacts/filter", {"limit": 200})}


def test_an_operators_day(server: PrefectServer, copy: Home, tmp_path: Path) -> None:
    server.start()
    deploy(server, copy, tmp_path)
    server.start_worker()

    # A corpus lands: its event starts a retraining, which is promoted or refused with its reason.
    landed = server.run("ingest/ingest", source=dump(tmp_path, "second", 40))
    assert server.finish(landed) == "COMPLETED"
    wait_for(lambda: server.runs("retrain"), 60)
    (retraining,) = server.runs("retrain")
    assert retraining["parameters"]["home"] == str(copy.root)
    assert server.finish(retraining["id"]) == "COMPLETED"
    assert versions(copy) == [("rsrem", 1), ("rsrem", 2), ("ssrem", 1), ("ssrem", 2)]
    decided = ask(
        copy, "SELECT promoted, why, comparison, corpora FROM evaluators WHERE version = 2 ORDER BY evaluator"
    )
    for promoted, why, comparison, corpora in decided:
        assert why.startswith(
            "not worse than version 1 on " if promoted else "may be worse than version 1 on "
        )
        assert {c["dataset"] for c in json.loads(comparison)} == {"second", "tiny", "people"}
        assert set(json.loads(corpora)) == {"tiny", "second"}
    shown = artifacts(server)
    assert "second" in shown["corpora"]
    assert "to be unique" in shown["gate-ingest"]

    # The same event three times at once does nothing more.
    after = copy.parts()
    event = {
        "event": "corpus.landed",
        "resource": {"prefect.resource.id": "corpus.second"},
        "payload": {"name": "second", "home": str(copy.root)},
    }
    server.emit(3, **event)
    wait_for(lambda: len(server.runs("retrain")) == 4, 60)
    assert [server.finish(run["id"]) for run in server.runs("retrain")] == ["COMPLETED"] * 4
    assert copy.parts() == after

    # A worker dies with what it runs: what was published stays, and the next run does the work.
    broken = server.run("train/train", evaluators=["rsrem"], config={"epochs": 100_000, "patience": 100_000})
    wait_for(lambda: list(copy.staging.glob("*/run.json")), 120)
    server.stop("worker")
    assert server.state(broken) == "RUNNING"  # nobody is left to say otherwise
    assert copy.parts() == after
    server.start_worker()
    again = server.run("train/train", evaluators=["ssrem"], config={"epochs": 1})
    other = server.run("ingest/ingest", source=dump(tmp_path, "third", 30))
    assert server.finish(other) == "COMPLETED"
    wait_for(lambda: len(server.runs("retrain")) == 5, 60)
    assert server.finish(server.runs("retrain")[-1]["id"]) == "COMPLETED"
    assert list(copy.staging.glob("*")) == []
    assert {c for (c,) in ask(copy, "SELECT corpus FROM corpora")} == {"tiny", "second", "third"}
    assert "was interrupted" in command("status", "--home", str(copy.root)).stdout
    assert server.state(again) in ("SCHEDULED", "PENDING", "RUNNING", "COMPLETED")

    # Without a server the command does the same work, and the server knows what there is when it is back.
    server.stop_all()
    fourth = command("ingest", dump(tmp_path, "fourth", 20), "--retrain", "--home", str(copy.root), "--json")
    assert fourth.returncode == 0, fourth.stderr
    assert set(json.loads(fourth.stdout)["retrained"]) == {"ssrem", "rsrem"}
    before = versions(copy)
    server.start()
    server.start_worker()
    nothing_new = server.run("retrain/retrain")
    assert server.finish(nothing_new) == "COMPLETED"
    assert versions(copy) == before


def test_a_refused_dump_is_told_with_its_rows(server: PrefectServer, copy: Home, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "bad.jsonl").write_text('{"conversation_id": "c"}\n')
    dump(inbox, "good", 20)
    server.start()
    deploy(server, copy, tmp_path)
    server.start_worker()
    looked = server.run("inbox/inbox", folder=str(inbox), settle=0.1)
    assert server.finish(looked) == "FAILED"
    assert (inbox / "done" / "good.jsonl").exists()
    assert "none of the 1 messages" in (inbox / "rejected" / "bad.jsonl.reason.txt").read_text()
    (run,) = server.runs("inbox")
    assert "bad.jsonl was moved to" in run["state"]["message"]
    wait_for(lambda: server.runs("retrain"), 60)  # for what did land
