"""Soak: small corpora land one after another in one process. Time, disk and memory may grow no faster than the data.

Each landing is the whole ingest stage, its gate included, as `ssrem ingest` runs it without Prefect. CPU seconds are
this process's: on a busy machine they say more than wall seconds.

python -m benchmarks.soak [--corpora 200] [--messages 300] [--tables]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ssrem.tasks.ingest.land import land
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.warehouse import garbage
from ssrem.tasks.warehouse.home import Warehouse

WORDS = [f"word{n}" for n in range(2000)]


@dataclass(frozen=True)
class Landing:
    """After a landing: its seconds of wall clock and CPU, and sizes in bytes: the process, and files in the home.

    live: files of the published snapshot; lake: all run folders; catalog: the file of views.
    """

    number: int
    wall: float
    cpu: float
    resident: int
    live: int
    lake: int
    folders: int
    catalog: int


def write_dump(path: Path, number: int, messages: int) -> None:
    """A small corpus: conversations of ten messages between two of twelve people."""
    draw = random.Random(number)
    with path.open("w", encoding="utf-8") as dump:
        for row in range(messages):
            conversation, turn = divmod(row, 10)
            people = random.Random(f"{number} {conversation}").sample(range(12), 2)
            record = {
                "conversation_id": f"c{conversation}",
                "utterance_id": f"c{conversation}-{turn}",
                "speaker": f"p{people[turn % 2]}",
                "text": " ".join(draw.choices(WORDS, k=draw.randint(3, 15))),
            }
            dump.write(json.dumps(record) + "\n")


def soak(root: Path, corpora: int, messages: int, tables: bool = False) -> Iterator[Landing]:
    """Land that many corpora in `root`/home, one after another; with `tables` their speaker tables are built, too."""
    home = Warehouse.at(root / "home")
    for number in range(corpora):
        dump = root / f"corpus{number:04}.jsonl"
        write_dump(dump, number, messages)
        wall, cpu = time.perf_counter(), time.process_time()
        corpus, new = land(str(dump), str(home.root), resources=Resources(threads=1))
        if tables:
            from ssrem.tables.speaker_sets import TableSettings
            from ssrem.tasks.speaker_tables.build import build

            build(corpus, str(home.root), settings=TableSettings(encoder="glove-6b-50d"))
        taken = time.perf_counter() - wall, time.process_time() - cpu
        assert new
        dump.unlink()
        yield Landing(
            number + 1,
            *taken,
            _resident(),
            sum((home.root / part.path).stat().st_size for part in home.partitions()),
            sum(path.stat().st_size for path in home.lake.rglob("*") if path.is_file()),
            sum(1 for _ in home.lake.glob("run=*")),
            home.catalog.stat().st_size,
        )


def _resident() -> int:
    """Resident memory of the process in bytes; its peak if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(landings: Sequence[Landing], rows: int = 10) -> str:
    """A table of means over each tenth of the landings, with sizes at its end."""
    size = max(1, len(landings) // rows)
    lines = ["landings    wall s   CPU s  memory MB  snapshot MB  lake MB  folders  catalog MB"]
    for start in range(0, len(landings), size):
        group = landings[start : start + size]
        last = group[-1]
        lines.append(
            f"{group[0].number:4}-{last.number:<4} {statistics.median(g.wall for g in group):8.2f} "
            f"{statistics.median(g.cpu for g in group):7.2f} {last.resident / 1e6:10.0f} {last.live / 1e6:12.2f} "
            f"{last.lake / 1e6:8.2f} {last.folders:8} {last.catalog / 1e6:11.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table, also after an interrupt."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--corpora", type=int, default=200, help="(default: %(default)s)")
    options.add_argument("--messages", type=int, default=300, help="of each corpus (default: %(default)s)")
    options.add_argument("--tables", action="store_true", help="build the speaker tables, too")
    options.add_argument(
        "--keep-seconds", type=float, default=garbage.KEPT_SECONDS, help="of old runs (default: %(default)s)"
    )
    parsed = options.parse_args()
    garbage.prune_runs.__defaults__ = (garbage.KEPT_RUNS, parsed.keep_seconds)
    landings = []
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        for landing in soak(Path(folder), parsed.corpora, parsed.messages, parsed.tables):
            landings.append(landing)
            if landing.number % max(1, parsed.corpora // 10) == 0:
                print(f"{landing}", file=sys.stderr, flush=True)
    print(table(landings))


if __name__ == "__main__":
    main()
