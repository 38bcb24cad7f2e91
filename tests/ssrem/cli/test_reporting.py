"""`ssrem report` as a user meets it: the page in a browser, figures for papers, and two runs compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ssrem.tasks.report.report
from ssrem.cli.commands import report as reporting
from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse
from support.progress_lines import other_lines


def runs(home: Warehouse) -> dict[str, str]:
    """Stage to its latest run."""
    with home.reader() as connection:
        return dict(connection.execute("SELECT stage, run_id FROM runs ORDER BY started").fetchall())


def test_it_opens_the_page_and_writes_figures_and_tables(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing: dict[str, Any] = {"points": [], "identification": [], "learning_curves": []}  # to be quick
    whole = ssrem.tasks.report.report.report_data
    monkeypatch.setattr(
        ssrem.tasks.report.report, "report_data", lambda place: replace(whole(place), **nothing)
    )
    addresses: list[str] = []
    monkeypatch.setattr(reporting.webbrowser, "open", lambda address: not addresses.append(address))
    figures, page = tmp_path / "figures", copy.reports / "report.html"
    page.unlink()
    arguments = ["report", "--home", str(copy.root), "--figures"]
    assert main([*arguments, str(figures), "--open"]) == 0
    said = capsys.readouterr()
    assert (said.out, other_lines(said.err)) == (f"{page}\nfigures and tables: {figures}\n", [])
    assert addresses == [page.as_uri()] and page.exists()
    pictures = sorted(path.name for path in figures.glob("*.png"))
    scored = ["cosine-people", "length-people", "people-people", "rsrem-people", "rsrem-tiny"]
    assert pictures == [
        "agreement-people-overall.png",
        "similarity-tiny.png",
        *(f"sources-{name}.png" for name in [*scored, "ssrem-people", "ssrem-tiny"]),
        "study-behaviour-everyday-pairs.png",
    ]
    assert "people, overall" in (figures / "table-agreement.tex").read_text(encoding="utf-8")
    assert main([*arguments, str(figures / "index.md")]) == 1
    (line,) = other_lines(capsys.readouterr().err)
    assert line.startswith(f"ssrem: cannot write figures into {figures / 'index.md'}: ")
    assert line.endswith("; name another folder")


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


def test_two_runs_are_compared(copy: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    latest = runs(copy)
    pair = [latest["correlate"], latest["score"]]
    arguments = ["report", "--home", str(copy.root), "--json", "--compare"]
    assert main([*arguments, *pair]) == 0
    page = Path(json.loads(capsys.readouterr().out)["comparison"])
    assert page == copy.reports / f"compare-{pair[0]}-{pair[1]}.html"
    text = page.read_text(encoding="utf-8")
    assert "These are runs of different stages, correlate and score" in text
    assert "people, overall" in text
    assert main([*arguments, "x", pair[0]]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ssrem: no run 'x' in {copy.root}; the latest are ")
    assert said.count("\n") == 1 and " (correlate)" in said
