"""Back up while others publish, restore elsewhere, and find everything as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tarfile
from pathlib import Path

import duckdb
import pytest

from ssrem.errors import HomeError
from ssrem.evaluators import load_evaluator
from ssrem.tasks.maintenance import backup
from ssrem.tasks.maintenance.backup import back_up, restore
from ssrem.tasks.stage.ledger import Recipe, already_done
from ssrem.tasks.warehouse.garbage import prune_runs
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import publish as publish_at
from support.stages import run_python, start_python

LOOP = """
import sys
from support.stages import publish
from ssrem.tasks.warehouse import garbage
garbage.prune_runs.__defaults__ = (0, 1.0)  # a folder goes a second after its snapshot
number = 1
print("going", flush=True)
while True:
    publish(sys.argv[1], number, rows=1000)
    number += 1
"""
SEEN = "SELECT (SELECT bytes FROM corpora), min(conversation_no), max(conversation_no), count(*) FROM conversations"


def publish(home: Warehouse, number: int) -> None:
    publish_at(home.root, number, corpora=True)


def test_a_backup_is_a_whole_snapshot_while_another_process_publishes(
    home: Warehouse, tmp_path: Path
) -> None:
    with start_python(LOOP, home.root) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        while not home.catalog.exists():
            assert writer.poll() is None
        numbers = []
        for turn, name in enumerate(["saved.tar", "saved.tar.gz", "saved"]):
            saved = tmp_path / "backups" / name
            back_up(home, saved)
            restored = Warehouse.at(tmp_path / f"restored{turn}")
            restore(restored, saved)
            with restored.reader() as reader:
                numbers.append(reader.execute(SEEN).fetchone())
            with duckdb.connect(str(restored.catalog), read_only=True) as client:
                assert client.execute(SEEN).fetchone() == numbers[-1], "its views look into the new place"
        assert writer.poll() is None
        writer.kill()
    for seen in numbers:
        assert seen is not None
        assert seen[0] == seen[1] == seen[2]
        assert seen[3] == 1000
    assert numbers == sorted(numbers)
    assert not list(home.root.glob("catalog.?*.duckdb")), "nothing is kept for a backup that has ended"


def test_answers_that_were_paid_for_are_backed_up(home: Warehouse, tmp_path: Path) -> None:
    publish(home, 0)
    home.judgments.mkdir()
    (home.judgments / "0.jsonl").write_text('{"key": "a", "texts": []}\n')
    back_up(home, tmp_path / "saved.tar")
    restored = Warehouse.at(tmp_path / "there")
    restore(restored, tmp_path / "saved.tar")
    assert (restored.judgments / "0.jsonl").read_text() == (home.judgments / "0.jsonl").read_text()


def test_what_a_backup_has_yet_to_copy_is_not_collected(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, 0)
    files = backup._files

    def slow(place: Warehouse, pin: Path):  # type: ignore[no-untyped-def]
        copied = files(place, pin)
        yield next(copied)
        for number in range(1, 4):
            publish(home, number)
            prune_runs(home, keep_runs=0, keep_seconds=0)
        yield from copied

    monkeypatch.setattr(backup, "_files", slow)
    back_up(home, tmp_path / "saved.tar")
    restored = Warehouse.at(tmp_path / "there")
    restore(restored, tmp_path / "saved.tar")
    with restored.reader() as reader:
        assert reader.execute("SELECT bytes FROM corpora").fetchone() == (0,)
    prune_runs(home, keep_runs=0, keep_seconds=0)
    assert {f.name for f in home.lake.glob("run=*")} == {p.folder for p in home.partitions()}


def test_a_backup_that_was_killed_keeps_nothing_for_ever(home: Warehouse, tmp_path: Path) -> None:
    publish(home, 0)
    code = """
