"""One small home folder that `ssrem run` made, for all tests that look at what comes out; write to a copy of it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.tasks import report
from ssrem.tasks.report import report_data
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT

TOPICS = (
    "pizza bread cheese apple soup dinner cook eat taste kitchen",
    "guitar song band piano concert sing drum album listen melody",
    "football goal team coach match player score league win stadium",
    "plane beach hotel city train island trip passport ticket map",
)
COMMON = (
    *("i", "you", "really", "like", "the", "a", "of", "my", "do"),
    *("think", "yes", "no", "very", "great", "today", "was", "with"),
)
SYSTEMS = ("a", "b", "c", "d", "e", "ground-truth")
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True)
class Made:
    """The home folder, what it was made from, and what the command said."""

    home: Warehouse
    dump: Path
    annotated: Path
    said: subprocess.CompletedProcess[str]
    again: subprocess.CompletedProcess[str]
    parts_before_again: list[Any]


def write_conversations(path: Path, conversations: int = 60, people: int = 12) -> None:
    """Conversations about a topic each, between two of the people; some are rated, some of those at the default."""
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as dump:
        for number in range(conversations):
            pair, topic = draw.sample(range(people), 2), draw.choice(TOPICS).split()
            for turn in range(10):
                text = " ".join(draw.choices(topic, k=4) + draw.choices(COMMON, k=4))
                row = {
                    "conversation_id": f"c{number}",
                    "utterance_id": f"c{number}-{turn}",
                    "speaker": f"p{pair[turn % 2]}",
                    "text": text,
                }
                dump.write(json.dumps(row) + "\n")


def annotated_rows() -> list[dict[str, Any]]:
    """30 responses of five systems and the ground truth, each rated by four people."""
    draw = random.Random(1)
    said = ["i cook pizza with cheese", "the train to the beach", "my guitar is great", "no"]
    return [
        {
            "dialogue_id": str(number),
            "context": [
                "i like pizza and cheese",
                f"do you cook {TOPICS[0].split()[number // len(SYSTEMS)]}",
            ],
            "response": f"{draw.choice(said)} {draw.choice(COMMON)}",
            "reference": "yes i cook dinner every day",
            "model": SYSTEMS[number % len(SYSTEMS)],
            "annotations": {"overall": [draw.randint(1, 5) for _ in range(4)]},
        }
        for number in range(30)
    ]


def command(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user starts it; `more` goes to its environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
    return subprocess.run(
        [sys.executable, "-m", "ssrem", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**environment, **QUIET, **more},
        cwd=ROOT,
        check=False,
    )


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in this process, which then has imported what its tests need."""
    said, error = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(error):
        for name in os.environ:
            if name.startswith(("PREFECT_", "SSREM_")):
                patch.delenv(name)
        status = main(arguments)
    return subprocess.CompletedProcess(arguments, status, said.getvalue(), error.getvalue())


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Made once, even by several workers: the second waits for the first."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made"
    root.mkdir(exist_ok=True)
    home, dump, annotated = Warehouse.at(root / "home"), root / "tiny.jsonl", root / "people_eval.json"
    run = ["run", str(dump), "--annotations", str(annotated), "--home", str(home.root)]
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "said.json").exists():
            write_conversations(dump)
            annotated.write_text(json.dumps(annotated_rows()))
            with pytest.MonkeyPatch.context() as patch:
                draw_little(patch)
                first = called(*run)
            before = [[p.table, str(p.key), p.path] for p in home.partitions()]
            second = command(*run, "--json")
            done = [[p.returncode, p.stdout, p.stderr] for p in (first, second)]
            (root / "said.json").write_text(json.dumps([*done, before]))
    *done, before = json.loads((root / "said.json").read_text())
    said, again = (subprocess.CompletedProcess(run, *figures) for figures in done)
    return Made(home, dump, annotated, said, again, before)


def copied(home: Warehouse, root: Path) -> Warehouse:
    """A copy of a home folder, to write to."""
    shutil.copytree(home.root, root)
    return Warehouse.at(root)


@pytest.fixture
def copy(made: Made, tmp_path: Path) -> Warehouse:
    """A copy of the small home to write to."""
    assert made.said.returncode == 0, made.said.stderr
    return copied(made.home, tmp_path / "copy")


def draw_little(patch: pytest.MonkeyPatch) -> None:
    """Leave out of reports what takes long to draw."""
    few: dict[str, Any] = {name: [] for name in ("points", "identification", "learning_curves", "sources")}
    patch.setattr(report, "report_data", lambda home: replace(report_data(home), **few))
