"""Attacks the command line: kills, signals and mutated inputs, each from a seed of its own, in parts of any length.

python -m benchmarks.attack kills --first 0 --count 100     SIGKILL at a random moment of every verb in turn
python -m benchmarks.attack signals --first 0 --count 100   Ctrl-C and SIGTERM on a pseudo-terminal, in every stage
python -m benchmarks.attack fuzz --kind sql --count 100000  mutated dumps, sets, archives, sql, commands
python -m benchmarks.attack summary                         a table of all parts so far

Parts that use the same --folder run one after another; it keeps the home folders that they start from and the results.
Exits with 1 if anything was wrong. benchmarks.readers_writers attacks reads, benchmarks.faults damages files and disks.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.attack.bench import Bench
from benchmarks.attack.fuzz import KINDS, fuzz
from benchmarks.attack.kills import kills
from benchmarks.attack.signals import signals


def main(arguments: list[str] | None = None) -> int:
    """Run a part or print the summary; returns 1 if anything was wrong."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background process of a shell
    bench = Bench(Path(options.folder))
    bench.folder.mkdir(parents=True, exist_ok=True)
    results, deadline = bench.folder / "results.jsonl", time.monotonic() + options.seconds
    if options.part == "summary":
        return summary(results)
    with results.open("a", encoding="utf-8") as log:
        if options.part == "fuzz":
            ends, wrong = fuzz(
                bench, options.kind, options.first, options.count, options.seed, options.seconds
            )
            row = {"part": f"fuzz {options.kind}", "what": dict(ends), "wrong": wrong}
            print(json.dumps(row), file=log)
            print(row["part"], row["what"], *wrong, sep="\n  ")
            return 1 if wrong else 0
        missed = False
        attack = kills if options.part == "kills" else signals
        for what, wrong in attack(bench, options.first, options.count, options.seed):
            print(json.dumps({"part": options.part, "what": {what: 1}, "wrong": wrong}), file=log, flush=True)
            print(what, *wrong, sep="\n  ", flush=True)
            missed |= bool(wrong)
            if time.monotonic() > deadline:
                break
    return 1 if missed else 0


def summary(results: Path) -> int:
    """Print how often each attack was made, and all that was wrong; returns 1 if anything was."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for line in results.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        counts.update({(row["part"], what): number for what, number in row["what"].items()})
        wrong += row["wrong"]
    for (part, what), number in sorted(counts.items()):
        print(f"{part:<14} {what:<40} {number:>9,}")
    print(f"{len(wrong)} wrong", *wrong, sep="\n  ")
    return 1 if wrong else 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("part", choices=("kills", "signals", "fuzz", "summary"))
    options.add_argument(
        "--first", type=int, default=0, help="number of the first attack (default: %(default)s)"
    )
    options.add_argument("--count", type=int, default=100, help="default: %(default)s")
    options.add_argument(
        "--seconds", type=float, default=580.0, help="at most so long (default: %(default)s)"
    )
    options.add_argument("--kind", choices=KINDS, default="dumps", help="of fuzz (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options.add_argument("--folder", default="/tmp/ssrem-attack", help="default: %(default)s")
    return options


if __name__ == "__main__":
    sys.exit(main())
