"""The small home folder that benchmarks.faults damages: its inputs, expected content and scratch files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.attack.inputs import content, write_dump, write_rated
from benchmarks.faults.child import CORPUS, STAGES
from ssrem.errors import SsremError
from ssrem.schemas import TABLES
from ssrem.tasks.maintenance.health import health
from ssrem.tasks.query.sandbox import ask
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import Partition

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Dump:
    """Inputs of the home folder. messages: number of messages in the dump, including those that cannot land."""

    path: Path
    annotated: Path
    messages: int


def write_inputs(folder: Path, seed: int) -> Dump:
    """A corpus of 40 conversations of ten messages, some of which cannot land, and an annotated set."""
    path, annotated = folder / "tiny.jsonl", folder / "people.json"
    write_dump(path, seed, 40)
    write_rated(annotated)
    return Dump(path, annotated, 400)


def counts_equal(home: Warehouse, messages: int) -> bool:
    """Whether every message of the dump landed or is quarantined, by the ledger and by the rows of the tables."""
    if not home.partitions():
        return True
    query = """
        SELECT messages_read, utterances + quarantined, (SELECT count(*) FROM utterances)
            + (SELECT count(*) FROM quarantine WHERE record = 'message') FROM corpora"""
    return ask(home, query)[1] in ([], [(messages, messages, messages)])


def litter(home: Warehouse) -> list[str]:
    """Scratch files that a failed or repaired run must not leave."""
    patterns = ("staging/*", "lake/.*", ".catalog*", "**/*.tmp")
    return sorted({str(path.relative_to(home.root)) for p in patterns for path in home.root.glob(p)})


class Child:
    """A process that runs stages on demand, each time in a forked process that can be killed."""

    def __init__(self, folder: Path, dump: Dump) -> None:
        self.dump, self.output, self.moments = dump, folder / "output", folder / "moments.json"
        self.modules: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Child:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults.child"],
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
        self,
        home: Warehouse,
        stages: Sequence[str] = STAGES,
        *,
        kill_after: float | None = None,
        **options: Any,
    ) -> int:
        """Run the stages; returns the exit status, -9 if killed `kill_after` seconds after the start."""
        assert self._process and self._process.stdin and self._process.stdout
        job = {"home": str(home.root), "dump": str(self.dump.path), "annotated": str(self.dump.annotated)}
        job |= {"stages": list(stages), "output": str(self.output), **options}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        process = int(self._process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):  # it was done already
                os.killpg(process, signal.SIGKILL)
        return int(self._process.stdout.readline())

    def timed(self, home: Warehouse, stages: Sequence[str] = STAGES) -> list[tuple[str, float]]:
        """Run the stages undisturbed; the times (seconds) at which each began, began to publish, and had published."""
        if self.run(home, stages, moments=str(self.moments), modules=self.modules):
            raise RuntimeError(self.output.read_text())
        timings = json.loads(self.moments.read_text())
        self.modules = timings["modules"]
        return [(what, at) for what, at in timings["moments"]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one fault: whether each property of docs/faults.md held, and what did not, in words."""

    fault: str
    readable: bool
    reported: bool
    repaired: bool
    counts_equal: bool
    missed: list[str]


