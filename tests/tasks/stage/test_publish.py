"""Publishing: whole or not at all, whatever stops it; and who may write."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from ssrem.errors import HomeError
from ssrem.schemas import TABLES
from ssrem.tasks.stage.stage import Output, Recipe, already_done, run_stage
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import health
from support.stages import CORPUS, publish, run_python, staging, start_python

SNAPSHOT = """SELECT (SELECT bytes FROM corpora), (SELECT conversations FROM corpora), count(*),
    min(conversation_no), max(conversation_no), (SELECT count(*) FROM runs) FROM conversations"""


def snapshot(home: Warehouse) -> Any:
    return home.query(SNAPSHOT)[0]


def test_readers_see_whole_snapshots_only(home: Warehouse) -> None:
    publish(home.root, 0, 3)
    code = (
        "import sys; from support.stages import publish\n"
        "for n in range(1, 6): publish(sys.argv[1], n, n % 4 + 1)"
    )
    seen = []
    with start_python(code, home.root) as writer:
        while writer.poll() is None:
            # Both doors: the library's reader, and the catalog as any DuckDB client opens it.
            seen.append(snapshot(home))
            with duckdb.connect(str(home.catalog), read_only=True) as client:
                seen.append(client.execute(SNAPSHOT).fetchone())
            time.sleep(0.15)
    assert writer.returncode == 0
    seen.append(snapshot(home))
    for number, rows, found, low, high, runs in seen:
        assert (low, high, found, runs) == (number, number, rows, number + 1)
        assert rows == (number % 4 + 1 if number else 3)
    numbers = [row[0] for row in seen]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 5
    assert len(set(numbers)) > 2


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
    "before the run folder is named": "stage_module.move_into_place = kill",
    "between the run folder and the catalog": "Warehouse.write_catalog = kill",
    "before the catalog is replaced": "files_module.sync_path = lambda path: 'catalog' in path.name and kill()",
}


KILLED = """
import os, pandas, pyarrow.compute, signal, sys  # which DuckDB imports, else in each child
import ssrem.tasks.stage.stage as stage_module, ssrem.tasks.warehouse.files as files_module
from support.stages import publish
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse

def kill(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

for root, point in zip(sys.argv[1::2], sys.argv[2::2]):
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    else:
        exec(point)
        publish(root, 2)
        os._exit(0)
"""
IN_A_NEW_HOME = ("while building", "before the catalog is replaced")
CASES = [*itertools.product(KILLS, (False,)), *itertools.product(IN_A_NEW_HOME, (True,))]
Home = tuple[Warehouse, object]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Home]:
    """Where a run was killed, and whether it was the first of its home folder → that folder, and what it held before.

    One process forks one that is killed for each, as most of the time of a start goes into imports."""
    homes: dict[tuple[str, bool], Home] = {}
    for point, first in CASES:
        home = Warehouse.at(tmp_path_factory.mktemp("killed") / "home")
        if not first:
            publish(home.root, 1)
        homes[point, first] = home, (snapshot(home), home.partitions())
    given = [(home.root, KILLS[point]) for (point, _), (home, _) in homes.items()]
    done = run_python(KILLED, *itertools.chain(*given))
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(homes), done.stderr
    return homes


@pytest.mark.xdist_group("killed")
@pytest.mark.parametrize(("point", "first"), CASES)
def test_a_killed_run_leaves_the_old_snapshot(
    killed: dict[tuple[str, bool], Home], point: str, first: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    home, before = killed[point, first]
    earlier = home.partitions()
    assert (snapshot(home), earlier) == before
    assert any("was interrupted" in line for line in health(home))
    capsys.readouterr()
    publish(home.root, 3)
    (message,) = capsys.readouterr().err.splitlines()
    assert "ingest" in message and "interrupted" in message
    assert snapshot(home)[0] == 3
    assert health(home) == []
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    assert not list(home.root.glob(".catalog*"))
    named = {part.folder for part in [*earlier, *home.partitions()]}
    assert {folder.name for folder in home.lake.glob("run=*")} <= named


def test_a_run_that_was_killed_after_it_published_is_cleaned_up_by_one_with_nothing_to_do(
    home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = publish(home.root, 1)
    left = home.staging / run_id
    left.mkdir()
    (left / "run.json").write_text(
        json.dumps({"stage": "ingest", "started": "a moment ago", "pid": 2**22 + 1})
    )
    done = run_stage(
        home, "ingest", lambda: Recipe({"number": 1}, {"in": "h"}), pytest.fail, done="done before"
    )
    assert done == "done before"
    assert not left.exists()
    assert "it had published and was cleaned up" in capsys.readouterr().err
    assert snapshot(home)[0] == 1


def test_a_run_that_fails_leaves_nothing_behind(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(home.root, 1)
    before = home.partitions()

    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("ssrem.tasks.warehouse.files.sync_path", fail)
    with pytest.raises(RuntimeError):
        publish(home.root, 2)
    monkeypatch.undo()
    assert home.partitions() == before
    assert {part.folder for part in before} == {f.name for f in home.lake.glob("run=*")}
    assert not list(home.staging.iterdir())
    assert not list(home.lake.glob(".*"))
    capsys.readouterr()
    publish(home.root, 3)
    assert capsys.readouterr().err == ""


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


def test_a_full_disk_is_one_line_and_harmless(home: Warehouse) -> None:
    publish(home.root, 1)
    before = snapshot(home), home.partitions()
    # Where a file may grow no further, a write fails as on a full disk.
    code = """
        import resource, sys
        from ssrem.errors import HomeError
        from support.stages import publish
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        for room in (40_000, 300_000, 1_000_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
            try:
                publish(sys.argv[1], 2, rows=20_000, size=40)
            except HomeError as error:
                print(error)
        """
    full = run_python(code, home.root)
    assert full.returncode == 0, full.stderr
    said = full.stdout.splitlines()
    assert len(said) == 3
    for line in said:
        assert line.startswith(f"no room left on the disk of {home.root}; nothing was published")
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
    for number in range(3):
        publish(home.root, number, 1)
    ids = home.query("SELECT run_id FROM runs ORDER BY started")
    assert len(ids) == 3 and ids == sorted(ids)


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
