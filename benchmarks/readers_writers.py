"""Do readers ever fail, or see two snapshots at once, while others publish?

Processes ask a home folder in a loop, some of them as stages do, some as `ssrem sql`, some as any DuckDB client that
opens catalog.duckdb, while a writer publishes: each time three tables in files of their own, whose rows all carry the
number of the publish. One more reader opens the first snapshot and asks it until the end. (Without gates: the
publishes should be fast.)

python -m benchmarks.readers_writers [--readers 8] [--publishes 50]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from ssrem.tasks.query.sandbox import ask
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.stage import Output, Resources, open_stage
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

ROOT = Path(__file__).parent.parent
GENERATIONS = (
    "SELECT min(bytes), max(bytes), count(*) FROM corpora",
    "SELECT min(conversation_no), max(conversation_no), count(*) FROM conversations",
    "SELECT min(messages), max(messages), count(*) FROM turns",
)
PAUSE = 0.05
"""Seconds between two looks of a reader; without any, eight of them leave a writer on two cores no time."""

ROWS = {"corpora": 1, "conversations": 200, "turns": 5000}


@dataclass
class Seen:
    """What a reader saw: its number of answers, the snapshots in them, errors, and the slowest answer in seconds."""

    kind: str
    answers: int = 0
    generations: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


def publish(home: Warehouse, generation: int) -> None:
    """Publish three tables whose every row says `generation`."""
    fill = {
        "corpora": "'a' AS corpus, $n AS bytes",
        "conversations": "'a' AS corpus, i::VARCHAR AS conversation_id, $n AS conversation_no",
        "turns": "'a' AS corpus, i AS turn_id, $n AS messages, repeat('text ', 20) AS text",
    }
    recipe = Recipe({"generation": generation}, {})
    with open_stage(home, "ingest", lambda: recipe, Resources(threads=1)) as stage:
        for table, columns in fill.items():
            stage.create(table)
            stage.connection.execute(
                f"INSERT INTO {table} BY NAME SELECT {columns} FROM range({ROWS[table]}) AS r (i)",
                {"n": generation},
            )
        stage.publish([Output(table, PartitionKey(corpus="a")) for table in fill])


def look(connection: duckdb.DuckDBPyConnection, seen: Seen) -> None:
    """Query the three tables in turn, and record whether they agree."""
    started = time.perf_counter()
    rows_seen = [connection.execute(query).fetchall()[0] for query in GENERATIONS]
    seen.slowest = max(seen.slowest, time.perf_counter() - started)
    note(seen, rows_seen)


def note(seen: Seen, rows_seen: list[tuple[Any, ...]]) -> None:
    """Record an answer of each table: lowest and highest number of the publish, and rows."""
    seen.answers += 1
    numbers = {n for row in rows_seen for n in row[:2]}
    rows = [row[2] for row in rows_seen]
    if len(numbers) != 1 or rows != list(ROWS.values()):
        seen.wrong.append(f"mixed: {rows_seen}")
    else:
        seen.generations |= numbers


def read(root: str, kind: str) -> None:
    """Query until stdin closes; print the outcome. kind: ssrem, duckdb, sql (`ssrem sql`) or old (never reopened)."""
    home, seen = Warehouse.at(root), Seen(kind)
    print("ready", flush=True)
    with ended() as stop:
        while not stop():
            time.sleep(PAUSE)
            try:
                if kind == "sql":
                    started = time.perf_counter()
                    rows_seen = ask(home, f"({') UNION ALL ('.join(GENERATIONS)})")[1]
                    seen.slowest = max(seen.slowest, time.perf_counter() - started)
                    note(seen, rows_seen)
                elif kind == "duckdb":
                    with duckdb.connect(str(home.catalog), read_only=True) as connection:
                        look(connection, seen)
                else:
                    with home.reader() as connection:
                        look(connection, seen)
                        while kind == "old" and not stop():
                            time.sleep(PAUSE)
                            look(connection, seen)
            except Exception as error:
                seen.wrong.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    print(json.dumps([seen.answers, sorted(seen.generations), seen.wrong[:5], len(seen.wrong), seen.slowest]))


@contextmanager
def ended() -> Iterator[Any]:
    """A function that says whether stdin has closed."""
    import threading

    done = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    yield done.is_set


@dataclass(frozen=True)
class Outcome:
    """Publishes, seconds that they took, and by kind of reader: processes, looks, snapshots, slowest look, failures."""

    publishes: int
    seconds: float
    kinds: dict[str, dict[str, Any]]

    @property
    def failures(self) -> list[str]:
        """The first few errors."""
        return [wrong for row in self.kinds.values() for wrong in row["wrong"]]


def run(root: Path, readers: int, publishes: int) -> Outcome:
    """Publish `publishes` times while readers of each kind query, one of which keeps its first snapshot."""
    home = Warehouse.at(root)
    publish(home, 0)
    kinds = [("ssrem", "duckdb", "sql")[number % 3] for number in range(readers)] + ["old"]
    started: list[subprocess.Popen[str]] = []
    try:
        for kind in kinds:
            command = [sys.executable, "-m", "benchmarks.readers_writers", "--read", str(root), kind]
            started.append(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        begun = time.perf_counter()
        for generation in range(1, publishes + 1):
            publish(home, generation)
        seconds = time.perf_counter() - begun
        outputs = [process.communicate()[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    rows: dict[str, dict[str, Any]] = {}
    for kind, text in zip(kinds, outputs, strict=True):
        answers, generations, wrong, failed, slowest = json.loads(text)
        row = rows.setdefault(
            kind, {"processes": 0, "looks": 0, "snapshots": 0, "slowest": 0.0, "failures": 0, "wrong": []}
        )
        row["processes"] += 1
        row["looks"] += answers
        row["snapshots"] = max(row["snapshots"], len(generations))
        row["slowest"] = max(row["slowest"], slowest)
        row["failures"] += failed
        row["wrong"] += wrong
    return Outcome(publishes, seconds, rows)


def main() -> None:
    """Print what each kind of reader saw; ends with 1 where any failed."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--readers", type=int, default=8, help="processes (default: %(default)s)")
    options.add_argument("--publishes", type=int, default=50, help="(default: %(default)s)")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(Path(folder) / "home", arguments.readers, arguments.publishes)
    print(f"{outcome.publishes} publishes in {outcome.seconds:.1f} s")
    for kind, row in outcome.kinds.items():
        print(
            f"{kind:7} {row['processes']} processes {row['looks']:7,} looks, {row['snapshots']:3} snapshots in one, "
            f"slowest {row['slowest']:.2f} s, {row['failures']} failures"
        )
    for wrong in outcome.failures:
        print(wrong)
    sys.exit(1 if outcome.failures else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(*sys.argv[2:4])
    else:
        main()
