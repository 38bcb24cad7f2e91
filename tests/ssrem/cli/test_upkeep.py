"""What an operator types to keep a home folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssrem.cli.main import main
from ssrem.files import temporary_folder
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.home import VARIABLE, Warehouse
from support.stages import CORPUS, staging


@pytest.fixture
def published(home: Warehouse) -> Warehouse:
    """A home folder with a row of a table."""
    with staging(home, "ingest") as stage:
        stage.create("corpora")
        stage.connection.execute("INSERT INTO corpora BY NAME SELECT 'a' AS corpus, 7 AS bytes")
        stage.publish([Output("corpora", CORPUS)])
    return home


def test_wait_is_how_long_the_lock_is_waited_for(
    published: Warehouse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    root = str(published.root)
    with published.lock("train"):
        assert main(["home", "prune", "--home", root]) == 1
        assert "waiting" not in capsys.readouterr().err
        assert main(["home", "prune", "--home", root, "--wait", "0.3"]) == 1
        assert main(["sql", "SELECT 1", "--home", root]) == 0  # readers go on
    first, second = capsys.readouterr().err.splitlines()
    assert "waiting for process" in first and "(train since" in first
    assert "still in use by process" in second and "after 0.3 s" in second
    assert main(["home", "prune", "--home", root]) == 0


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
