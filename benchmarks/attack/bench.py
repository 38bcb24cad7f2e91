"""The home folders that the attack runs commands on: states before each verb, and what a verb does undisturbed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.attack.inputs import content, write_answers, write_dump, write_rated
from ssrem.tasks.warehouse.home import Warehouse

FAST = "--encoder word2vec"
TRAIN = f"train ssrem {FAST} --set epochs=3"
STEPS = (
    ("new", ""),
    ("landed", "ingest IN/tiny.jsonl"),
    ("tables", f"tables {FAST}"),
    ("trained", TRAIN),
    ("correlated", "correlate IN/people.json"),
    ("whole", f"train ssrem {FAST} --set epochs=4"),
    ("grown", f"ingest IN/more.jsonl|tables {FAST}"),
)
"""States of the home folder, each made from the one before by commands."""

VERBS = {
    "run": ("new", f"run IN/tiny.jsonl --annotations IN/people.json --evaluator ssrem {FAST}"),
    "ingest": ("new", "ingest IN/tiny.jsonl"),
    "tables": ("landed", f"tables {FAST}"),
    "negatives": ("tables", "negatives random-2"),
    "train": ("tables", TRAIN),
    "score": ("trained", "score IN/people.json --output out/scores.jsonl"),
    "correlate": ("trained", "correlate IN/people.json"),
    "study": ("correlated", "study length"),
    "report": ("correlated", "report --figures out/figures"),
    "sql": ("correlated", "sql FROM|turns --csv out/turns.csv"),
    "status": ("correlated", "status --deep"),
    "reproduce": ("correlated", "reproduce SIGNATURE"),
    "forget": ("correlated", "forget p3"),
    "evaluators promote": ("whole", "evaluators promote ssrem 1"),
    "evaluators rollback": ("whole", "evaluators rollback ssrem"),
    "evaluators export": ("trained", "evaluators export ssrem --output out/ssrem.ssrem"),
    "evaluators import": ("landed", "evaluators import IN/ssrem.ssrem"),
    "evaluators retrain": ("grown", "evaluators retrain ssrem"),
    "ratings collect": ("tables", "ratings collect out/batch --contexts 12"),
    "ratings import": (
        "tables",
        "ratings import ANSWERS --batch IN/batch --kappa none --output out/rated.json",
    ),
    "home prune": ("whole", "home prune --keep-runs 0"),
    "home repair": ("damaged", "home repair"),
    "home backup": ("correlated", "home backup out/backup.tar.gz"),
    "home restore": ("new", "home restore IN/backup.tar.gz"),
}
"""Verb to the state that it starts from and its arguments; IN is the folder of inputs, | a space within an argument."""

STAGES = ("ingest", "tables", "negatives", "train", "score", "correlate", "study", "report")

ROOT = Path(__file__).parent.parent.parent
IGNORED = ("incidents.jsonl", "snapshot=RUN.json", "torchinductor_root")
"""Files that may be more after a kill: the log of interruptions, old manifests (six stay), PyTorch's cache."""
RUN_ID = re.compile(r"\d{8}T\d{12}-[0-9a-f]{12}|(?<=snapshot=)\d+|(?<=/)[0-9a-f]{24}(?=\.parquet)")
"""What differs from run to run in names of files: ids of runs, numbers of snapshots, and hashes of the texts whose
vectors a cached file holds: which texts share a file depends on where earlier runs ended."""


@dataclass
class Expected:
    """What an undisturbed run of a verb does, the first time and again.

    seconds: duration; publishing: when it renames files, seconds after its start; snapshots: the tables before, after
    each publish, and after the run; statuses and trees: of the first and the second run.
    """

    seconds: float
    publishing: list[float]
    snapshots: list[dict[str, str]]
    again: dict[str, str]
    statuses: list[int]
    trees: list[dict[str, int]]
    targets: list[str]
    pace: float = 0.6
    """Duration of the latest runs as a share of `seconds`: other work on the machine comes and goes."""


