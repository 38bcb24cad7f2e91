"""Publishing: whole or not at all, whatever stops it; and who may write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from schemas import TABLES
from ssrem.errors import HomeError
from support.paths import ROOT
from tasks.stage.ledger import already_done, run_key
from tasks.stage.stage import Output, open_stage
from tasks.warehouse.catalog import LAYOUT
from tasks.warehouse.home import Warehouse

PUBLISH = """
    import sys
    from tasks.warehouse.home import Warehouse
    from tasks.stage.stage import Output, open_stage

    def publish(root, number, rows=3, on_cleanup=lambda message: None, parts=("a", "b"), size=1):
        outputs = [Output("conversations", "a"), Output("corpora", "a")][: len(parts)]
        with open_stage(Warehouse.at(root), "ingest", {"number": number}, {"in": "h"}, on_cleanup=on_cleanup) as stage:
            for table in ("conversations", "corpora"):
                stage.create(table)
            stage.connection.execute(
                "INSERT INTO conversations BY NAME SELECT 'a' AS corpus, $n || '-' || i AS conversation_id, "
                "$n AS conversation_no, $rows AS messages, 1 AS participants, "
                "repeat(md5(i::VARCHAR), $size) AS metadata FROM range($rows) AS r (i)",
                {"n": number, "rows": rows, "size": size},
            )
            stage.connection.execute(
                "INSERT INTO corpora BY NAME SELECT 'a' AS corpus, $n AS bytes, $rows AS conversations",
                {"n": number, "rows": rows},
            )
            stage.publish(outputs)
        return stage
