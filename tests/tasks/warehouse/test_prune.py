"""Pruning: what nobody can need any more goes, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import KEPT_RUNS, KEPT_SECONDS, STALE_AFTER, prune
from support import stages


def publish(home: Warehouse, number: int) -> str:
    """Publish a small snapshot; returns the run's folder."""
    return f"run={stages.publish(home.root, number)}"


def folders(home: Warehouse) -> set[str]:
    return {folder.name for folder in home.lake.glob("run=*")}


def age(home: Warehouse, seconds: float) -> None:
    """Make all run folders older than they are."""
    for folder in home.lake.glob("run=*"):
        then = folder.stat().st_mtime - seconds
        os.utime(folder, (then, then))


def older(home: Warehouse, number: int) -> list[str]:
    """Make that many run folders that no snapshot uses, oldest first."""
    names = [f"run=20000101T0000{i:02}-abcdef" for i in range(number)]
    for name in names:
        (home.lake / name).mkdir()
    return names


def used(home: Warehouse) -> set[str]:
    return {partition.folder for partition in home.partitions()}


def test_a_run_folder_stays_for_readers_of_older_snapshots(home: Warehouse) -> None:
    runs = [publish(home, 0)]
    with home.reader() as reader:
        runs = [*older(home, KEPT_RUNS), *runs, publish(home, 1)]
        assert set(runs) <= folders(home)
        assert reader.execute("SELECT bytes FROM corpora").fetchone() == (0,)
    age(home, KEPT_SECONDS)
    runs.append(publish(home, 99))
    runs_left = {name.removesuffix(".ledger") for name in folders(home)}
    assert runs_left == set(runs[-KEPT_RUNS - 1 :]), "the last few stay however old they are"


def test_a_folder_counts_from_the_publish_that_replaced_it(home: Warehouse) -> None:
    publish(home, 0)
    age(home, 30 * 86400)
    publish(home, 1)
    assert prune(home, keep_runs=0).removed == [], "a reader may have opened the snapshot a moment ago"
    age(home, KEPT_SECONDS)
    prune(home, keep_runs=0)
    assert folders(home) == used(home)


def test_the_newest_stay_and_the_oldest_go(home: Warehouse) -> None:
    publish(home, 0)
    names = older(home, KEPT_RUNS + 3)
    prune(home)
    assert set(names) <= folders(home), "they are young"
    age(home, KEPT_SECONDS)
    gone = prune(home).removed
    assert sorted(gone) == [f"lake/{name}" for name in names[:3]]
    assert set(names[3:]) <= folders(home)
    assert used(home) <= folders(home)


def test_a_clock_that_was_set_back_keeps_folders_longer(home: Warehouse) -> None:
    publish(home, 0)
    (lost,) = older(home, 1)
    age(home, -86400.0)
    prune(home, keep_runs=0)
    assert lost in folders(home)
    age(home, 86400.0 + KEPT_SECONDS)
    prune(home, keep_runs=0)
    assert lost not in folders(home)


def test_all_at_once_where_it_is_asked(home: Warehouse) -> None:
    for number in range(3):
        publish(home, number)
    pruned = prune(home, keep_runs=0, keep_seconds=0)
    assert folders(home) == used(home)
    assert pruned.bytes > 1000
    assert prune(home, keep_runs=0, keep_seconds=0).removed == []


def write(path: Path, seconds_ago: float = 0.0) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("12345")
    then = time.time() - seconds_ago
    for changed in (path, path.parent):
        os.utime(changed, (then, then))
    return path.parent


def test_failures_models_and_trainings_that_nobody_needs(home: Warehouse) -> None:
    publish(home, 0)
    failed = [write(home.failures / f"run{n}" / "1-corpora.csv", seconds_ago=100 - n) for n in range(5)]
    lost = write(home.models / "ssrem" / "7" / "model.safetensors")
    stale = write(home.root / "checkpoints" / "aaaa" / "state", STALE_AFTER + 60)
    fresh = write(home.root / "checkpoints" / "bbbb" / "state", 60)
    ((key,),) = home.query("SELECT key FROM runs")
    finished = write(home.root / "checkpoints" / key[:16] / "state")
    pruned = prune(home, keep_failures=2)
    gone = [*failed[:3], lost, stale, finished]
    assert sorted(pruned.removed) == sorted(str(path.relative_to(home.root)) for path in gone)
    assert pruned.bytes == 5 * len(gone)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (*failed[3:], fresh))


def test_a_model_of_a_version_stays(copy: Warehouse) -> None:
    before = sorted(copy.models.rglob("*"))
    assert before
    prune(copy, keep_runs=0, keep_failures=0, keep_seconds=0)
    assert sorted(copy.models.rglob("*")) == before
    assert copy.query("SELECT count(*) FROM scores") != [(0,)]