@dataclass
class Bench:
    """A folder in which verbs are run. Inputs and states are made once and stay for later parts."""

    folder: Path
    expected: dict[str, Expected] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.work, self.inputs, self.scratch = (self.folder / name for name in ("work", "inputs", "tmp"))
        self.home = Warehouse.at(self.work / "home")
        self._server: subprocess.Popen[str] | None = None

    def command(self, verb: str) -> list[str]:
        """The arguments of a verb."""
        return self._arguments(VERBS[verb][1])

    def _arguments(self, text: str) -> list[str]:
        if "SIGNATURE" in text:
            text = text.replace("SIGNATURE", (self.inputs / "signature").read_text().replace(" ", "|"))
            return [text.split(" ", 1)[0], (self.inputs / "signature").read_text()]
        text = text.replace("ANSWERS", " ".join(f"IN/answers-{number}.json" for number in range(3)))
        return [word.replace("IN/", f"{self.inputs}/").replace("|", " ") for word in text.split()]

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of the commands: the home folder under test, a temporary directory of their own."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
        ours = {"SSREM_HOME": str(self.home.root), "TMPDIR": str(self.scratch), "PYTHONWARNINGS": "ignore"}
        return {**kept, **ours, "OMP_NUM_THREADS": "1", "ATTACK": f"{os.getpid()} {self.folder}", **more}

    def start(self, arguments: list[str], **more: str) -> int:
        """Start the command in a session of its own; its process. What it says goes to the file `output`."""
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.attack.server", str(self.folder / "modules.json")],
                cwd=ROOT, env=self.environment(), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        job = {"arguments": arguments, "cwd": str(self.work), "output": str(self.folder / "output")}
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps({**job, "environment": {}, **more}) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def ended(self) -> int:
        """Wait until the command ends; its exit status."""
        assert self._server and self._server.stdout
        return int(self._server.stdout.readline())

    def output(self) -> str:
        """The output of the last command, at most its end."""
        return (self.folder / "output").read_text(errors="replace").strip()[-600:]

    def run(self, arguments: list[str]) -> int:
        """Run the command to its end; its exit status."""
        self.start(arguments)
        return self.ended()

    def reset(self, state: str) -> None:
        """The folders as they are before a verb: the home folder in `state`, nothing else."""
        for place in (self.work, self.scratch):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        (self.work / "out").mkdir()
        if (self.folder / "states" / state).exists():
            shutil.copytree(self.folder / "states" / state, self.home.root)

    def tree(self) -> Counter[str]:
        """Every file and folder beside and below the home folder and in the temporary directory, run ids left out.

        The vectors of an encoder count as one file: a run that goes on after a kill adds a file for what was missing.
        """
        paths = (p for place in (self.work, self.scratch) for p in place.rglob("*"))
        names = (RUN_ID.sub("RUN", str(path.relative_to(self.folder))) for path in paths)
        counts = Counter(name for name in names if not name.endswith(IGNORED))
        return Counter({name: 1 if "/vectors/" in name else count for name, count in counts.items()})

    def targets(self) -> list[str]:
        """What lies beside the home folder: files, and the members of archives."""
        found = []
        for path in sorted((self.work / "out").rglob("*")):
            found.append(str(path.relative_to(self.work)))
            if path.name.endswith((".tar.gz", ".ssrem")) and tarfile.is_tarfile(path):
                with tarfile.open(path) as archive:
                    found += sorted(RUN_ID.sub("RUN", member.name) for member in archive)
        return found

    def alive(self) -> list[str]:
        """Processes that a command of this bench started and that still live a second after it has ended."""
        mark, deadline, names = f"ATTACK={os.getpid()} {self.folder}\0".encode(), time.monotonic() + 1, ["?"]
        while names and time.monotonic() < deadline:
            names = []
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if self._server and process.name == str(self._server.pid):
                        continue
                    if mark in (process / "environ").read_bytes():
                        names.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return names

    def prepare(self, verbs: list[str]) -> None:
        """Make inputs and states, and measure the undisturbed verbs, unless that was done before."""
        if not (self.folder / "states" / "done").exists():
            self._make()
        for verb in verbs:
            kept = self.folder / "expected" / f"{verb}.json"
            if not kept.exists():
                kept.parent.mkdir(exist_ok=True)
                draft = kept.with_suffix(".tmp")
                draft.write_text(json.dumps(vars(self._measure(verb))))
                draft.rename(kept)
            self.expected[verb] = Expected(**json.loads(kept.read_text()))

    def _make(self) -> None:
        states = self.folder / "states"
        shutil.rmtree(states, ignore_errors=True)
        self.inputs.mkdir(parents=True, exist_ok=True)
        write_dump(self.inputs / "tiny.jsonl", 0, 40)
        write_dump(self.inputs / "more.jsonl", 1, 20)
        write_rated(self.inputs / "people.json")
        self.reset("")
        for state, commands in STEPS:
            for text in filter(None, commands.split("|")):
                self._must(self._arguments(text))
            if state != "new":
                shutil.copytree(self.home.root, states / state)
            if state == "tables":
                self._must(self._arguments("ratings collect IN/batch --contexts 12"))
                write_answers(self.inputs)
            if state == "trained":
                self._must(self._arguments("evaluators export ssrem --output IN/ssrem.ssrem"))
            if state == "correlated":
                self._must(self._arguments("home backup IN/backup.tar.gz"))
                ((signature,),) = self.home.query("SELECT min(signature) FROM agreement")
                (self.inputs / "signature").write_text(signature)
        shutil.copytree(states / "correlated", states / "damaged")
        for path in states.glob("damaged/lake/run=*/evaluators.parquet"):
            path.write_bytes(path.read_bytes()[:100])
        for mark in states.glob("*/lake/*/.unused"):
            os.utime(mark, (0, 0))
        (states / "done").touch()

    def _must(self, arguments: list[str]) -> None:
        if status := self.run(arguments):
            raise RuntimeError(f"{arguments} ended with {status}: {self.output()}")

    def _measure(self, verb: str) -> Expected:
        watch = self.folder / "watch"
        shutil.rmtree(watch, ignore_errors=True)
        watch.mkdir()
        self.reset(VERBS[verb][0])
        snapshots = [content(self.home)] if verb != "home repair" else []
        began = time.monotonic()
        self.start(self.command(verb), watch=str(watch))
        statuses = [self.ended()]
        seconds = time.monotonic() - began
        if statuses[0]:
            raise RuntimeError(f"{verb} ended with {statuses[0]}: {self.output()}")
        for copy in sorted(watch.glob("*/")):
            snapshots.append(content(Warehouse.at(copy)))
        snapshots.append(content(self.home))
        trees, targets = [self.tree()], self.targets()
        statuses.append(self.run(self.command(verb)))
        trees.append(self.tree())
        renames = (watch / "renames").read_text().split() if (watch / "renames").exists() else []
        return Expected(
            seconds, [float(at) for at in renames], snapshots, content(self.home), statuses, trees, targets
        )
