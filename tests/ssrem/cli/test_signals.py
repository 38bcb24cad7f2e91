"""A command that is asked to end says so in one line, and leaves neither a process nor half a stage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.progress_lines import other_lines
from support.small_home import QUIET, write_conversations

UNPUBLISHED = "; nothing of this stage was published, run it again to go on"

ENDS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}

IN_A_STATEMENT = """
def run(words):
    import duckdb
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        stop = lambda number: os.kill(os.getpid(), {number}) or number
        connection.create_function("stop", stop, ["BIGINT"], "BIGINT")
        connection.execute("SELECT stop(x) FROM range(5) AS numbers(x)").fetchall()
"""

WITH_ANOTHER_WHILE_IT_CLEANS_UP = """
def run(words):
    try:
        os.kill(os.getpid(), {number})
        time.sleep(60)
    finally:
        os.kill(os.getpid(), {number})
        time.sleep(0.1)
"""

AS_AN_ERROR_OF_THE_STAGE = """
def run(words):
    try:
        os.kill(os.getpid(), {number})
        time.sleep(60)
    except KeyboardInterrupt as error:
        raise main.SsremError("the stage failed") from error
"""

COMMAND = """
import os, sys, time
from ssrem.cli import main
{run}
main.run = run
sys.exit(main.main(["tables"]))
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **QUIET},
        cwd=ROOT,
    )


def wait_until(true: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 200
    while not true():
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("run", "number"),
    [
        (IN_A_STATEMENT, signal.SIGINT),
        (WITH_ANOTHER_WHILE_IT_CLEANS_UP, signal.SIGTERM),
        (AS_AN_ERROR_OF_THE_STAGE, signal.SIGTERM),
    ],
)
def test_a_signal_is_one_line_whatever_error_becomes_of_it(run: str, number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", COMMAND.format(run=run.format(number=int(number)))) as running:
        assert running.communicate(timeout=60)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


def test_a_pipe_that_nobody_reads_ends_a_command_in_silence() -> None:
    with started("-m", "ssrem", "ratings", "list", "--home", "none") as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        assert (running.wait(timeout=60), running.stderr.read()) == (141, "")


LATER = (("candidates", signal.SIGTERM), ("scores", signal.SIGINT))


@pytest.mark.parametrize(
    ("table", "number"),
    [("utterances", signal.SIGINT), *(pytest.param(*one, marks=pytest.mark.slow) for one in LATER)],
)
def test_a_run_that_is_stopped_after_a_stage(
    home: Warehouse, tmp_path: Path, table: str, number: int
) -> None:
    write_conversations(tmp_path / "tiny.jsonl", conversations=20)
    status, says = ENDS[signal.Signals(number)]
    run = ["run", str(tmp_path / "tiny.jsonl"), "--evaluator", "rsrem", "--home", str(home.root)]

    def published() -> bool:
        return home.catalog.exists() and table in {partition.table for partition in home.partitions()}

    with started("-m", "ssrem", *run) as running:
        wait_until(published, running)
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(number)
        assert other_lines(running.communicate(timeout=60)[1]) == [f"ssrem: {says}{UNPUBLISHED}"]
    assert (running.returncode, children) == (status, [])
    assert published()
    assert not home.staging.exists() or list(home.staging.iterdir()) == []
