"""Attacks the command line: kills, signals, mutated inputs and reads, each numbered and from a seed of its own.

python -m benchmarks.attack kills --count 500                SIGKILL at a random moment of every verb in turn
python -m benchmarks.attack signals --count 480              Ctrl-C and SIGTERM on a pseudo-terminal, in every stage
python -m benchmarks.attack fuzz --kind sql --count 100000   mutated dumps, sets, archives, sql, commands, landings
python -m benchmarks.attack reads --count 50000              readers in eight processes, while another one publishes
python -m benchmarks.attack summary                          a table of all parts so far

--count is the number of attacks of the part, and kind, that the folder's results hold in the end: a part that was
stopped goes on where it ended, and one that is complete ends at once. --only N repeats one attack and records nothing.
Parts that use the same --folder run one after another; it keeps the home folders that they start from and the results.
Exits with 1 if anything was wrong. benchmarks.faults damages files and disks.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import readers_writers
from benchmarks.attack.bench import Bench
from benchmarks.attack.fuzz import KINDS, fuzz
from benchmarks.attack.kills import kills
from benchmarks.attack.signals import signals

RECORDED_EVERY = 20.0
"""Seconds of mutated inputs that one row of the results counts."""
PUBLISHES = 25
"""Publishes during which reads are counted in one row."""

Row = tuple[dict[str, int], list[str]]
"""Attack to how often it was made, and what was wrong."""


def main(arguments: list[str] | None = None) -> int:
    """Run a part or print the summary; returns 1 if anything was wrong."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background process of a shell
    bench = Bench(Path(options.folder))
    bench.folder.mkdir(parents=True, exist_ok=True)
    results = bench.folder / "results.jsonl"
    if options.part == "summary":
        return summary(results)
    part = f"fuzz {options.kind}" if options.part == "fuzz" else options.part
    number = attacks_made(results, part) if options.only is None else options.only
    end = options.count if options.only is None else options.only + 1
    deadline, missed = time.monotonic() + options.seconds, False
    while number < end and time.monotonic() < deadline:
        for what, wrong in attack(bench, options, number, end):
            row = {"part": part, "first": number, "what": what, "wrong": wrong}
            number += sum(what.values())
            missed |= bool(wrong)
            print(f"{part} {number:,}", json.dumps(what), *wrong, sep="\n  ", flush=True)
            if options.only is None:
                with results.open("a", encoding="utf-8") as log:
                    print(json.dumps(row), file=log)
            if time.monotonic() > deadline:
                break
    return 1 if missed else 0


def attack(bench: Bench, options: argparse.Namespace, number: int, end: int) -> Iterator[Row]:
    """Some of the attacks `number` to `end` of a part, in their order."""
    if options.part == "fuzz":
        ends, wrong = fuzz(bench, options.kind, number, end - number, options.seed, RECORDED_EVERY)
        yield dict(ends), wrong
    elif options.part == "reads":
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
            outcome = readers_writers.run(Path(folder) / "home", readers=8, publishes=PUBLISHES)
        yield {kind: row["looks"] for kind, row in outcome.kinds.items()}, outcome.failures
    else:
        for what, wrong in (kills if options.part == "kills" else signals)(
            bench, number, end - number, options.seed
        ):
            yield {what: 1}, wrong


def attacks_made(results: Path, part: str) -> int:
    """The number of attacks of a part in the results."""
    if not results.exists():
        return 0
    rows = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return sum(sum(row["what"].values()) for row in rows if row["part"] == part)


def summary(results: Path) -> int:
    """Print how often each attack was made, and all that was wrong; returns 1 if anything was."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for line in results.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        counts.update({(row["part"], what): number for what, number in row["what"].items()})
        wrong += row["wrong"]
    for (part, what), number in sorted(counts.items()):
        print(f"{part:<14} {what:<46} {number:>9,}")
    for part in sorted({part for part, _ in counts}):
        print(f"{part:<14} {'in all':<46} {attacks_made(results, part):>9,}")
    print(f"{len(wrong)} wrong", *wrong, sep="\n  ")
    return 1 if wrong else 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("part", choices=("kills", "signals", "fuzz", "reads", "summary"))
    options.add_argument("--count", type=int, default=100, help="in all (default: %(default)s)")
    options.add_argument("--only", type=int, help="number of the one attack to repeat")
    options.add_argument(
        "--seconds", type=float, default=float("inf"), help="at most so long (default: no limit)"
    )
    options.add_argument("--kind", choices=KINDS, default="dumps", help="of fuzz (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options.add_argument("--folder", default="/tmp/ssrem-attack", help="default: %(default)s")
    return options


if __name__ == "__main__":
    sys.exit(main())
