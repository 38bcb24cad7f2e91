"""Flows under a Prefect server: their steps are tasks of the run, Great Expectations evaluates the gates, and blocks
hear of failures."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ssrem.flows.orchestration import artifacts
from ssrem.flows.orchestration.failure_hook import send
from ssrem.tasks.stage import gate, steps
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import command, write_conversations

pytestmark = [pytest.mark.prefect, pytest.mark.xdist_group("prefect")]


@pytest.mark.usefixtures("prefect_server")
def test_a_flow_of_prefect_runs_its_steps_as_tasks(
    home: Warehouse, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.client.orchestration import get_client

    from ssrem.flows.orchestration import deployed
    from ssrem.tasks.stage import expectations

    checked: list[tuple[list[int], list[int]]] = []
    by_library = expectations.broken_rows

    def both(connection: Any, wanted: Any) -> list[int]:
        checked.append((by_library(connection, wanted), gate.broken_rows(connection, wanted)))
        return checked[-1][0]

    monkeypatch.setattr(expectations, "broken_rows", both)
    write_conversations(tmp_path / "tiny.jsonl", conversations=20)
    run: Any = deployed.ingest
    assert run(str(tmp_path / "tiny.jsonl"), str(home.root)) == ("tiny", True)
    with get_client(sync_client=True) as client:
        tasks = Counter(one.name.rsplit("-", 1)[0] for one in client.read_task_runs())
        keys = {artifact.key for artifact in client.read_artifacts()}
    assert tasks == {"repair": 1, "land": 1}
    assert keys >= {"corpora", "gate-ingest"}
    ((by_library_rows, by_query),) = checked
    assert by_library_rows == by_query and len(by_query) > 20


@pytest.mark.usefixtures("prefect_server")
def test_a_task_is_tried_again_after_an_error_of_a_disk_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect import flow

    monkeypatch.setattr(steps, "RETRY_SECONDS", 0)
    calls = []

    @step("work")
    def work(error: Exception) -> str:
        calls.append(error)
        if len(calls) < 3:
            raise error
        return "done"

    assert flow(lambda: work(OSError("disk")), name="works")() == "done"
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(ValueError, match="wrong"):
        flow(lambda: work(ValueError("wrong")), name="fails")()
    assert len(calls) == 1


def test_a_step_outside_a_flow_run_is_the_function() -> None:
    @step("work")
    def work(number: int) -> int:
        return number + 1

    assert work(1) == 2


def test_a_server_that_does_not_answer(home: Warehouse, tmp_path: Any) -> None:
    write_conversations(tmp_path / "tiny.jsonl", conversations=20)
    arguments = ["ingest", str(tmp_path / "tiny.jsonl"), "--home", str(home.root), "--json"]
    url = "http://127.0.0.1:9/api"
    refused = command(*arguments, PREFECT_API_URL=url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"ssrem: no Prefect server answers at {url} (")
    assert refused.stderr.endswith("; start it, or run without with --no-prefect\n")
    assert refused.stderr.count("\n") == 1 and not home.root.exists()
    landed = command(*arguments, "--no-prefect", PREFECT_API_URL=url)
    assert landed.returncode == 0 and "Prefect" not in landed.stderr
    assert json.loads(landed.stdout)["corpus"] == "tiny"


@pytest.mark.filterwarnings("error::FutureWarning")
@pytest.mark.usefixtures("prefect_server")
def test_progress_that_a_thread_reports_belongs_to_the_run(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    monkeypatch.setattr(artifacts, "EVERY", 0)
    runs: list[Any] = []

    def reads() -> None:
        with artifacts.stage_artifacts(str(home.root), "ingest", []), progress("reading", 10) as advance:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(advance, 5).result()
            runs.append(FlowRunContext.get().flow_run.id)

    flow(reads, name="reads")()
    with get_client(sync_client=True) as client:
        shown = [one for one in client.read_artifacts() if one.key == "progress"]
    assert [(one.flow_run_id, one.data) for one in shown] == [(runs[0], 50.0)]


@pytest.mark.usefixtures("prefect_server")
def test_blocks_of_prefect(web: tuple[str, list[Any]]) -> None:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock
    from prefect.blocks.system import Secret
    from pydantic import SecretStr

    url, posted = web
    message = {"flow": "tables", "run": "calm-otter", "run_id": "0-1", "state": "Failed", "home": "/data"}
    message["message"] = "gate of tables: table turns: expected turn to be at least 0"
    Secret(value=SecretStr(url)).save("where")
    CustomWebhookNotificationBlock(
        name="ops", url=url, json_data={"subject": "{{subject}}", "text": "{{body}}"}
    ).save("ops")
    send("secret/where", message)
    send("custom-webhook/ops", message)
    whole, letter = posted
    assert whole == message
    assert letter["subject"] == "ssrem: tables failed (calm-otter)"
    assert letter["text"].startswith(message["message"])
    with pytest.raises(ValueError, match="no-such"):
        send("custom-webhook/no-such", message)
