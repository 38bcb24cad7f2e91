"""A command that is asked to end: it says so in one line, in time, and leaves neither a process nor half a stage."""

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

from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.progress_lines import other_lines
from support.small_home import QUIET, write_conversations

UNPUBLISHED = "; nothing of this stage was published, run it again to go on"

ENDS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}

IN_A_STATEMENT = """
import os, signal, sys
import duckdb
from ssrem.cli import dispatch, main

def statement(options):
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        stop = lambda number: os.kill(os.getpid(), {number}) or number
        connection.create_function("stop", stop, ["BIGINT"], "BIGINT")
        connection.execute("SELECT stop(x) FROM range(5) AS numbers(x)").fetchall()

dispatch.run = statement
sys.exit(main.main(["status"]))
"""

WHILE_THE_VERBS_ARE_IMPORTED = """
import os, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "ssrem.cli.parser":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Finder())
from ssrem.cli import main
sys.exit(main.main(["status"]))
"""

IN_A_LONG_CALL = """
import hashlib, sys
from ssrem.cli import dispatch, main

def call(options):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 10**9)

dispatch.run = call
sys.exit(main.main(["status"]))
"""

AT_THE_END = """
import atexit, os, sys
from ssrem.cli import dispatch, main

atexit.register(lambda: os.kill(os.getpid(), {number}))
dispatch.run = lambda options: 0
sys.exit(main.main(["status"]))
"""

DROPPED_BY_PYTHON = """
import os, sys, time
from ssrem.cli import dispatch, main

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0.1)

def call(options):
    deleted = Deleted()
    del deleted
    print("done")
    return 0

dispatch.run = call
sys.unraisablehook = lambda _: None
sys.exit(main.main(["status"]))
"""

WITH_A_LONG_TEARDOWN = """
import os, sys, time
from ssrem.cli import dispatch, main

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(30)

sys.slow = Slow()
dispatch.run = lambda options: os.kill(os.getpid(), {number}) or time.sleep(60)
sys.exit(main.main(["status"]))
"""


WITH_ANOTHER_WHILE_IT_SAYS_SO = """
import os, sys, time
from ssrem.cli import dispatch, main

class Screen:
    def __init__(self, stream):
        self.stream = stream

    def write(self, text):
        os.kill(os.getpid(), {number})
        time.sleep(0.1)
        return self.stream.write(text)

    def flush(self):
        self.stream.flush()

def interrupted(options):
    sys.stderr = Screen(sys.stderr)
    os.kill(os.getpid(), {number})
    time.sleep(60)

dispatch.run = interrupted
sys.exit(main.main(["status"]))
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


def published(home: Warehouse) -> set[str]:
    return {partition.table for partition in home.partitions()}


def wait_until(true: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 200
    while not true():
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_that_duckdb_makes_an_error_of_its_own(number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", IN_A_STATEMENT.format(number=int(number))) as running:
        assert running.communicate(timeout=60)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_while_the_command_is_imported(number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", WHILE_THE_VERBS_ARE_IMPORTED.format(number=int(number))) as running:
        assert running.communicate(timeout=60)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


@pytest.mark.parametrize("number", ENDS)
def test_a_second_signal_does_not_keep_the_command_from_its_line(number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", WITH_ANOTHER_WHILE_IT_SAYS_SO.format(number=int(number))) as running:
        assert running.communicate(timeout=60)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


@pytest.mark.parametrize("number", ENDS)
def test_a_command_that_has_done_its_work_ends_as_such(number: int) -> None:
    with started("-c", AT_THE_END.format(number=int(number))) as running:
        running.communicate(timeout=60)
    assert running.returncode == 0


@pytest.mark.parametrize("number", ENDS)
def test_a_command_that_ends_its_work_in_spite_of_a_signal_ends_as_such(number: int) -> None:
    with started("-c", DROPPED_BY_PYTHON.format(number=int(number))) as running:
        assert running.communicate(timeout=60) == ("done\n", "")
    assert running.returncode == 0


@pytest.mark.parametrize("number", ENDS)
def test_the_interpreter_is_not_torn_down_after_a_signal(number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", WITH_A_LONG_TEARDOWN.format(number=int(number))) as running:
        assert running.communicate(timeout=20)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


@pytest.mark.parametrize("number", ENDS)
def test_a_long_call_into_a_library_is_not_waited_for(number: int) -> None:
    status, says = ENDS[signal.Signals(number)]
    with started("-c", IN_A_LONG_CALL) as running:
        assert running.stdout is not None and running.stdout.readline() == "begun\n"
        running.send_signal(number)
        assert running.communicate(timeout=60)[1] == f"ssrem: {says}{UNPUBLISHED}\n"
    assert running.returncode == status


@pytest.mark.parametrize(
    ("table", "number"),
    [
        ("utterances", signal.SIGINT),
        ("candidates", signal.SIGTERM),
        ("scores", signal.SIGINT),
        pytest.param("utterances", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("candidates", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("scores", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_stopped_after_a_stage(
    home: Warehouse, tmp_path: Path, table: str, number: int
) -> None:
    write_conversations(tmp_path / "tiny.jsonl")
    status, says = ENDS[signal.Signals(number)]
    run = ["run", str(tmp_path / "tiny.jsonl"), "--evaluator", "rsrem", "--home", str(home.root)]
    with started("-m", "ssrem.cli", *run) as running:
        wait_until(lambda: home.catalog.exists() and table in published(home), running)
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(number)
        assert other_lines(running.communicate(timeout=60)[1]) == [f"ssrem: {says}{UNPUBLISHED}"]
    assert running.returncode == status
    assert children == []
    assert table in published(home)
    repair(str(home.root))  # a stage in a long call into a library does not clean up in time
    assert not home.staging.exists() or list(home.staging.iterdir()) == []
