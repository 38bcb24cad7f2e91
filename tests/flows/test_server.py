"""The pipeline as an operator has it: a Prefect server, a worker, deployments, events, and what dies among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ssrem.tasks.warehouse.home import Warehouse
from support.prefect_server import ROOT, PrefectServer, wait_for
from support.small_home import command, write_conversations

pytestmark = pytest.mark.prefect


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrefectServer]:
    running = PrefectServer(tmp_path / "prefect")
    try:
        yield running
    finally:
        running.stop_all()


def deploy(server: PrefectServer, home: Warehouse, folder: Path) -> None:
    """All deployments, with this home folder instead of the default one, and schedules that are half a day away."""
    file = folder / "prefect.yaml"
    text = (ROOT / "prefect.yaml").read_text().replace("home: warehouse", f"home: {home.root}")
    later = datetime.now(UTC) + timedelta(hours=12)
    file.write_text(re.sub(r"cron: \d+ \d+", f"cron: {later.minute} {later.hour}", text))
    server.prefect("work-pool", "create", "ssrem", "--type", "process")
    server.prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(file))


def versions(home: Warehouse) -> list[Any]:
    return home.query("SELECT version FROM evaluators WHERE evaluator = 'ssrem' ORDER BY version")


def stages_that_run(home: Warehouse) -> list[str]:
    return [json.loads(file.read_text() or "{}").get("stage") for file in home.staging.glob("*/run.json")]


def dump(folder: Path, name: str, conversations: int) -> str:
    path = folder / f"{name}.jsonl"
    write_conversations(path, conversations=conversations)
    return str(path)


def task_runs(server: PrefectServer) -> set[str]:
    return {run["name"] for run in server.post("task_runs/filter", {"limit": 200})}


def artifacts(server: PrefectServer) -> dict[str, str]:
    return {a["key"]: str(a["data"]) for a in server.post("artifacts/filter", {"limit": 200})}


@pytest.fixture
def home(copy: Warehouse) -> Warehouse:
    """A home folder with one evaluator to retrain."""
    of_rsrem = {("evaluators", "rsrem"), ("learning_curves", "rsrem")}
    copy.write_catalog([p for p in copy.partitions() if (p.table, p.key.evaluator) not in of_rsrem])
    return copy


@pytest.mark.slow
def test_an_operators_day(server: PrefectServer, home: Warehouse, tmp_path: Path) -> None:
    server.start()
    deploy(server, home, tmp_path)

    server.start_worker()
    wait_for(lambda: server.runs("pipeline") and server.runs("prune"), 180)  # of the schedules

    # Of two dumps in the drop folder one is refused, with its rows, and one lands.
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "bad.jsonl").write_text('{"conversation_id": "c"}\n')
    dump(inbox, "second", 40)
    looked = server.run("drop-folder/drop-folder", folder=str(inbox), settle=0.1)
    assert server.finish(looked) == "FAILED"
    (run,) = server.runs("drop-folder")
    assert "bad.jsonl was moved to" in run["state"]["message"]
    assert "no key is known as speaker or text" in (inbox / "rejected" / "bad.jsonl.reason.txt").read_text()
    assert (inbox / "done" / "second.jsonl").exists()

    # The event of the landed one starts a retraining, which is promoted or refused with its reason.
    wait_for(lambda: server.runs("retrain"), 180)
    (retraining,) = server.runs("retrain")
    assert retraining["parameters"]["home"] == str(home.root)
    assert server.finish(retraining["id"]) == "COMPLETED"
    (retraining,) = server.runs("retrain")
    assert retraining["name"] == "retrain-all"
    assert {"land", "build tables of second", "train ssrem", "score test splits with ssrem 2"} <= {
        name.split(" /")[0] for name in task_runs(server)
    }
    (decided,) = home.query(
        "SELECT promoted, why, comparison, corpora FROM evaluators WHERE (evaluator, version) = ('ssrem', 2)"
    )
    promoted, why, comparison, corpora = decided
    assert why.startswith("not worse than version 1 on " if promoted else "may be worse than version 1 on ")
    assert {c["dataset"] for c in json.loads(comparison)} == {"2 corpora", "people"}
    assert set(json.loads(corpora)) == {"tiny", "second"}
    shown = artifacts(server)
    assert "second" in shown["corpora"]
    assert "to be unique" in shown["gate-ingest"]

    # The same event three times at once does nothing more.
    after = home.partitions()
    event = {
        "event": "corpus.landed",
        "resource": {"prefect.resource.id": "corpus.second"},
        "payload": {"name": "second", "home": str(home.root)},
    }
    server.emit(3, **event)
    wait_for(lambda: len(server.runs("retrain")) == 4, 180)
    assert [server.finish(run["id"]) for run in server.runs("retrain")] == ["COMPLETED"] * 4
    assert home.partitions() == after

    # The machine dies in the middle of a retraining: what was published stays.
    other = server.run("ingest/ingest", source=dump(tmp_path, "third", 30))
    assert server.finish(other) == "COMPLETED"
    wait_for(lambda: "train" in stages_that_run(home), 120)
    assert server.state(server.runs("retrain")[-1]["id"]) == "RUNNING"
    server.stop_all()
    assert {c for (c,) in home.query("SELECT corpus FROM corpora")} == {"tiny", "second", "third"}
    assert versions(home) == [(1,), (2,)]

    # Without a server the command does what was left, and more.
    fourth = command("ingest", dump(tmp_path, "fourth", 20), "--retrain", "--home", str(home.root), "--json")
    assert fourth.returncode == 0, fourth.stderr
    assert set(json.loads(fourth.stdout)["retrained"]) == {"ssrem"}
    assert "was interrupted" in fourth.stderr
    seen = home.query("SELECT corpora FROM evaluators WHERE (evaluator, version) = ('ssrem', 3)")
    assert [set(json.loads(corpora)) for (corpora,) in seen] == [{"tiny", "second", "third", "fourth"}]

    # The server comes back, and the night finds nothing left to train.
    server.start()
    server.start_worker()
    night = server.run("pipeline/nightly", source=None, evaluators=["ssrem"])
    assert server.finish(night) == "COMPLETED"
    assert versions(home) == [(1,), (2,), (3,)]
