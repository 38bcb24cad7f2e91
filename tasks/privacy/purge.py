"""Purge: delete at once everything that no published table needs, even what is otherwise retained for a while."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.encoders.store import Hashes, VectorStore, text_hashes
from ssrem.evaluators.judge.journal import retain
from ssrem.schemas import LANDED
from ssrem.tasks.warehouse.files import whole_file
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import PURGE_NOTE
from ssrem.tasks.warehouse.partition import Address, replica_path
from ssrem.tasks.warehouse.snapshot import drop_manifests

if TYPE_CHECKING:
    import duckdb

FOLDERS = ("failures", "reports", "checkpoints", "encoders", "masked-lm")
"""Folders that stages recreate when needed, which may hold anyone's texts, or models trained on them."""

_BATCH = 65_536

_TEXTS = """
    SELECT text FROM utterances UNION ALL SELECT text FROM turns UNION ALL SELECT text FROM negatives
    UNION ALL SELECT response FROM rated_responses
    UNION ALL SELECT reference FROM rated_responses WHERE reference IS NOT NULL
    UNION ALL SELECT unnest(context) FROM rated_responses"""


def derived_partitions(home: Warehouse, corpus: str) -> list[Address]:
    """The partitions that were computed from a corpus, and so may contain or reveal its content."""
    return [p.address for p in home.partitions() if p.key.corpus == corpus and p.table not in LANDED]


def held_texts(home: Warehouse) -> Hashes:
    """Hashes of all texts in published tables; their vectors are cached by them."""
    with home.reader() as connection:
        return hashes_of(connection, _TEXTS)


def hashes_of(connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> Hashes:
    """Sorted, distinct hashes of the texts that a query of one column returns."""
    hashes = [np.zeros(0, np.uint64)]
    cursor = connection.execute(query, list(values))
    while rows := cursor.fetchmany(_BATCH):
        hashes.append(text_hashes([text for (text,) in rows]))
    return np.unique(np.concatenate(hashes))


def schedule_purge(home: Warehouse, run_id: str) -> None:
    """Write a note that the home folder must be purged after the run has published; `purge` deletes the note."""
    with whole_file(home.root / PURGE_NOTE) as draft:
        draft.write_text(run_id, encoding="utf-8")


def finish_purge(home: Warehouse) -> bool:
    """Purge if a run scheduled it and was killed after it published; returns whether that was so.

    The caller holds the home's lock.
    """
    note = home.root / PURGE_NOTE
    if not note.exists():
        return False
    published = home.query("SELECT run_id FROM runs WHERE run_id = ?", [note.read_text(encoding="utf-8")])
    if published:
        purge(home, held_texts(home))
    note.unlink(missing_ok=True)
    return bool(published)


def purge(home: Warehouse, held: Hashes) -> dict[str, int]:
    """Delete unpublished Parquet files, files that stages can recreate, and vectors of texts, and judges' answers about
    texts, that are not in `held`.

    The caller holds the home's lock. Returns the number of each. Readers with an older snapshot lose it,
    and it cannot be restored: no manifest names its files any more.
    """
    counts = {
        "files": 0,
        "vectors": VectorStore(home.vectors).retain(held),
        "judgments": retain(home.judgments, held),
    }
    published = {home.root / part.path for part in home.partitions()}
    published |= {replica_path(path) for path in published}
    drop_manifests(home.lake, keep=1)
    for catalog in home.root.glob("catalog.*.duckdb"):
        catalog.unlink()
    for folder in home.lake.glob("run=*"):
        for path in set(_files(folder)) - published:
            path.unlink()
            counts["files"] += 1
        if not any(folder.iterdir()):
            folder.rmdir()
    for name in FOLDERS:
        counts["files"] += len(_files(home.root / name))
        shutil.rmtree(home.root / name, ignore_errors=True)
    (home.root / PURGE_NOTE).unlink(missing_ok=True)
    return counts


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
