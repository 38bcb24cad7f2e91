"""Kills, full disks, damaged files, wrong clocks: after each the last snapshot answers, and the next run repairs it.

python -m benchmarks.faults [--kills 100] [--each 6] [--seed 0]

A stage runs on a copy of the home folder as it was before that stage, and is killed (SIGKILL to the process group) at a
moment drawn over its measured duration; a fifth of the moments is drawn over the time in which it publishes. After each
fault is checked that
- the snapshot answers: every table reads as it did before the stage, or as it does after it;
- status tells: what was interrupted, damaged or missing, by `ssrem status` before and after the repair;
- the next run repairs: the tables equal those of an undisturbed run, and no scratch is left;
- counts are kept: messages read = utterances + quarantined = what the dump holds.
Exits with 1 where any of these was missed once.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.faults import damage
from benchmarks.faults.child import STAGES
from benchmarks.faults.home import Bench, Child, Outcome, write_inputs
from ssrem.tasks.warehouse.home import Warehouse

PUBLISHING = 0.2
"""Share of the kills that fall into the time in which a stage publishes."""


@contextmanager
def prepared(folder: Path, seed: int) -> Iterator[Bench]:
    """A bench with copies of the home folder before and after each undisturbed stage."""
    folder.mkdir(parents=True, exist_ok=True)
    dump = write_inputs(folder, seed)
    with Child(folder, dump) as child:
        bench = Bench(folder, Warehouse.at(folder / "home"), dump, child)
        # The first time takes longer: it finds out what there is to load.
        child.timed(Warehouse.at(folder / "first"))
        for number, stage in enumerate(STAGES):
            bench.keep(number)
            bench.moments[stage] = child.timed(bench.home, [stage])
        bench.keep(len(STAGES))
        try:
            yield bench
        finally:
            if (folder / "small").is_mount():
                subprocess.run(["umount", str(folder / "small")], check=True)


def kill(bench: Bench, kills: int, draw: random.Random) -> Iterator[Outcome]:
    """Kills in every stage, in proportion to its duration."""
    publishing = [stage for stage in STAGES if len(bench.moments[stage]) == 4]
    lengths = {stage: bench.length(stage) for stage in STAGES}
    number = killed = 0
    while killed < kills:
        if number < kills * PUBLISHING:
            stage = publishing[number % len(publishing)]
            begin, end = (bench.moments[stage][at][1] for at in (1, 2))
            begin, end, fault = begin - 0.05, end + 0.05, "kill -9 while publishing"
        else:
            chosen = draw.choices(list(lengths), list(lengths.values()))[0]
            stage = STAGES[number % len(STAGES)] if number < kills / 2 else chosen
            begin, end, fault = bench.moments[stage][0][1], bench.moments[stage][-1][1], f"kill -9 in {stage}"
        start = bench.moments[stage][0][1]
        bench.reset(STAGES.index(stage))
        status = bench.child.run(bench.home, [stage], kill_after=max(0.0, draw.uniform(begin, end) - start))
        number, killed = number + 1, killed + (status == -9)
        yield bench.judge(fault if status == -9 else f"{stage} was done before its kill", stage)


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kills", type=int, default=100, help="default: %(default)s")
    options.add_argument(
        "--each", type=int, default=6, help="times of every other fault (default: %(default)s)"
    )
    options.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    return options


def outcomes(bench: Bench, kills: int, each: int, seed: int) -> Iterator[Outcome]:
    """Every fault, one after another."""
    draw = random.Random(seed)
    yield from kill(bench, kills, draw)
    for fault in damage.FAULTS:
        yield from fault(bench, each, draw)


def main(arguments: list[str] | None = None) -> int:
    """Print a table of how often each property held after each fault; returns 1 if one did not."""
    options = parser().parse_args(arguments)
    began = time.perf_counter()
    by_fault: dict[str, list[Outcome]] = {}
    with tempfile.TemporaryDirectory() as scratch, prepared(Path(scratch), options.seed) as bench:
        timed = ", ".join(f"{stage} {bench.length(stage):.1f} s" for stage in STAGES)
        print(f"undisturbed: {timed}", flush=True)
        for outcome in outcomes(bench, options.kills, options.each, options.seed):
            by_fault.setdefault(outcome.fault, []).append(outcome)
            if sys.stderr.isatty():
                print(f"\r{sum(map(len, by_fault.values()))} faults", end="", file=sys.stderr)
            if outcome.missed:
                copy = Path(tempfile.mkdtemp(prefix="fault-")) / "home"
                shutil.copytree(bench.home.root, copy)
                print(f"MISSED after {outcome.fault}: {outcome.missed}; see {copy}", flush=True)
    print("fault                                     times  readable     reported  repaired counts equal")
    for fault, rows in sorted(by_fault.items()):
        figures = [
            sum(getattr(row, name) for row in rows)
            for name in ("readable", "reported", "repaired", "counts_equal")
        ]
        print(f"{fault:<40} {len(rows):>6} {figures[0]:>9} {figures[1]:>12} {figures[2]:>9} {figures[3]:>12}")
    killed = sum(len(rows) for fault, rows in by_fault.items() if fault.startswith("kill -9"))
    missed = sum(bool(row.missed) for rows in by_fault.values() for row in rows)
    print(f"{killed} kills, {sum(map(len, by_fault.values()))} faults, {missed} missed; ", end="")
    print(f"{time.perf_counter() - began:.0f} s, {os.cpu_count()} cores")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
