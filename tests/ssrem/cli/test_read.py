"""Reading and keeping a home folder: `report`, `home prune`, folders of killed commands."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from unittest.mock import Mock

import pytest

from ssrem.cli import read
from ssrem.cli.main import main
from ssrem.files import temporary_folder
from ssrem.tasks.warehouse.home import VARIABLE, Warehouse
from support.progress_lines import other_lines
from support.small_home import draw_little
from support.stages import publish

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_it_opens_the_page_and_writes_figures_and_tables(
    copy: Warehouse, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    draw_little(monkeypatch)
    opened = Mock(return_value=True)
    monkeypatch.setattr(webbrowser, "open", opened)
    figures, page = tmp_path / "figures", copy.reports / "report.html"
    page.unlink()
    assert main(["report", "--home", str(copy.root), "--figures", str(figures), "--open"]) == 0
    said = capsys.readouterr()
    assert (said.out, other_lines(said.err)) == (f"{page}\nfigures and tables: {figures}\n", [])
    opened.assert_called_once_with(page.as_uri())
    assert page.exists()
    pictures = sorted(path.stem for path in figures.glob("*.png"))
    assert pictures == ["agreement-people-overall", "similarity-tiny", "study-behaviour-everyday-pairs"]
    assert "people, overall" in (figures / "table-agreement.tex").read_text(encoding="utf-8")


@pytest.mark.parametrize("fails", [False, True])
def test_without_a_browser_it_says_where_the_page_is(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path, fails: bool
) -> None:
    page = tmp_path / "report.html"
    none = Mock(return_value=False, side_effect=webbrowser.Error("no runnable browser") if fails else None)
    monkeypatch.setattr(webbrowser, "open", none)
    assert read.opened(page) is False
    none.assert_called_once_with(page.as_uri())
    said = capsys.readouterr()
    assert said.err.startswith(f"ssrem: no browser could be started; open {page} ")
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.fixture
def published(home: Warehouse) -> Warehouse:
    """A home folder with rows of two tables."""
    publish(home.root, 7)
    return home


def test_wait_is_how_long_the_lock_is_waited_for(
    published: Warehouse, capsys: Capture, monkeypatch: Patch
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
    published: Warehouse, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "ssrem-killed").mkdir()
    (tmp_path / "ssrem-killed" / ".lock").touch()
    (tmp_path / "ssrem-somebody").mkdir()
    os.mkfifo(tmp_path / "ssrem-somebody" / ".lock")
    with temporary_folder() as living:
        assert main(["status", "--home", str(published.root)]) == 0
        assert sorted(tmp_path.glob("ssrem-*")) == sorted([living, tmp_path / "ssrem-somebody"])
