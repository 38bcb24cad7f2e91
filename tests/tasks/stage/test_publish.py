"""Publishing: whole or not at all, whatever stops it; and who may write."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from ssrem.errors import HomeError
from ssrem.schemas import TABLES
from ssrem.tasks.stage.ledger import Recipe, already_done
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.catalog import LAYOUT
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.snapshot import manifests
from support.stages import CORPUS, held, publish, run_python, staging, start_python

SNAPSHOT = """SELECT (SELECT bytes FROM corpora), (SELECT conversations FROM corpora), count(*),
    min(conversation_no), max(conversation_no), (SELECT count(*) FROM runs) FROM conversations"""


def snapshot(home: Warehouse) -> Any:
    with home.reader() as reader:
        return reader.execute(SNAPSHOT).fetchone()


def test_readers_see_whole_snapshots_only(home: Warehouse) -> None:
    publish(home.root, 0, 3)
    code = (
        "import sys; from support.stages import publish\n"
        "for n in range(1, 9): publish(sys.argv[1], n, n % 4 + 1)"
    )
    seen = []
    with start_python(code, home.root) as writer:
        while writer.poll() is None:
            # Both doors: the library's reader, and the catalog as any DuckDB client opens it.
            seen.append(snapshot(home))
            with duckdb.connect(str(home.catalog), read_only=True) as client:
                seen.append(client.execute(SNAPSHOT).fetchone())
            time.sleep(0.02)
    assert writer.returncode == 0
    seen.append(snapshot(home))
    for number, rows, found, low, high, runs in seen:
        assert (low, high, found, runs) == (number, number, rows, number + 1)
        assert rows == (number % 4 + 1 if number else 3)
    numbers = [row[0] for row in seen]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 8
    assert len(set(numbers)) > 3


def test_a_reader_keeps_its_snapshot(home: Warehouse) -> None:
    publish(home.root, 1)
    with home.reader() as reader:
        publish(home.root, 2)
        row = reader.execute(SNAPSHOT).fetchone()
    assert row is not None and row[0] == 1
    assert snapshot(home)[0] == 2


def test_a_client_that_holds_the_catalog_does_not_undo_a_publish(home: Warehouse) -> None:
    # In one process DuckDB hands out the database that is already open, which a publish has replaced.
    publish(home.root, 1)
    with duckdb.connect(str(home.catalog), read_only=True) as client:
        client.execute(SNAPSHOT)
        publish(home.root, 2)
        assert snapshot(home)[0] == 2
        publish(home.root, 3, corpora=False)
    number, _, _, low, _, runs = snapshot(home)
    assert (number, low, runs) == (2, 3, 3)


KILLS = {
    "while building": "Stage.publish = kill",
    "while writing": "Stage._write = kill",
    "before the run folder is named": "stage_module.sync_path = kill",
    "between the run folder and the catalog": "Warehouse.write_catalog = kill",
    "while the manifest is written": "snapshot_module._digest = kill",
    "while the catalog is written": "w = home_module.write_manifest; "
    "home_module.write_manifest = lambda *a: (w(*a), setattr(catalog_module, 'create_views', kill))[0]",
    "before the catalog is replaced": "catalog_module.sync_path = kill",
}


@pytest.mark.parametrize("point", KILLS)
def test_a_killed_run_leaves_the_old_snapshot(
    home: Warehouse, point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(home.root, 1)
    before = snapshot(home), home.partitions()
    code = f"""
        import os, signal, sys
        import ssrem.tasks.warehouse.catalog as catalog_module, ssrem.tasks.warehouse.home as home_module
        import ssrem.tasks.warehouse.snapshot as snapshot_module, ssrem.tasks.stage.stage as stage_module
        from support.stages import publish
        from ssrem.tasks.stage.stage import Stage
        from ssrem.tasks.warehouse.home import Warehouse
        def kill(*arguments, **named):
            os.kill(os.getpid(), signal.SIGKILL)
        {KILLS[point]}
        publish(sys.argv[1], 2)
        """
    killed = run_python(code, home.root)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (snapshot(home), home.partitions()) == before
    capsys.readouterr()
    publish(home.root, 3)
    (message,) = capsys.readouterr().err.splitlines()
    assert "ingest" in message and "interrupted" in message
    assert snapshot(home)[0] == 3
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    assert not list(home.root.glob(".catalog*"))
    named = {part.folder for manifest in manifests(home.lake) for part in manifest.partitions}
    assert {folder.name for folder in home.lake.glob("run=*")} <= named


def test_a_run_that_fails_leaves_nothing_behind(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(home.root, 1)
    before = home.partitions()

    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("broken")

    written = sorted(home.lake.glob("snapshot=*"))
    monkeypatch.setattr("ssrem.tasks.warehouse.catalog.sync_path", fail)
    with pytest.raises(RuntimeError):
        publish(home.root, 2)
    monkeypatch.undo()
    assert home.partitions() == before
    assert sorted(home.lake.glob("snapshot=*")) == written
    assert {part.folder for part in before} == {f.name for f in home.lake.glob("run=*")}
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    capsys.readouterr()
    publish(home.root, 3)
    assert capsys.readouterr().err == ""


def test_a_second_writer_is_told_who_writes(home: Warehouse) -> None:
    with held(home) as writer:
        with pytest.raises(HomeError, match=rf"process {writer.pid} on \S+ \(train since .* UTC\)") as error:
            publish(home.root, 1)
        assert len(str(error.value).splitlines()) == 1
        assert home.partitions() == []
        writer.kill()
    publish(home.root, 1)
    assert snapshot(home)[0] == 1


def test_a_second_writer_in_the_same_process_is_refused(home: Warehouse) -> None:
    failures: list[BaseException] = []

    def second() -> None:
        try:
            publish(home.root, 1)
        except HomeError as error:
            failures.append(error)

    with staging(home, "train"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(failures) == 1
    assert str(os.getpid()) in str(failures[0])


def test_a_lock_that_nobody_holds_is_no_obstacle(home: Warehouse) -> None:
    home.root.mkdir()
    (home.root / ".lock").write_text(
        json.dumps({"pid": 1, "host": "h", "what": "train", "since": "long ago"})
    )
    publish(home.root, 1)
    assert snapshot(home)[0] == 1


def test_who_writes_is_told_by_the_lock_not_by_its_file(home: Warehouse) -> None:
    assert home.writer() is None
    with home.lock("train"):
        held = json.loads((home.root / ".lock").read_text())
        assert home.writer() == held
        assert (held["pid"], held["what"]) == (os.getpid(), "train")
    assert home.writer() is None
    (home.root / ".lock").write_text(json.dumps({**held, "pid": 2**22 + 1}))  # above what a kernel gives out
    assert home.writer() is None


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match="--home") as error:
        publish(tmp_path / "file" / "home", 1)
    assert len(str(error.value).splitlines()) == 1


def _version_0_1(home: Warehouse) -> None:
    """The catalog and the manifest that version 0.1 wrote, with one of its tables."""
    table = home.lake / "run=20260101T000000-abcdef" / "corpora.parquet"
    table.parent.mkdir(parents=True)
    part = ("corpora", "tiny", str(table.relative_to(home.root)), 1)
    with duckdb.connect(str(home.catalog)) as connection:
        connection.execute(f"COPY (SELECT 'tiny' AS corpus) TO '{table}' (FORMAT parquet)")
        connection.execute("CREATE SCHEMA ssrem")
        connection.execute("CREATE TABLE ssrem.home AS SELECT '1-a246dc5f' AS layout, 1::BIGINT AS snapshot")
        connection.execute(
            "CREATE TABLE ssrem.parts (table_name VARCHAR, key VARCHAR, path VARCHAR, rows BIGINT)"
        )
        connection.execute("INSERT INTO ssrem.parts VALUES (?, ?, ?, ?)", part)
        connection.execute(f"CREATE VIEW corpora AS SELECT * FROM read_parquet('{table}')")
    content = {"layout": "1-a246dc5f", "number": 1, "published_at": "2026-01-01 00:00:00", "parts": [part]}
    digest = hashlib.sha256(json.dumps(sorted(json.loads(json.dumps(content)).items())).encode()).hexdigest()
    (home.lake / "snapshot=00000001.json").write_text(json.dumps({**content, "sha256": digest}))


def _no_layout(catalog: Path) -> None:
    catalog.unlink()
    with duckdb.connect(str(catalog)) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")


def _cut(catalog: Path) -> None:
    catalog.write_bytes(catalog.read_bytes()[:5000])


def _cut_late(catalog: Path) -> None:
    catalog.write_bytes(catalog.read_bytes()[:-200_000])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no layout": _no_layout,
    "not a database": lambda catalog: catalog.write_bytes(b"garbage\n" * 1000),
    "empty": lambda catalog: catalog.write_bytes(b""),
    "cut short": _cut,
    "cut short late": _cut_late,
}


def test_a_home_of_another_layout_is_refused_and_left_alone(home: Warehouse) -> None:
    _version_0_1(home)
    _refused(home, f"layout 1-a246dc5f, this version reads {LAYOUT}.* land its dumps and human ratings")


def test_so_is_one_of_another_layout_that_lost_its_catalog(home: Warehouse) -> None:
    _version_0_1(home)
    home.catalog.unlink()
    _refused(home, f"layout 1-a246dc5f, this version reads {LAYOUT}")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_home_without_manifests_is_refused_and_left_alone(home: Warehouse, damage: str) -> None:
    publish(home.root, 1)
    for manifest in home.lake.glob("snapshot=*"):
        manifest.unlink()
    DAMAGE[damage](home.catalog)
    _refused(home, "catalog.duckdb")


def _refused(home: Warehouse, says: str) -> None:
    content = _contents(home)
    for use in (home.snapshot, home.partitions, lambda: snapshot(home), lambda: publish(home.root, 2)):
        with pytest.raises(HomeError, match=says) as error:
            use()
        assert len(str(error.value).splitlines()) == 1
        assert "--home" in str(error.value)
    assert _contents(home) == content


def _contents(home: Warehouse) -> dict[str, bytes]:
    files = [path for path in home.root.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in files}


@pytest.mark.parametrize("damage", [*DAMAGE, "gone"])
def test_the_lake_tells_what_a_damaged_catalog_held(home: Warehouse, damage: str) -> None:
    for number in (1, 2):
        publish(home.root, number)
    before = snapshot(home), home.partitions()
    if damage == "gone":
        home.catalog.unlink()
    else:
        DAMAGE[damage](home.catalog)
    assert (snapshot(home), home.partitions()) == before
    assert str(home.catalog) in str(home.snapshot().damage)
    publish(home.root, 4)
    assert home.snapshot().damage is None
    assert snapshot(home)[0] == 4
    with duckdb.connect(str(home.catalog), read_only=True) as client:
        assert client.execute(SNAPSHOT).fetchone() == snapshot(home)


def test_a_damaged_manifest_gives_way_to_the_one_before(home: Warehouse) -> None:
    publish(home.root, 1)
    before = home.partitions()
    publish(home.root, 2)
    home.catalog.unlink()
    newest = max(home.lake.glob("snapshot=*"))
    newest.write_text(newest.read_text().replace("conversations", "conversationz"))
    assert home.partitions() == before
    assert snapshot(home)[0] == 1


@pytest.mark.parametrize("room", [40_000, 300_000, 1_000_000], ids="{:,} bytes a file".format)
def test_a_full_disk_is_one_line_and_harmless(home: Warehouse, room: int) -> None:
    publish(home.root, 1)
    before = snapshot(home), home.partitions()
    # Where a file may grow no further, a write fails as on a full disk.
    code = """
        import resource, sys
        from ssrem.errors import HomeError
        from support.stages import publish
        room = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            publish(sys.argv[1], 2, rows=20_000, size=40)
        except HomeError as error:
            print(error)
        """
    full = run_python(code, home.root, room)
    assert full.returncode == 0, full.stderr
    assert full.stdout.startswith(f"no room left on the disk of {home.root}; nothing was published")
    assert len(full.stdout.splitlines()) == 1
    assert (snapshot(home), home.partitions()) == before
    publish(home.root, 3)
    assert snapshot(home)[0] == 3


def test_parquet_has_the_columns_of_the_contract(home: Warehouse) -> None:
    publish(home.root, 1)
    for part in home.partitions():
        file = pq.ParquetFile(home.root / part.path)
        assert tuple(file.schema_arrow.names) == TABLES[part.table].column_names
        assert file.metadata.num_rows == part.rows
    assert {p.address for p in home.partitions()} >= {("conversations", CORPUS), ("corpora", CORPUS)}


def test_every_table_can_be_asked_before_anything_landed(home: Warehouse) -> None:
    with home.reader() as reader:
        for table in TABLES.values():
            found = reader.execute(f"DESCRIBE {table.name}").fetchall()
            assert [(name, kind) for name, kind, *_ in found] == [(c.name, c.type) for c in table.columns]
    assert not home.root.exists()


def test_a_run_is_done_until_its_input_or_output_changes(home: Warehouse) -> None:
    def done(number: int, digest: str = "h") -> bool:
        return already_done(home, "ingest", Recipe({"number": number}, {"in": digest}))

    assert not done(1)
    publish(home.root, 1)
    assert done(1)
    assert not done(1, "another")
    assert not done(2)
    publish(home.root, 2)
    assert done(2)
    assert not done(1), "its parts were replaced"
    publish(home.root, 1)
    assert done(1)


def test_ids_of_runs_sort_by_time_within_a_second_too(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.stage.stage.utc_now", lambda: datetime(2001, 1, 1))
    for number in range(8):
        publish(home.root, number, 1)
    ids = home.query("SELECT run_id FROM runs ORDER BY started")
    assert len(ids) == 8
    assert ids == sorted(ids)


def test_a_key_depends_on_content_not_on_order() -> None:
    key = Recipe({"a": 1, "b": [2]}, {"x": "1", "y": "2"}).key("s")
    assert Recipe({"b": [2], "a": 1}, {"y": "2", "x": "1"}).key("s") == key
    others = {Recipe({}, {}).key("t"), Recipe({"a": 1}, {}).key("s"), Recipe({}, {"a": 1}).key("s")}
    assert len({key, *others}) == 4


def test_what_is_moved_in_replaces_what_a_killed_run_left(home: Warehouse, tmp_path: Path) -> None:
    target = home.models / "m" / "1"
    target.mkdir(parents=True)
    (target / "stale").touch()
    with staging(home, "train") as stage:
        stage.create("corpora")
        (stage.scratch / "model").mkdir()
        (stage.scratch / "model" / "weights").touch()
        stage.publish([Output("corpora", CORPUS)], folders={stage.scratch / "model": target})
    assert [f.name for f in target.iterdir()] == ["weights"]