import os, signal, sys
from pathlib import Path
from ssrem.tasks.maintenance import backup
from ssrem.tasks.warehouse.home import Warehouse
backup._files = lambda home, pin: os.kill(os.getpid(), signal.SIGKILL)
backup.back_up(Warehouse.at(sys.argv[1]), Path(sys.argv[2]))
"""
    killed = run_python(code, home.root, tmp_path / "saved")
    assert killed.returncode == -signal.SIGKILL
    assert len(list(home.root.glob("catalog.backup-*.duckdb"))) == 1
    assert not (tmp_path / "saved").exists()
    publish(home, 1)
    assert not list(home.root.glob("catalog.backup-*"))


@pytest.mark.parametrize("target", ["saved", "saved.tar"])
def test_a_backup_that_was_killed_leaves_nothing_beside_its_target(
    home: Warehouse, tmp_path: Path, target: str
) -> None:
    publish(home, 0)
    code = """
import os, signal, sys
from pathlib import Path
from ssrem.tasks.maintenance import backup
from ssrem.tasks.warehouse.home import Warehouse
backup.sync_path = lambda path: os.kill(os.getpid(), signal.SIGKILL)
backup.back_up(Warehouse.at(sys.argv[1]), Path(sys.argv[2]))
"""
    folder = tmp_path / "backups"
    assert run_python(code, home.root, folder / target).returncode == -signal.SIGKILL
    assert list(folder.iterdir())
    publish(home, 1)
    assert list(folder.iterdir()) == [] and not list(home.root.glob("catalog.backup-*"))


@pytest.mark.parametrize("moment", ["rename", "write_manifest", "draft_catalog", "drop_manifests"])
def test_a_restore_that_was_killed_is_repeated(home: Warehouse, tmp_path: Path, moment: str) -> None:
    publish(home, 0)
    back_up(home, tmp_path / "saved.tar")
    code = """
