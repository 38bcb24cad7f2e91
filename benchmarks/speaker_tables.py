"""Times speaker tables and candidates against DuckDB's sort of the same turns; with a second corpus, also the growth.

python -m benchmarks.generate_corpus --output benchmarks/data/corpus.jsonl
python -m benchmarks.speaker_tables benchmarks/data/corpus.jsonl [twice as large.jsonl]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import measure


def build(home: str, corpus: str) -> None:
    """Build the tables in a stage that publishes nothing; print seconds and peak memory."""
    from ssrem.settings import TableSettings
    from ssrem.tables.speaker_sets import create_tables
    from ssrem.tasks.stage.stage import Recipe, open_stage
    from ssrem.tasks.warehouse.home import Warehouse

    with open_stage(Warehouse.at(home), "tables", lambda: Recipe({}, {})) as stage:
        start = time.perf_counter()
        create_tables(stage, corpus, "person", TableSettings())
        print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        stage.connection.execute(f"COPY turns TO '{home}/turns.parquet'")


def sort(home: str, database: str) -> None:
    """Sort the same turns in a new DuckDB database file with default settings; print seconds."""
    import duckdb

    with duckdb.connect(database) as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute(f"CREATE TABLE turns AS FROM read_parquet('{home}/turns.parquet')")
        start = time.perf_counter()
        connection.execute("CREATE TABLE sorted AS FROM turns ORDER BY speaker, conversation_id, turn")
        print(time.perf_counter() - start)


def main() -> None:
    """Print the figures of each dump, and how the time grows from the first to the second."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("dump", nargs="+", help="dumps written by benchmarks.generate_corpus")
    options.add_argument("--rounds", type=int, default=1, help="times that each is measured")
    options.add_argument("--home", help="home folder in which the dumps have landed, or land and stay")
    arguments = options.parse_args()
    times = []
    with tempfile.TemporaryDirectory() as scratch:
        home = arguments.home or scratch
        for dump in arguments.dump:
            from ssrem.tasks.ingest import land

            corpus, _ = land(dump, home)
            for _ in range(arguments.rounds):
                me = ["-m", "benchmarks.speaker_tables"]
                built, peak = map(float, measure([*me, "--build", home, corpus]).output.split())
                with tempfile.TemporaryDirectory() as folder:
                    ordered = float(measure([*me, "--sort", home, f"{folder}/sort.duckdb"]).output)
                print(
                    f"{Path(dump).name}: tables {built:.1f} s, sort {ordered:.1f} s, ratio {built / ordered:.2f}, ",
                    end="",
                )
                print(f"peak {peak / 1e9:.2f} GB", flush=True)
            times.append(built)
    if len(times) == 2:
        print(f"growth: {times[1] / times[0]:.2f} times")


if __name__ == "__main__":
    workers = {"--build": build, "--sort": sort}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
