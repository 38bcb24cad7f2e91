"""Small versions of the benchmarks of operations: what they count must hold at any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readers_writers, soak
from ssrem.tasks.stage import stage
from ssrem.tasks.warehouse.garbage import KEPT_RUNS, prune_runs


def test_readers_see_no_failure_and_no_mixed_snapshot(tmp_path: Path) -> None:
    outcome = readers_writers.run(tmp_path / "home", readers=3, publishes=6)
    assert outcome.failures == []
    assert outcome.kinds.keys() == {"ssrem", "duckdb", "sql", "old"}
    for row in outcome.kinds.values():
        assert row["looks"] > 0
    assert outcome.kinds["old"]["snapshots"] == 1
    assert max(outcome.kinds[kind]["snapshots"] for kind in ("ssrem", "duckdb")) > 1


def test_a_mixed_snapshot_is_noticed(tmp_path: Path) -> None:
    home = readers_writers.Warehouse.at(tmp_path / "home")
    readers_writers.publish(home, 0)
    first = home.partitions()
    readers_writers.publish(home, 1)
    home.write_catalog(
        [p for p in home.partitions() if p.table != "turns"] + [p for p in first if p.table == "turns"]
    )
    seen = readers_writers.Seen("ssrem")
    with home.reader() as connection:
        readers_writers.look(connection, seen)
    assert len(seen.wrong) == 1


def test_small_corpora_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "prune_runs", lambda home: prune_runs(home, keep_seconds=0))
    landings = list(soak.soak(tmp_path, corpora=KEPT_RUNS + 6, messages=40))
    for landing in landings[KEPT_RUNS + 1 :]:
        # A folder a corpus, one of the ledger, and its last few for readers of older snapshots.
        assert landing.folders <= landing.number + 2 + KEPT_RUNS
    later, last = landings[KEPT_RUNS + 1], landings[-1]
    grown = (last.live - later.live) / (last.number - later.number)
    assert grown < 1.2 * later.live / later.number, "the snapshot grows with the corpora"
    home = soak.Warehouse.at(tmp_path / "home")
    ledger = [p for p in home.partitions() if p.table in ("runs", "check_results")]
    assert [p.rows for p in ledger if p.table == "runs"] == [len(landings)]
    # Besides the snapshot, the lake holds replicas and the ledgers of the last few snapshots.
    ledger_bytes = sum(path.stat().st_size for path in (home.lake / ledger[0].folder).iterdir())
    replicas = sum(path.stat().st_size for path in home.lake.glob("run=*/*") if path.suffix != ".parquet")
    assert last.lake - last.live < replicas + (KEPT_RUNS + 1) * ledger_bytes
    assert "catalog MB" in soak.table(landings)
