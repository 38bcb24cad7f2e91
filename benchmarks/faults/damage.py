"""The faults of benchmarks.faults other than kills: each damages a home folder and lets the bench check the outcome."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.child import STAGES
from benchmarks.faults.home import Bench, Outcome, litter
from ssrem.tasks.warehouse.partition import Partition

YEARS = 10 * 365 * 24 * 3600.0


def cut(path: Path) -> None:
    """Truncate the file to half its size."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change some bytes in the first fifth of the file, as later blocks of a catalog may be unused; the size stays."""
    content = bytearray(path.read_bytes())
    place = len(content) // 5
    content[place : place + 8] = bytes(255 - byte for byte in content[place : place + 8])
    path.write_bytes(content)


def empty(path: Path) -> None:
    """Empty the file."""
    path.write_bytes(b"")


def remove(path: Path) -> None:
    """Delete the file."""
    path.unlink()


Damage = Callable[[Path], None]
DAMAGES: tuple[Damage, ...] = (cut, flip, empty, remove)


def corrupt_part(bench: Bench, times: int, draw: random.Random) -> Iterator[Outcome]:
    """Damage a Parquet file of the published snapshot, of one table after another."""
    bench.reset(len(STAGES))
    parts = sorted(bench.home.partitions(), key=lambda part: (part.table, str(part.key)))
    chosen: list[Partition] = draw.sample(parts, min(times * 4, len(parts)))
    for number, part in enumerate(chosen):
        damage = DAMAGES[number % len(DAMAGES)]
        bench.reset(len(STAGES))
        damage(bench.home.root / part.path)
        yield bench.judge(f"a Parquet file: {damage.__name__}", damaged=part)


def corrupt_catalog(bench: Bench, times: int, draw: random.Random) -> Iterator[Outcome]:
    """Damage the catalog, after a stage drawn at random."""
    for number in range(times):
        damage = DAMAGES[number % len(DAMAGES)]
        bench.reset(draw.randrange(1, len(STAGES) + 1))
        damage(bench.home.catalog)
        yield bench.judge(f"the catalog: {damage.__name__}", says="catalog.duckdb")


def full_disk(bench: Bench, times: int, draw: random.Random) -> Iterator[Outcome]:
    """Let a stage run out of disk space: on a small file system if one can be mounted, else by a limit on file size."""
    small = bench.folder / "small"
    for number in range(times):
        stage = STAGES[number % len(STAGES)]
        before = STAGES.index(stage)
        need = max(1, bench.size(before + 1) - bench.size(before))
        share, status, mounted = draw.uniform(0.05, 0.9), 0, False
        while status == 0 and share > 0.001:  # a stage that fits gets less room
            bench.reset(before)
            if mounted := bench.mounts and _mount(small, bench.size(before) + int(need * share)):
                bench.move(small / "home")
            room = {} if mounted else {"room": int(20_000 * share)}
            status = bench.child.run(bench.home, [stage], **room)
            if mounted and status == 0:
                _unmount(bench, small)
            share /= 2
        output = bench.child.output.read_text().strip()
        plain = status == 1 and len(output.splitlines()) == 1 and "no room left on the disk" in output
        wrong = [] if plain else [f"it ended with {status} and said {output[-500:]!r}"]
        wrong += [f"{path} was left" for path in litter(bench.home)]
        if mounted and status:
            subprocess.run(["mount", "-o", "remount,size=1g", str(small)], check=True)
        yield bench.judge(
            f"a full disk in {stage}{'' if mounted else ', a file too large'}", stage, wrong=wrong
        )
        if mounted and status:
            _unmount(bench, small)


def wrong_clock(bench: Bench, times: int, draw: random.Random) -> Iterator[Outcome]:
    """Let the clock jump back or forth before every stage of a run; it is right again afterwards."""
    for _ in range(max(1, times // 3)):
        bench.reset(0)
        for stage in STAGES:
            status = bench.child.run(bench.home, [stage], clock=draw.choice((-YEARS, -3600.0, 3600.0, YEARS)))
            if status:
                break
        ordered = _in_order(bench)
        wrong = [] if ordered else ["the ledger is not in the order in which runs published"]
        yield bench.judge("a clock that jumps before every stage", wrong=wrong, boundary=len(STAGES))


def dead_lock(bench: Bench, times: int, draw: random.Random) -> Iterator[Outcome]:
    """Leave a lock file that names a dead process."""
    for _ in range(times):
        stage = draw.choice(STAGES)
        bench.reset(STAGES.index(stage))
        process = subprocess.Popen(["true"])
        process.wait()
        bench.home.root.mkdir(exist_ok=True)
        held = {
            "pid": process.pid,
            "host": os.uname().nodename,
            "what": "train",
            "since": "2020-01-01 00:00:00",
        }
        (bench.home.root / ".lock").write_text(json.dumps(held))
        yield bench.judge("a lock left by a dead process", stage)


Fault = Callable[[Bench, int, random.Random], Iterator[Outcome]]
FAULTS: tuple[Fault, ...] = (corrupt_part, corrupt_catalog, full_disk, wrong_clock, dead_lock)


def _mount(place: Path, size: int) -> bool:
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _unmount(bench: Bench, place: Path) -> None:
    bench.move(bench.folder / "home")
    subprocess.run(["umount", str(place)], check=True)


def _in_order(bench: Bench) -> bool:
    with bench.home.reader() as connection:
        rows = connection.execute("SELECT stage FROM runs ORDER BY started").fetchall()
        late = connection.execute("SELECT count(*) FROM runs WHERE ended < started").fetchone()
    stages = [stage for (stage,) in rows]
    return stages == [stage for stage in STAGES if stage in stages] and late == (0,)
