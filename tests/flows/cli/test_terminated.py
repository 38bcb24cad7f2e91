"""A run that is asked to end: it says so, and leaves neither a process nor half a stage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from support.paths import ROOT
from support.small_home import QUIET, write_conversations
from tasks.warehouse.home import Warehouse

pytestmark = pytest.mark.xdist_group("prefect")

IN_A_STATEMENT = """
import os, signal, sys
import duckdb
from flows.cli import dispatch, main

def statement(options):
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        stop = lambda number: os.kill(os.getpid(), signal.{name}) or number
        connection.create_function("stop", stop, ["BIGINT"], "BIGINT")
        connection.execute("SELECT stop(x) FROM range(5) AS numbers(x)").fetchall()

dispatch.run = statement
sys.exit(main.main(["status"]))
"""


@pytest.mark.parametrize(
    ("name", "status", "says"), [("SIGTERM", 143, "terminated"), ("SIGINT", 130, "interrupted")]
)
def test_a_signal_that_duckdb_makes_an_error_of_its_own_ends_the_command_in_one_line(
    name: str, status: int, says: str
) -> None:
    code = IN_A_STATEMENT.format(name=name)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.stderr == f"ssrem: {says}; nothing of this stage was published, run it again to go on\n"
    assert ran.returncode == status


def test_what_a_service_manager_stops_is_gone(home: Warehouse, tmp_path: Path) -> None:
    write_conversations(tmp_path / "tiny.jsonl")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
    arguments = ["run", str(tmp_path / "tiny.jsonl"), "--home", str(home.root)]
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **QUIET},
        cwd=ROOT,
    ) as running:
        until = time.monotonic() + 200
        while not home.catalog.exists():  # the first stage is published: Prefect's server runs by now
            assert running.poll() is None, running.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.02)
        children = psutil.Process(running.pid).children(recursive=True)
        assert any("uvicorn" in child.cmdline() for child in children)  # Prefect's own server
        running.terminate()
        said = running.communicate(timeout=60)[1]
    assert running.returncode == 143
    assert said.splitlines()[-1] == (
        "ssrem: terminated; nothing of this stage was published, run it again to go on"
    )
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert "utterances" in {part.table for part in home.partitions()}
    assert not home.staging.exists() or list(home.staging.iterdir()) == []
