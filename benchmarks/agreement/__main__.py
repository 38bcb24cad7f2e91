"""`python -m benchmarks.agreement [ANNOTATED…]`: compute rows that are missing or out of date, write docs/agreement.md.

Each row is kept as a file of its own in benchmarks/agreement/rows, with its settings, signature, data, date and
command. A training that takes longer than --minutes is interrupted; the same command goes on with it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from benchmarks.agreement.page import page
from benchmarks.agreement.plan import CHITCHAT, RESPONSES, Entry, entries
from benchmarks.agreement.rows import FOLDER, ComputedRows
from benchmarks.agreement.run import Bench, PieceEndedError, run_of
from ssrem.annotated_sets import EVAL, read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.annotated_sets.base import dataset_name
from ssrem.errors import SsremError
from ssrem.files import sha256
from ssrem.samples import Candidates, Labels
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.warehouse.home import Warehouse, landed_corpus


def main() -> int:
    """Compute the rows that are wanted and write the page; returns 0, or 1 if a row could not be computed."""
    options = _options()
    plan = entries()
    names = [entry.name for entry in plan]
    if unknown := [name for name in options.row or [] if name not in names]:
        return _refused(f"no row {unknown[0]!r}; --list names all {len(names)}")
    try:
        home = Warehouse.at(str(options.home))
        digest, _ = landed_corpus(home, CHITCHAT)
        sets = {dataset_name(file): labels_of(read_set(file, EVAL).rows) for file in options.annotated}
    except SsremError as error:
        return _refused(str(error))
    computed = ComputedRows(options.rows, _data(sets, digest, options.responses))
    if options.list:
        for entry in plan:
            _print_state(entry, computed)
        return 0
    bench = Bench(
        lambda: _candidates(home),
        options.responses,
        sets,
        options.home / "agreement",
        options.masked_model,
        options.minutes * 60,
        lambda text: _say(f"  {text}"),
    )
    wanted = (
        [] if options.page_only else [entry for entry in plan if not options.row or entry.name in options.row]
    )
    failed = {}
    for entry in wanted:
        try:
            _compute(entry, bench, computed, options)
        except SsremError as error:
            failed[entry.name] = str(error)
            _say(f"  not made: {error}")
            if isinstance(error, PieceEndedError):
                break
    options.output.write_text(page(plan, computed, sets), encoding="utf-8")
    done = sum(bool(computed.runs(entry)) for entry in plan)
    _say(f"{options.output}: {done} of {len(plan)} rows")
    return 1 if failed else 0


def _compute(entry: Entry, bench: Bench, computed: ComputedRows, options: argparse.Namespace) -> None:
    """Compute the seeds of the row that are not kept yet, and keep each as soon as it ends."""
    known = {run["seed"] for run in computed.runs(entry)}
    for seed in range(entry.seeds):
        if seed in known:
            continue
        _say(f"{entry.name}, seed {seed}")
        began = time.process_time()
        run = run_of(entry, seed, bench)
        run["cpu_seconds"] = round(time.process_time() - began)
        computed.add(entry, run, _command(entry, options))
        _say(f"  {run['cpu_seconds']} s of processor time")


def _print_state(entry: Entry, computed: ComputedRows) -> None:
    row = computed.read(entry)
    seconds = sum(run["cpu_seconds"] for run in row["runs"]) if row else 0
    took = f"took {seconds / 60:.1f} min" if row else f"about {entry.minutes:g} min"
    if entry.seeds > 1 and not row:
        took += " a seed"
    print(f"{entry.name:32} {took:24} {computed.state(entry)}")


def _data(sets: dict[str, Labels], digest: str, responses: Path | None) -> dict[str, object]:
    """What rows are computed on: size, criterion and sum of scores of each annotated set; hashes of the other data."""
    return {
        "annotated": {
            name: [len(labels.pairs), labels.criterion, round(float(labels.human.sum()), 6)]
            for name, labels in sets.items()
        },
        CHITCHAT: digest[:16],
        RESPONSES: sha256(responses / "dailydialog-plusplus_train.jsonl")[:16] if responses else None,
    }


def _candidates(home: Warehouse) -> Candidates:
    with home.reader() as connection:
        return load_candidates(connection, [CHITCHAT])


def _command(entry: Entry, options: argparse.Namespace) -> str:
    """The command that computes the row, with the names of files and folders instead of their paths."""
    words = [
        "python",
        "-m",
        "benchmarks.agreement",
        *(file.name for file in options.annotated),
        "--row",
        entry.name,
    ]
    for option, value in (("--home", options.home), ("--responses", options.responses)):
        words += [option, value.name] if value else []
    if options.masked_model and "masked" in str(entry.settings):
        words += ["--masked-model", Path(options.masked_model).name]
    threads = os.environ.get("OMP_NUM_THREADS")
    return (f"OMP_NUM_THREADS={threads} " if threads else "") + shlex.join(words)


def _refused(text: str) -> int:
    print(f"agreement: {text}", file=sys.stderr)
    return 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("annotated", nargs="+", type=Path, metavar="FILE", help="annotated sets")
    parser.add_argument(
        "--home",
        type=Path,
        default=Path("warehouse"),
        help="home folder with chitchat and its speaker tables (default: %(default)s)",
    )
    parser.add_argument("--row", nargs="+", metavar="NAME", help="compute these rows alone")
    parser.add_argument(
        "--list", action="store_true", help="which rows are done, how long each takes; compute none"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from the rows that are kept")
    parser.add_argument(
        "--minutes",
        type=float,
        default=110,
        help="after which a training ends its piece (default: %(default)s)",
    )
    parser.add_argument(
        "--responses", type=Path, metavar="FOLDER", help="DailyDialog++, for the rows that learn from it"
    )
    parser.add_argument(
        "--masked-model",
        metavar="NAME_OR_FOLDER",
        help="masked language model (default: one is trained on the responses)",
    )
    parser.add_argument("--rows", type=Path, default=FOLDER, help="folder of the rows (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("docs/agreement.md"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
