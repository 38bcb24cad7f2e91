"""`ssrem report` as a user meets it: the page in a browser, figures for papers."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ssrem.tasks.report
from ssrem.cli import read as reporting
from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse
from support.progress_lines import other_lines


def test_it_opens_the_page_and_writes_figures_and_tables(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing: dict[str, Any] = {"points": [], "identification": [], "learning_curves": []}  # to be quick
    whole = ssrem.tasks.report.report_data
    monkeypatch.setattr(ssrem.tasks.report, "report_data", lambda place: replace(whole(place), **nothing))
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not addresses.append(address))
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
            raise webbrowser.Error("could not locate runnable browser")
        return False

    monkeypatch.setattr(webbrowser, "open", none)
    assert reporting.opened(tmp_path / "report.html") is False
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"ssrem: no browser could be started; open {tmp_path / 'report.html'} ")
    assert said.err.count("\n") == 1
