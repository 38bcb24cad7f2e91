"""`python -m benchmarks.agreement ANNOTATED… --home HOME`: train what is needed, write docs/agreement.md."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.agreement.page import Budget, page
from benchmarks.agreement.plan import entries
from benchmarks.agreement.run import Bench, row_of
from ssrem.agreement.annotated import dataset_name, labels_of, read_annotated
from ssrem.encoders.hub import pick_device
from ssrem.errors import SsremError
from ssrem.tables.candidates import load_candidates
from tasks.speaker_tables.build import landed_corpus
from tasks.warehouse.home import Warehouse

_STEPS = 200
"""Of the masked language model's fine-tuning: some minutes on two cores."""


def main() -> int:
    """Compute all rows and write the page; returns 0, or 1 if a row could not be computed."""
    options = _options()
    try:
        home = Warehouse.at(str(options.home))
        digest, _ = landed_corpus(home, options.corpus)
        with home.reader() as connection:
            candidates = load_candidates(connection, [options.corpus])
        sets = {dataset_name(file): labels_of(read_annotated(file)) for file in options.annotated}
    except SsremError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 1
    device = str(pick_device())
    bench = Bench(candidates, digest, sets, options.home / "agreement", lambda text: _say(f"  {text}"))
    masked_model = _masked_model(options.masked_model, options.home, bench)
    plan = list(entries(options.contexts, options.seeds, masked_model))
    done, failed = [], {}
    for number, entry in enumerate(plan, 1):
        if options.only and not any(word in f"{entry.section} {entry.label}" for word in options.only):
            wanted = False
        else:
            wanted = not options.page_only
        rows = []
        for seed in range(entry.seeds):
            row = bench.kept(entry, seed)
            if row is None and wanted:
                _say(f"{number}/{len(plan)} {entry.section}: {entry.label}, seed {seed}")
                began = time.perf_counter()
                try:
                    row = row_of(entry, seed, bench)
                except SsremError as error:
                    failed[entry.label] = str(error)
                    _say(f"  not made: {error}")
                    break
                bench.keep(entry, seed, row)
                _say(f"  {time.perf_counter() - began:.0f} s")
            if row is not None:
                rows.append(row)
        done.append((entry, rows))
    budget = Budget(options.corpus, options.contexts, device)
    options.output.write_text(page(done, failed, sets, budget), encoding="utf-8")
    _say(f"{options.output}: {sum(bool(rows) for _, rows in done)} of {len(plan)} rows")
    return 1 if failed else 0


def _masked_model(given: str | None, home: Path, bench: Bench) -> str:
    """The masked language model that the options name, or one fine-tuned from the packaged encoder, once."""
    if given:
        return given
    from ssrem.negatives.tied_head import CARD, TiedHeadSettings, fine_tune

    folder = home / "agreement" / "masked-lm"
    if not (folder / CARD).exists():
        _say("fine-tuning a masked language model from the packaged encoder")
        tuned = fine_tune(bench.candidates, folder, TiedHeadSettings(steps=_STEPS), progress=_steps)
        _say(f"  -log p of masked tokens {tuned.before:.2f} → {tuned.after:.2f} in {tuned.seconds:.0f} s")
    return str(folder)


def _steps(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        _say(f"  {done}/{total}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("annotated", nargs="+", type=Path, metavar="FILE", help="annotated sets")
    parser.add_argument(
        "--home", type=Path, default=Path("warehouse"), help="home folder (default: %(default)s)"
    )
    parser.add_argument("--corpus", default="chitchat", help="corpus to learn from (default: %(default)s)")
    parser.add_argument(
        "--contexts",
        type=int,
        default=1000,
        help="responses that a transformer learns from (default: %(default)s; the papers: all, 60000 and more)",
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="of what trains in minutes (default: %(default)s)"
    )
    parser.add_argument("--masked-model", help="masked language model (default: one fine-tuned here)")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose section or label has the word")
    parser.add_argument("--page-only", action="store_true", help="write the page from what was made before")
    parser.add_argument("--output", type=Path, default=Path("docs/agreement.md"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
