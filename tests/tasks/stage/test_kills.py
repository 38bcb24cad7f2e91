"""SIGKILL at random moments of stages: the snapshot stays readable and whole, and the same command completes
the work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import health, leftovers
from support.paths import ROOT
from support.small_home import QUIET, called, write_conversations
from support.whole_home import content

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kills")]

STAGES = (
    ("ingest", "DUMP"),
    ("tables", "--encoder", "word2vec"),
    ("train", "ssrem", "--encoder", "word2vec", "--set", "epochs=3"),
)
KILLS = 4
"""Of each stage."""


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[tuple[Warehouse, list[str], float]]]:
    """For each stage: the home folder before it, its command and its seconds; at last the home after all of them."""
    folder = tmp_path_factory.mktemp("kills")
    write_conversations(folder / "dump.jsonl", conversations=40)
    homes: list[tuple[Warehouse, list[str], float]] = []
    home = Warehouse.at(folder / "home")
    home.root.mkdir(mode=0o700)
    for number, stage in enumerate(STAGES):
        before = Warehouse.at(folder / f"before{number}")
        subprocess.run(["cp", "-a", home.root, before.root], check=True)
        command = [part.replace("DUMP", str(folder / "dump.jsonl")) for part in stage]
        began = time.monotonic()
        with start(command, home) as process:
            assert process.wait(timeout=300) == 0
        homes.append((before, command, time.monotonic() - began))
    homes.append((home, [], 0.0))
    yield homes


def start(command: list[str], home: Warehouse) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ssrem", *command, "--home", str(home.root)],
        cwd=ROOT,
        env={**os.environ, **QUIET},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", range(len(STAGES)), ids=[stage[0] for stage in STAGES])
def test_a_killed_stage_is_completed_by_the_same_command(
    undisturbed: list[tuple[Warehouse, list[str], float]], number: int, tmp_path: Path
) -> None:
    before, command, seconds = undisturbed[number]
    allowed = [content(before), content(undisturbed[number + 1][0])]
    draw = random.Random(number)
    for kill in range(KILLS):
        home = Warehouse.at(tmp_path / f"home{kill}")
        subprocess.run(["cp", "-a", before.root, home.root], check=True)
        with start(command, home) as process:
            time.sleep(draw.uniform(0.3, 1.0) * seconds)  # most of the first third is Python's start
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        now, changing = (
            content(home),
            {"runs", "check_results", "evaluators"} if command[0] == "train" else set(),
        )
        assert now in allowed or all(  # the verb train publishes a training, its scores, and a decision
            now[table] in (allowed[0][table], allowed[1][table]) and changing
            for table in now.keys() - changing
        )
        assert not any("damaged" in note for note in health(home, deep=True))
        again = called(*command, "--home", str(home.root))
        assert again.returncode == 0, again.stderr
        assert content(home) == allowed[1]
        assert leftovers(home) == [] and health(home, deep=True) == []
