"""`ssrem report` as a user meets it: the page in a browser, figures for papers, and two runs compared."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from small_home import command

from flows import reporting, settings
from flows.cli import main
from tasks.home import Home

pytestmark = pytest.mark.xdist_group("prefect")


@pytest.fixture
def started(prefect_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows run against the test's own server."""
    monkeypatch.setattr(settings, "prepare", lambda *_: None)


def runs(home: Home) -> dict[str, str]:
    """Stage to its latest run."""
    with home.reader() as connection:
        return dict(connection.execute("SELECT stage, run_id FROM runs ORDER BY started").fetchall())


def test_it_opens_the_page_and_writes_figures(copy: Home, tmp_path: Path) -> None:
    told, figures = tmp_path / "told", tmp_path / "figures"
    code = f"import sys; open({str(told)!r}, 'w').write(sys.argv[1])"
    browser = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} %s"
    arguments = ["report", "--home", str(copy.root), "--open", "--figures", str(figures)]
    done = command(*arguments, BROWSER=browser)
    page = copy.reports / "report.html"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{page}\nfigures and tables: {figures}\n"
    assert told.read_text() == page.as_uri()
    assert len(list(figures.glob("*.png"))) == len(list(figures.glob("*.svg"))) >= 6
    assert "people, overall" in (figures / "table-agreement.tex").read_text(encoding="utf-8")


@pytest.mark.parametrize("fails", [False, True])
def test_without_a_browser_it_says_where_the_page_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, fails: bool
) -> None:
    def none(address: str) -> bool:
        assert address == (tmp_path / "report.html").as_uri()
        if fails:
            raise reporting.webbrowser.Error("could not locate runnable browser")
        return False

    monkeypatch.setattr(reporting.webbrowser, "open", none)
    assert reporting.opened(tmp_path / "report.html") is False
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"no browser could be started; open {tmp_path / 'report.html'} ")
    assert said.err.count("\n") == 1


@pytest.mark.prefect
@pytest.mark.usefixtures("started")
def test_two_runs_are_compared(copy: Home, capsys: pytest.CaptureFixture[str]) -> None:
    latest = runs(copy)
    pair = [latest["agree"], latest["score"]]
    arguments = ["report", "--home", str(copy.root), "--json", "--compare"]
    assert main([*arguments, *pair]) == 0
    page = Path(json.loads(capsys.readouterr().out)["comparison"])
    assert page == copy.reports / f"compare-{pair[0]}-{pair[1]}.html"
    text = page.read_text(encoding="utf-8")
    assert "These are runs of different stages, agree and score" in text
    assert "people, overall" in text
    assert main([*arguments, "x", pair[0]]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ssrem: no run 'x' in {copy.root}; the latest are ")
    assert said.count("\n") == 1 and " (measure)" in said
