"""`ssrem sql` without a query on a terminal: DuckDB's shell on the catalog."""

from __future__ import annotations

import sys

import pytest

from ssrem.cli import read
from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made
from support.terminal import Terminal


def test_the_shell_reads_the_tables_and_cannot_write(made: Made) -> None:
    terminal = Terminal([sys.executable, "-m", "ssrem.cli", "sql", "--home", str(made.home.root)])
    try:
        terminal.until("catalog.* D ")  # what is typed before the prompt is lost
        terminal.type("SELECT corpus || ' landed' AS answer FROM corpora;\n")
        terminal.until("tiny landed")
        terminal.type("CREATE TABLE t AS SELECT 1;\n")
        terminal.until("read-only")
        terminal.type(".quit\n")
        terminal.close()
    finally:
        terminal.end()


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)


@pytest.mark.usefixtures("on_a_terminal")
def test_what_the_shell_needs(
    home: Warehouse, made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "--home", str(home.root)]) == 1
    assert "nothing is published" in capsys.readouterr().err
    assert main(["sql", "--csv", "-", "--home", str(made.home.root)]) == 1
    assert "need a query" in capsys.readouterr().err
    monkeypatch.setattr(read, "find_spec", lambda package: None)
    assert main(["sql", "--home", str(made.home.root)]) == 1
    line = capsys.readouterr().err
    assert (
        line.startswith("ssrem: DuckDB's shell is not installed; pip install duckdb-cli")
        and line.count("\n") == 1
    )