import os, signal, sys
from pathlib import Path
from ssrem.tasks.maintenance.backup import restore
from ssrem.tasks.warehouse import home
moment = sys.argv[3]
where = Path if moment == "rename" else home
work = getattr(where, moment)
def killed(*arguments, **named):
    work(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(where, moment, killed)
restore(home.Warehouse.at(sys.argv[1]), Path(sys.argv[2]))
"""
    target = Warehouse.at(tmp_path / "restored")
    assert run_python(code, target.root, tmp_path / "saved.tar", moment).returncode == -signal.SIGKILL
    restore(target, tmp_path / "saved.tar")
    assert target.partitions() == home.partitions() and target.damage(deep=True) == []
    assert not {".restoring", ".restore.tmp"} & {path.name for path in target.root.iterdir()}
    with pytest.raises(HomeError, match="is not empty"):
        restore(target, tmp_path / "saved.tar")


def test_a_restore_deletes_nothing_of_another(home: Warehouse, tmp_path: Path) -> None:
    publish(home, 0)
    back_up(home, tmp_path / "saved.tar")
    (tmp_path / "project" / "models").mkdir(parents=True)
    (tmp_path / "project" / "models" / "own").write_text("mine")
    with pytest.raises(HomeError, match=r"is not empty \(models …\)"):
        restore(Warehouse.at(tmp_path / "project"), tmp_path / "saved.tar")
    assert (tmp_path / "project" / "models" / "own").read_text() == "mine"


def test_the_small_home_comes_back_whole(copy: Warehouse, tmp_path: Path) -> None:
    saved = back_up(copy, tmp_path / "saved.tar.gz")
    assert saved.files > len(copy.partitions())
    restored = Warehouse.at(tmp_path / "elsewhere" / "home")
    restore(restored, saved.path)
    shutil.rmtree(copy.root)
    assert restored.partitions()
    with restored.reader() as reader, duckdb.connect(str(restored.catalog), read_only=True) as client:
        for table in ("scores", "utterances", "runs", "candidates"):
            query = f"SELECT count(*), count(DISTINCT COLUMNS(*)) FROM {table}"
            assert reader.execute(query).fetchall() == client.execute(query).fetchall()
        runs = reader.execute("SELECT stage, parameters, inputs FROM runs").fetchall()
        models = reader.execute("SELECT evaluator, version FROM evaluators").fetchall()
    assert all(
        already_done(restored, stage, Recipe(json.loads(parameters), json.loads(inputs)))
        for stage, parameters, inputs in runs
    )
    for name, version in models:
        load_evaluator(restored.models / name / str(version))
    assert (restored.reports / "report.html").exists()
    assert not (restored.root / "vectors").exists()


def test_a_home_that_was_moved_answers_every_client_again(home: Warehouse) -> None:
    publish(home, 7)
    moved = Warehouse.at(home.root.with_name("moved"))
    home.root.rename(moved.root)
    with moved.reader() as reader:
        assert reader.execute("SELECT bytes FROM corpora").fetchone() == (7,)
    restore(moved, moved.root)
    with duckdb.connect(str(moved.catalog), read_only=True) as client:
        assert client.execute("SELECT bytes FROM corpora").fetchone() == (7,)


def test_a_backup_of_another_layout_is_refused(home: Warehouse, tmp_path: Path) -> None:
    publish(home, 0)
    saved = back_up(home, tmp_path / "saved").path
    with duckdb.connect(str(saved / "catalog.duckdb")) as connection:
        connection.execute("UPDATE ssrem.home SET layout = '0-older'")
    restored = Warehouse.at(tmp_path / "there")
    with pytest.raises(
        HomeError, match=r"saved was written by another version .*layout 0-older.* --home"
    ) as error:
        restore(restored, saved)
    assert len(str(error.value).splitlines()) == 1
    assert {p.name for p in restored.root.iterdir()} <= {".lock"}


def test_what_cannot_be_backed_up(home: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="nothing is published"):
        back_up(home, tmp_path / "saved")
    publish(home, 0)
    (tmp_path / "taken").mkdir()
    with pytest.raises(HomeError, match="taken exists"):
        back_up(home, tmp_path / "taken")
    (home.root / home.partitions()[0].path).unlink()
    with pytest.raises(HomeError, match=r"conversations.parquet is missing.*ssrem status"):
        back_up(home, tmp_path / "saved.tar")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "taken"]
    assert not list(home.root.glob("catalog.*.duckdb"))


def _cut(saved: Path) -> None:
    os.truncate(saved, saved.stat().st_size // 2)


def _without_a_part(saved: Path) -> None:
    with tarfile.open(saved) as old:
        members = [(m, old.extractfile(m)) for m in old.getmembers()]
        with tarfile.open(f"{saved}.new", "w") as new:
            for member, content in members:
                if "corpora" not in member.name:
                    new.addfile(member, content)
    Path(f"{saved}.new").replace(saved)


def _of_something_else(saved: Path) -> None:
    with tarfile.open(saved, "w") as archive:
        archive.add(__file__, "a.py")


def _escaping(saved: Path) -> None:
    with tarfile.open(saved, "a") as archive:
        archive.add(__file__, "../escaped.py")


def _no_archive(saved: Path) -> None:
    saved.write_text("nothing")


@pytest.mark.parametrize("damage", [_cut, _without_a_part, _of_something_else, _escaping, _no_archive])
def test_a_damaged_backup_restores_nothing(home: Warehouse, tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    publish(home, 0)
    saved = back_up(home, tmp_path / "saved.tar").path
    damage(saved)
    restored = Warehouse.at(tmp_path / "there")
    with pytest.raises(HomeError, match=r"saved\.tar is (damaged|no backup)") as error:
        restore(restored, saved)
    assert len(str(error.value).splitlines()) == 1
    assert {p.name for p in restored.root.iterdir()} <= {".lock"}
    assert not list(tmp_path.rglob("escaped.py"))
    back_up(home, tmp_path / "again.tar")
    restore(restored, tmp_path / "again.tar")


def test_a_home_in_use_is_not_overwritten(home: Warehouse, tmp_path: Path) -> None:
    publish(home, 0)
    saved = back_up(home, tmp_path / "saved.tar").path
    publish(home, 1)
    with pytest.raises(HomeError, match="is not empty"):
        restore(home, saved)
    with home.reader() as reader:
        assert reader.execute("SELECT bytes FROM corpora").fetchone() == (1,)
    with pytest.raises(HomeError, match="does not exist"):
        restore(home, tmp_path / "nowhere")