"""
exec(dedent(PUBLISH))
publish: Callable[..., Any] = globals()["publish"]

SNAPSHOT = """SELECT (SELECT bytes FROM corpora), (SELECT conversations FROM corpora), count(*),
    min(conversation_no), max(conversation_no), (SELECT count(*) FROM runs) FROM conversations"""


def snapshot(home: Warehouse) -> Any:
    with home.reader() as reader:
        return reader.execute(SNAPSHOT).fetchone()


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `code` after PUBLISH in a process of its own."""
    command = [sys.executable, "-c", dedent(PUBLISH) + dedent(code), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_readers_see_whole_snapshots_only(home: Warehouse) -> None:
    publish(home.root, 0, 3)
    command = [
        sys.executable,
        "-c",
        dedent(PUBLISH) + "for n in range(1, 16): publish(sys.argv[1], n, n % 4 + 1)",
    ]
    seen = []
    with subprocess.Popen([*command, str(home.root)], cwd=ROOT) as writer:
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
    assert numbers[-1] == 15
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
        publish(home.root, 3, parts=("a",))
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
def test_a_killed_run_leaves_the_old_snapshot(home: Warehouse, point: str) -> None:
    publish(home.root, 1)
    before = snapshot(home), home.parts()
    killed = python(
        f"""
        import os, signal
        import tasks.warehouse.catalog as catalog_module, tasks.warehouse.home as home_module
        import tasks.warehouse.snapshot as snapshot_module, tasks.stage.stage as stage_module
        from tasks.stage.stage import Stage
        def kill(*arguments, **named):
            os.kill(os.getpid(), signal.SIGKILL)
        {KILLS[point]}
        publish(sys.argv[1], 2)
        """,
        home.root,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (snapshot(home), home.parts()) == before
    said: list[str] = []
    publish(home.root, 3, on_cleanup=said.append)
    (message,) = said
    assert "ingest" in message and "interrupted" in message and len(message.splitlines()) == 1
    assert snapshot(home)[0] == 3
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    assert not list(home.root.glob(".catalog*"))


def test_a_run_that_fails_leaves_nothing_behind(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(home.root, 1)
    before = home.parts()

    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("broken")

    manifests = sorted(home.lake.glob("snapshot=*"))
    monkeypatch.setattr("tasks.warehouse.catalog.sync_path", fail)
    with pytest.raises(RuntimeError):
        publish(home.root, 2)
    monkeypatch.undo()
    assert home.parts() == before
    assert sorted(home.lake.glob("snapshot=*")) == manifests
    assert {part.folder for part in before} == {f.name for f in home.lake.glob("run=*")}
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    said: list[str] = []
    publish(home.root, 3, on_cleanup=said.append)
    assert said == []


def test_a_second_writer_is_told_who_writes(home: Warehouse) -> None:
    code = dedent(PUBLISH) + dedent(
        """
        with open_stage(Warehouse.at(sys.argv[1]), "train", {}, {}):
            print("open", flush=True)
            sys.stdin.read()
        """
    )
    command = [sys.executable, "-c", code, str(home.root)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(HomeError, match=rf"process {writer.pid} on \S+ \(train since .* UTC\)") as error:
            publish(home.root, 1)
        assert len(str(error.value).splitlines()) == 1
        assert home.parts() == []
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

    with open_stage(home, "train", {}, {}):
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


def _other_layout(catalog: Path) -> None:
    with duckdb.connect(str(catalog)) as connection:
        connection.execute("UPDATE ssrem.home SET layout = '9-other'")


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
    publish(home.root, 1)
    _other_layout(home.catalog)
    _refused(home, f"layout 9-other.*reads layout {LAYOUT}")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_home_without_manifests_is_refused_and_left_alone(home: Warehouse, damage: str) -> None:
    publish(home.root, 1)
    for manifest in home.lake.glob("snapshot=*"):
        manifest.unlink()
    DAMAGE[damage](home.catalog)
    _refused(home, "catalog.duckdb")


def _refused(home: Warehouse, says: str) -> None:
    content = home.catalog.read_bytes()
    files = sorted(home.lake.rglob("*"))
    for use in (home.check, home.parts, lambda: snapshot(home), lambda: publish(home.root, 2)):
        with pytest.raises(HomeError, match=says) as error:
            use()
        assert len(str(error.value).splitlines()) == 1
        assert "--home" in str(error.value)
    assert home.catalog.read_bytes() == content
    assert sorted(home.lake.rglob("*")) == files


@pytest.mark.parametrize("damage", [*DAMAGE, "gone"])
def test_the_lake_tells_what_a_damaged_catalog_held(home: Warehouse, damage: str) -> None:
    for number in (1, 2, 3):
        publish(home.root, number)
    before = snapshot(home), home.parts()
    if damage == "gone":
        home.catalog.unlink()
    else:
        DAMAGE[damage](home.catalog)
    assert (snapshot(home), home.parts()) == before
    assert str(home.catalog) in str(home.snapshot().damage)
    publish(home.root, 4)
    assert home.snapshot().damage is None
    assert snapshot(home)[0] == 4
    with duckdb.connect(str(home.catalog), read_only=True) as client:
        assert client.execute(SNAPSHOT).fetchone() == snapshot(home)


def test_a_damaged_manifest_gives_way_to_the_one_before(home: Warehouse) -> None:
    publish(home.root, 1)
    before = home.parts()
    publish(home.root, 2)
    home.catalog.unlink()
    newest = max(home.lake.glob("snapshot=*"))
    newest.write_text(newest.read_text().replace("conversations", "conversationz"))
    assert home.parts() == before
    assert snapshot(home)[0] == 1


@pytest.mark.parametrize("room", [40_000, 300_000, 1_000_000], ids="{:,} bytes a file".format)
def test_a_full_disk_is_one_line_and_harmless(home: Warehouse, room: int) -> None:
    publish(home.root, 1)
    before = snapshot(home), home.parts()
    # Where a file may grow no further, a write fails as on a full disk.
    full = python(
        """
        import resource
        from ssrem.errors import HomeError
        room = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            publish(sys.argv[1], 2, rows=20_000, size=40)
        except HomeError as error:
            print(error)
        """,
        home.root,
        room,
    )
    assert full.returncode == 0, full.stderr
    assert full.stdout.startswith(f"no room left on the disk of {home.root}; nothing was published")
    assert len(full.stdout.splitlines()) == 1
    assert (snapshot(home), home.parts()) == before
    publish(home.root, 3)
    assert snapshot(home)[0] == 3


def test_parquet_has_the_columns_of_the_contract(home: Warehouse) -> None:
    publish(home.root, 1)
    for part in home.parts():
        file = pq.ParquetFile(home.root / part.path)
        assert tuple(file.schema_arrow.names) == TABLES[part.table].column_names
        assert file.metadata.num_rows == part.rows
    assert {(p.table, p.key) for p in home.parts()} >= {("conversations", "a"), ("corpora", "a")}


def test_every_table_can_be_asked_before_anything_landed(home: Warehouse) -> None:
    with home.reader() as reader:
        for table in TABLES.values():
            found = reader.execute(f"DESCRIBE {table.name}").fetchall()
            assert [(name, kind) for name, kind, *_ in found] == [(c.name, c.type) for c in table.columns]
    assert not home.root.exists()


def test_a_run_is_done_until_its_input_or_output_changes(home: Warehouse) -> None:
    def done(number: int, digest: str = "h") -> bool:
        return already_done(home, "ingest", {"number": number}, {"in": digest})

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


def test_a_key_depends_on_content_not_on_order() -> None:
    key = run_key("s", {"a": 1, "b": [2]}, {"x": "1", "y": "2"})
    assert run_key("s", {"b": [2], "a": 1}, {"y": "2", "x": "1"}) == key
    assert len({key, run_key("t", {}, {}), run_key("s", {"a": 1}, {}), run_key("s", {}, {"a": 1})}) == 4


def test_what_is_moved_in_replaces_what_a_killed_run_left(home: Warehouse, tmp_path: Path) -> None:
    target = home.models / "m" / "1"
    target.mkdir(parents=True)
    (target / "stale").touch()
    with open_stage(home, "train", {}, {}) as stage:
        stage.create("corpora")
        (stage.scratch / "model").mkdir()
        (stage.scratch / "model" / "weights").touch()
        stage.publish([Output("corpora", "a")], folders={stage.scratch / "model": target})
    assert [f.name for f in target.iterdir()] == ["weights"]
