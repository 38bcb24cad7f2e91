"""The small home folder that benchmarks.faults damages: what it is made from, must hold, and may not leave behind."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.fault_child import STAGES
from schemas import TABLES
from tasks.home import Home
from tasks.query import ask

ROOT = Path(__file__).parent.parent
WORDS = [
    "pizza",
    "bread",
    "cheese",
    "soup",
    "dinner",
    "cook",
    "guitar",
    "song",
    "band",
    "piano",
    "concert",
    "sing",
    "football",
    "goal",
    "team",
    "coach",
    "match",
    "beach",
    "hotel",
    "city",
    "train",
    "island",
    "trip",
    "i",
    "you",
    "really",
    "like",
    "the",
    "a",
    "of",
    "my",
    "do",
    "think",
    "yes",
    "no",
    "very",
    "great",
    "today",
    "was",
    "with",
]
VOLATILE = {"run_id", "started", "ended", "landed_at", "trained_at", "seconds", "run"}
"""Columns that tell when, not what."""


@dataclass(frozen=True)
class Dump:
    """What the home folder is made from. messages: lines of the dump that hold one, whether it can land or not."""

    path: Path
    annotated: Path
    messages: int


def write_dump(folder: Path, seed: int, conversations: int = 40, people: int = 10) -> Dump:
    """A corpus of ten messages a conversation, some of which cannot land, and an annotated set of 20 responses."""
    draw = random.Random(seed)
    rows = []
    for number in range(conversations):
        pair = draw.sample(range(people), 2)
        for turn in range(10):
            text = " ".join(draw.choices(WORDS, k=7)) if draw.random() > 0.03 else ""
            who = {"conversation_id": f"c{number}", "utterance_id": f"c{number}-{turn}"}
            rows.append({**who, "speaker": f"p{pair[turn % 2]}", "text": text})
    path, annotated = folder / "tiny.jsonl", folder / "people.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rated = [
        {
            "dialogue_id": str(number),
            "context": [" ".join(draw.choices(WORDS, k=5)) for _ in range(2)],
            "response": " ".join(draw.choices(WORDS, k=5)),
            "reference": " ".join(draw.choices(WORDS, k=5)),
            "model": "abcde"[number % 5],
            "annotations": {"overall": [draw.randint(1, 5) for _ in range(3)]},
        }
        for number in range(20)
    ]
    annotated.write_text(json.dumps(rated))
    return Dump(path, annotated, len(rows))


def content(home: Home) -> dict[str, str]:
    """Table to a digest of its rows, whatever their order, without the columns that tell when."""
    found = {}
    with home.reader() as connection:
        for table in TABLES.values():
            names = ", ".join(f'"{c}"' for c in table.column_names if c not in VOLATILE)
            rows = connection.execute(f"SELECT DISTINCT {names} FROM {table.name} ORDER BY ALL").fetchall()
            found[table.name] = hashlib.sha256(repr(rows).encode()).hexdigest()[:12] if rows else ""
    return found


def counts_kept(home: Home, messages: int) -> bool:
    """Whether every message of the dump landed or lies in quarantine, by the ledger and by the rows."""
    query = """
        SELECT messages_read, utterances + quarantined, (SELECT count(*) FROM utterances)
            + (SELECT count(*) FROM quarantine WHERE record = 'message') FROM corpora"""
    return ask(home, query)[1] in ([], [(messages, messages, messages)])


def litter(home: Home) -> list[str]:
    """What a run that failed or was repaired must not leave behind."""
    patterns = ("staging/*", "lake/.*", ".catalog*", "**/*.tmp")
    return sorted({str(path.relative_to(home.root)) for p in patterns for path in home.root.glob(p)})


class Child:
    """A process that runs stages on demand, each time in a fresh process that can be killed."""

    def __init__(self, folder: Path, dump: Dump) -> None:
        self.dump, self.said, self.moments = dump, folder / "said", folder / "moments.json"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Child:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fault_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def run(
        self, home: Home, stages: Sequence[str] = STAGES, *, kill_after: float | None = None, **options: Any
    ) -> int:
        """Run the stages; the exit status, -9 where it was killed `kill_after` seconds after it began."""
        assert self._process and self._process.stdin and self._process.stdout
        job = {"home": str(home.root), "dump": str(self.dump.path), "annotated": str(self.dump.annotated)}
        job |= {"stages": list(stages), "said": str(self.said), **options}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        process = int(self._process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):  # it was done already, or has no group of its own yet
                os.killpg(process, signal.SIGKILL)
        return int(self._process.stdout.readline())

    def timed(self, home: Home) -> list[tuple[str, float]]:
        """Run all stages undisturbed; when (seconds) each began, and when it began and ended to publish."""
        if self.run(home, moments=str(self.moments)):
            raise RuntimeError(self.said.read_text())
        return [(what, at) for what, at in json.loads(self.moments.read_text())]