@dataclass
class Bench:
    """The home folder under test, with copies of it before the first stage (0) and after each stage (1, 2, …)."""

    folder: Path
    home: Warehouse
    dump: Dump
    child: Child
    moments: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    contents: list[dict[str, str]] = field(default_factory=list)
    at: int = 0
    mounts: bool = True
    """Whether a small file system may be mounted; a test that is broken off must not leave one."""

    def keep(self, number: int) -> None:
        """Copy the home folder as it is now, after `number` stages."""
        copy = self.folder / f"after-{number}"
        self.home.root.mkdir(exist_ok=True)
        shutil.copytree(self.home.root, copy)
        self.contents.append(content(self.home))

    def reset(self, number: int) -> None:
        """Restore the home folder as it was after `number` stages."""
        shutil.rmtree(self.home.root, ignore_errors=True)
        shutil.copytree(self.folder / f"after-{number}", self.home.root)
        self.at = number

    def move(self, root: Path) -> None:
        """Move the home folder, the catalog's views with it."""
        shutil.copytree(self.home.root, root, dirs_exist_ok=True)
        if root != self.home.root:
            shutil.rmtree(self.home.root)
        self.home = Warehouse.at(root)

    def length(self, stage: str) -> float:
        """Seconds that the undisturbed stage takes."""
        return self.moments[stage][-1][1] - self.moments[stage][0][1]

    def size(self, number: int) -> int:
        """Bytes on disk after `number` stages, in whole blocks."""
        files = (path for path in (self.folder / f"after-{number}").rglob("*") if path.is_file())
        return sum(4096 * -(-path.stat().st_size // 4096) for path in files)

    def judge(
        self,
        fault: str,
        stage: str | None = None,
        *,
        damaged: Partition | None = None,
        says: str | None = None,
        wrong: Sequence[str] = (),
        boundary: int | None = None,
    ) -> Outcome:
        """Check the four properties after a fault in `stage`, or between stages; the next run has to repair it.

        damaged: the damaged partition; says: words that status has to contain; wrong: errors seen before; boundary:
        number of finished stages, if it differs from that of `reset`.
        """
        before = self.at if boundary is None else boundary
        after = before + 1 if stage else before
        missed = list(wrong)
        missed += (unreadable := self._answers(before, after, damaged))
        missed += (unreported := self._tells(damaged, says))
        interrupted = any(self.home.staging.glob("*"))
        # Any run repairs what is damaged, but for what correlate published: the ledger does not keep its file's path.
        repair = stage or (
            "correlate" if after == len(STAGES) and self._of_correlate(damaged) else STAGES[max(after - 1, 0)]
        )
        status = self.child.run(self.home, [repair])
        repaired = (
            []
            if status == 0
            else [f"the next run ended with {status}: {self.child.output.read_text()[-500:]!r}"]
        )
        try:
            now = content(self.home)
            repaired += [
                f"{table} is not what it was"
                for table, digest in now.items()
                if digest != self.contents[after][table]
            ]
        except SsremError as error:
            repaired.append(str(error))
        repaired += [f"{path} was left" for path in litter(self.home)]
        later = " ".join(health(self.home))
        for what in [*(["interrupted"] if interrupted else []), *([says] if says else [])]:
            if what not in later:
                unreported.append(f"after the repair status says nothing of {what!r}")
        if damaged and damaged.path not in later:
            unreported.append("after the repair status says nothing of the damaged part")
        equal = counts_equal(self.home, self.dump.messages)
        missed += (
            repaired
            + [one for one in unreported if one not in missed]
            + ([] if equal else ["counts are not equal"])
        )
        return Outcome(fault, not unreadable, not unreported, not repaired, equal, missed)

    def _of_correlate(self, damaged: Partition | None) -> bool:
        return damaged is not None and damaged.key != CORPUS

    def _answers(self, before: int, after: int, damaged: Partition | None) -> list[str]:
        missed = []
        if damaged is None:
            try:
                now = content(self.home)
            except SsremError as error:
                return [str(error)]
            if now not in (self.contents[before], self.contents[after]):
                missed.append("the snapshot is neither that before nor that after")
            if not counts_equal(self.home, self.dump.messages):
                missed.append("counts are not equal before the repair")
            return missed
        for table in TABLES:
            try:
                ask(self.home, f"SELECT count(*), count(COLUMNS(*)) FROM {table}")
            except SsremError as error:
                if table != damaged.table or damaged.path not in str(error) or "\n" in str(error):
                    missed.append(f"{table} does not answer: {error}")
            else:
                if table == damaged.table:
                    missed.append(f"{table} answers from a damaged file")
        return missed

    def _tells(self, damaged: Partition | None, says: str | None) -> list[str]:
        notes = " ".join(health(self.home))
        wanted = [says] if says else []
        if damaged:
            wanted += [damaged.path, str(damaged.key), damaged.table]
        if any(self.home.staging.glob("*")):
            wanted.append("was interrupted")
        missed = [f"status says nothing of {what!r}" for what in wanted if what not in notes]
        return missed + (["status says that something is running"] if "is running" in notes else [])
