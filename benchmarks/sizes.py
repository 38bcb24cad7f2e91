"""Sizes of a home folder: bytes per message by table, per version of an evaluator, and per vector by encoder.

python -m benchmarks.sizes HOME
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import duckdb

from ssrem.tasks.warehouse.home import Warehouse

GROUPS = {
    "landed": ("corpora", "conversations", "utterances", "quarantine"),
    "speaker tables": ("turns", "responses", "sc", "sp", "ss", "rand", "candidates", "set_similarity"),
    "ledger": ("runs", "check_results"),
}


def size(paths: Iterable[Path]) -> int:
    """Bytes of the files, and of all files in the folders."""
    return sum(f.stat().st_size for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file())


def rows(path: Path) -> int:
    """Rows of a Parquet file."""
    counted = duckdb.execute("SELECT num_rows FROM parquet_file_metadata(?)", [str(path)]).fetchone()
    assert counted is not None
    return int(counted[0])


def main() -> None:
    """Print the sizes."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("home")
    home = Warehouse.at(options.parse_args().home)
    parts = home.partitions()
    messages = sum(part.rows for part in parts if part.table == "utterances")
    print(f"{messages:,} messages")
    for group, tables in GROUPS.items():
        bytes_used = size(home.root / part.path for part in parts if part.table in tables)
        print(f"{group:28} {bytes_used / 1e6:9.2f} MB {bytes_used / messages:9.1f} bytes a message")
    for part in parts:
        if part.table == "scores":
            bytes_used = size([home.root / part.path])
            print(
                f"scores {part.key!s:60} {bytes_used / 1e6:9.2f} MB {bytes_used / max(part.rows, 1):9.1f} bytes a score"
            )
    for folder in sorted(home.models.glob("*/*")):
        print(f"model {folder.relative_to(home.models)!s:34} {size([folder]) / 1e6:9.2f} MB")
    for folder in sorted(home.vectors.glob("*")):
        vectors = sum(rows(path) for path in folder.glob("*.parquet"))
        bytes_used = size([folder])
        each = f"{bytes_used / max(vectors, 1):9.1f} bytes a text, {vectors:,} texts"
        print(f"vectors {folder.name:44} {bytes_used / 1e6:9.2f} MB {each}")
    for folder in sorted((home.root / "encoders").glob("*")):
        print(f"encoder {folder.name:32} {size([folder]) / 1e6:9.2f} MB")
    print(f"catalog {home.catalog.stat().st_size / 1e6:9.2f} MB for {len(parts)} parts")


if __name__ == "__main__":
    main()
