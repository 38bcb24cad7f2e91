"""What an operator types to keep a home folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ssrem.cli.main import main
from ssrem.files import temporary_folder
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.lock import VARIABLE
from support.paths import ROOT
from support.stages import CORPUS, staging


@pytest.fixture
def published(home: Warehouse) -> Warehouse:
    """A home folder with a row of a table."""
    with staging(home, "ingest") as stage:
        stage.create("corpora")
        stage.connection.execute("INSERT INTO corpora BY NAME SELECT 'a' AS corpus, 7 AS bytes")
        stage.publish([Output("corpora", CORPUS)])
    return home


def test_back_up_and_restore(
    published: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, restored = tmp_path / "saved.tar.gz", tmp_path / "restored"
    assert main(["home", "backup", str(saved), "--home", str(published.root), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["path"] == str(saved) and said["files"] > len(published.partitions()) and said["bytes"] > 1000
    shutil.rmtree(published.root)
    assert main(["home", "restore", str(saved), "--home", str(restored)]) == 0
    assert f"restored into {restored}: " in capsys.readouterr().out
    assert main(["sql", "SELECT bytes FROM corpora", "--home", str(restored), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"bytes": 7}]
    assert main(["home", "backup", str(saved), "--home", str(restored)]) == 0, (
        "a file is replaced when the new one is whole"
    )
    assert main(["home", "restore", str(saved), "--home", str(restored)]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_a_home_folder_that_does_not_exist_is_not_repaired(
    published: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["home", "repair", "--home", str(tmp_path / "none")]) == 1
    assert f"{tmp_path / 'none'} does not exist" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert main(["home", "repair", "--home", str(published.root)]) == 0
    assert "is damaged" in capsys.readouterr().out


def test_wait_is_how_long_the_lock_is_waited_for(
    published: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    root = str(published.root)
    with published.lock("train"):
        assert main(["home", "restore", root, "--home", root]) == 1
        assert "waiting" not in capsys.readouterr().err
        assert main(["home", "restore", root, "--home", root, "--wait", "0.3"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "waiting for process" in first and "(train since" in first
    assert "still in use by process" in second and "after 0.3 s" in second
    assert main(["home", "restore", root, "--home", root]) == 0


def test_any_verb_deletes_the_temporary_folders_of_killed_ones(
    published: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "ssrem-killed").mkdir()
    (tmp_path / "ssrem-killed" / ".lock").touch()
    (tmp_path / "ssrem-somebody").mkdir()
    os.mkfifo(tmp_path / "ssrem-somebody" / ".lock")
    with temporary_folder() as living:
        assert main(["status", "--home", str(published.root)]) == 0
        assert sorted(tmp_path.glob("ssrem-*")) == sorted([living, tmp_path / "ssrem-somebody"])


def test_a_verb_of_upkeep_starts_no_prefect(published: Warehouse, tmp_path: Path) -> None:
    code = (
        "import sys; from ssrem.cli.main import main; main(sys.argv[1:]); sys.exit('prefect' in sys.modules)"
    )
    for verb in (["home", "backup", str(tmp_path / "saved")], ["home", "restore", str(published.root)]):
        command = [sys.executable, "-c", code, *verb, "--home", str(published.root)]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
