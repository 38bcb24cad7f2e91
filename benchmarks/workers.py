"""Encoding, scoring and set similarity by one and by two workers of Dask, each with one thread: times, equal results.

OMP_NUM_THREADS=1 python -m benchmarks.workers HOME [WORK …]

HOME: the home folder of a default run, whose texts are encoded by the packaged sentence encoder and whose responses are
scored by its `ssrem`. Similarity is that of random vectors. Each is timed after the workers have done half of it once,
as they load models then. Needs two free cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssrem.encoders import load_encoder
from ssrem.evaluators import load_evaluator
from ssrem.samples import TEST, TRAIN, Candidates
from ssrem.tables.candidates import load_candidates
from ssrem.tasks import caches
from ssrem.tasks.score import score_candidates
from ssrem.tasks.settings import Runner
from ssrem.tasks.stage.shards import opened
from ssrem.tasks.tables import similarity_in_shards
from ssrem.tasks.warehouse.home import Warehouse

CORPUS = "chitchat"
WORKS = ("encoding", "scoring", "similarity")
SHARDS, TEXTS = 4, 4_096
"""Shards of texts to encode, and texts of each: a quarter of the usual size, so that it takes minutes."""

VECTORS, DIMENSIONS, MEMBERS, SET = 200_000, 256, 4_000_000, 400


def encoding(candidates: Candidates, scratch: Path) -> Callable[[int], Any]:
    """Encode n shards of texts."""
    encoder, caches.TEXTS = load_encoder("all-minilm-l6-v2"), TEXTS
    return lambda n: caches.encoded_in_shards(encoder, candidates.texts[: n * TEXTS], scratch)


def scoring(candidates: Candidates, home: Warehouse, scratch: Path) -> Callable[[int], Any]:
    """Score n quarters of all responses with their candidates, as if they were the test split."""
    folder = home.models / "ssrem" / "1"
    evaluator = load_evaluator(folder)

    def score(n: int) -> Any:
        split = np.full_like(candidates.split, TRAIN)
        split[: n * len(split) // SHARDS] = TEST
        scores = score_candidates(home, folder, evaluator, replace(candidates, split=split), scratch)
        return np.concatenate([of_kind.ravel() for of_kind in scores.values()])

    return score


def similarity(scratch: Path) -> Callable[[int], Any]:
    """Mean similarity of n quarters of the sets."""
    draw = np.random.default_rng(0)
    np.save(scratch / "vectors.npy", draw.normal(size=(VECTORS, DIMENSIONS)).astype(np.float16))
    set_id, rows = np.arange(MEMBERS) // SET, draw.integers(0, VECTORS, MEMBERS)

    def of(n: int) -> Any:
        last = n * MEMBERS // SHARDS
        return similarity_in_shards(scratch / "vectors.npy", set_id[:last], rows[:last]).mean

    return of


def main() -> None:
    """Print, for each kind of work, the seconds of one and of two workers and their ratio."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("home", help="home folder of a default run")
    options.add_argument("work", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)} (default: all)")
    arguments = options.parse_args()
    if unknown := set(arguments.work) - set(WORKS):
        options.error(f"no work {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    home = Warehouse.at(arguments.home)
    with home.reader() as connection:
        candidates = load_candidates(connection, [CORPUS])
    with tempfile.TemporaryDirectory(dir=home.root) as folder:
        scratch = Path(folder)
        works = {
            "encoding": encoding(candidates, scratch),
            "scoring": scoring(candidates, home, scratch),
            "similarity": similarity(scratch),
        }
        for name in arguments.work or works:
            work = works[name]
            seconds, results = [], []
            for count in (1, 2):
                with opened(Runner(runner="dask", workers=count)):
                    work(2)  # one shard would not go to the workers
                    start = time.perf_counter()
                    results.append(work(SHARDS))
                    seconds.append(time.perf_counter() - start)
            equal = "equal" if np.array_equal(*results, equal_nan=True) else "different"
            taken = (
                f"one worker {seconds[0]:.1f} s, two {seconds[1]:.1f} s, ratio {seconds[0] / seconds[1]:.2f}"
            )
            print(f"{name}: {taken}, results {equal}", flush=True)


if __name__ == "__main__":
    main()
