"""A Prefect server and a worker of its own on 127.0.0.1, for tests that look at the pipeline as an operator does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil

from support.paths import ROOT

ANSWER_SECONDS = 60

QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_WORKER_QUERY_SECONDS": "1",
    "PREFECT_CLI_PROMPT": "false",
    "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "OMP_NUM_THREADS": "1",
}


class PrefectServer:
    """`start` and `stop` as often as it takes; what it knows lies in `folder` and outlives a stop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
        self.environment = {**inherited, **QUIET, "PREFECT_HOME": str(folder), "PREFECT_API_URL": self.url}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the server, and return once it answers."""
        self._spawn("server", "server", "start", "--host", "127.0.0.1", "--port", str(self.port))
        wait_for(self._answers, 120)

    def start_worker(self) -> None:
        """Start a worker of the pool."""
        self._spawn("worker", "worker", "start", "--pool", "ssrem", "--type", "process")

    def stop(self, name: str) -> None:
        """Kill the server or the worker with all that it started, as a machine that loses its power does."""
        process = self.running.pop(name)
        for one in (*psutil.Process(process.pid).children(recursive=True), process):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(30)

    def stop_all(self) -> None:
        """End what still runs."""
        for name in list(self.running):
            self.stop(name)

    def prefect(self, *arguments: str) -> str:
        """A `prefect` command against this server; what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=ROOT,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def post(self, path: str, body: Any) -> Any:
        """POST to the API; again where its database is busy, as Prefect's own client does."""
        for pause in (1, 2, 4, 8, 0):
            answer = httpx.post(f"{self.url}/{path}", json=body, timeout=ANSWER_SECONDS)
            if answer.status_code != 503:
                break
            time.sleep(pause)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def run(self, deployment: str, **parameters: Any) -> str:
        """Ask for a run of `FLOW/DEPLOYMENT`; its id."""
        found = httpx.get(f"{self.url}/deployments/name/{deployment}", timeout=ANSWER_SECONDS)
        found.raise_for_status()
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"deployments/{found.json()['id']}/create_flow_run", body)["id"])

    def state(self, run: str) -> str:
        """Type of a run's state, such as COMPLETED."""
        answer = httpx.get(f"{self.url}/flow_runs/{run}", timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        return str(answer.json()["state_type"])

    def finish(self, run: str, timeout: float = 240) -> str:
        """Wait until a run has ended; its state."""
        wait_for(lambda: self.state(run) in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"), timeout)
        return self.state(run)

    def runs(self, flow: str) -> list[dict[str, Any]]:
        """Runs of a flow that a deployment or an automation asked for, oldest first."""
        body = {"flows": {"name": {"any_": [flow]}}, "sort": "EXPECTED_START_TIME_ASC", "limit": 100}
        found: list[dict[str, Any]] = self.post("flow_runs/filter", body)
        return [run for run in found if run["deployment_id"] and run["parent_task_run_id"] is None]

    def emit(self, times: int, **event: Any) -> None:
        """The same event several times at once."""
        now = datetime.now(UTC).isoformat()
        self.post("events", [{"id": str(uuid4()), "occurred": now, **event} for _ in range(times)])

    def _spawn(self, name: str, *arguments: str) -> None:
        with (self.folder.parent / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "prefect", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=ROOT,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


def wait_for(true: Callable[[], Any], timeout: float) -> None:
    """Return once it is true; fail after `timeout` seconds. A server that is too busy to answer is asked again."""
    until = time.monotonic() + timeout
    while True:
        with suppress(httpx.ReadTimeout):
            if true():
                return
        assert time.monotonic() < until, f"not within {timeout:g} s"
        time.sleep(0.3)
