"""Answers of `ssrem sql` as CSV."""

from __future__ import annotations

import csv
import io
import json
import signal
from pathlib import Path

import pytest

from ssrem.cli.main import main
from ssrem.errors import SsremError
from ssrem.tasks.query import ask, print_csv
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import run_python

ALL_KINDS = """
    SELECT 1 AS a, 2 AS a, NULL AS nothing, [1.5, NULL, 'nan'::DOUBLE] AS list,
        {'x': 'ä', 'd': DATE '2020-01-02'} AS pair,
        'a,"b"' || chr(10) AS text, 'x'::BLOB AS bytes, TIMESTAMP '2020-01-02 03:04:05' AS time,
        1.50::DECIMAL(4, 2) AS money
"""


def csv_of(home: Warehouse, query: str) -> list[list[str]]:
    out = io.StringIO()
    print_csv(home, query, out)
    out.seek(0)
    return list(csv.reader(out))


def test_csv_holds_every_kind_of_value(home: Warehouse) -> None:
    head, row = csv_of(home, ALL_KINDS)
    assert head == ["a", "a_1", "nothing", "list", "pair", "text", "bytes", "time", "money"]
    assert row == [
        *("1", "2", "", "[1.5, null, null]", '{"x": "ä", "d": "2020-01-02"}'),
        *('a,"b"\n', "x", "2020-01-02T03:04:05", "1.50"),
    ]


def test_csv_may_be_larger_than_memory(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.tasks.query.ANSWER_BYTES", 1 << 18)
    with pytest.raises(SsremError, match="does not fit into memory"):
        ask(home, "FROM range(20000)")
    assert len(csv_of(home, "FROM range(20000)")) == 20_001


def test_text_that_a_spreadsheet_would_take_for_a_formula(
    home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx"]
    values = ", ".join(f"('{text}')" for text in texts)
    query = f"SELECT text, -1 AS number, {{'x': text}} AS pair FROM (VALUES {values}) AS t (text)"
    for options, sign in (([], "'"), (["--raw"], "")):
        assert main(["sql", query, "--home", str(home.root), "--csv", *options]) == 0
        answer = csv.reader(io.StringIO(capsys.readouterr().out))
        assert list(answer)[1:] == [[sign + text, "-1", json.dumps({"x": text})] for text in texts]


def test_a_terminal_gets_no_control_characters(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sql", "SELECT 'a' || chr(27) || '[2J' AS text", "--home", str(home.root), "--csv"]
    assert main(arguments) == 0
    assert "\x1b" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(arguments) == 0
    assert capsys.readouterr().out == "text\na\\x1b[2J\n"


def test_the_folder_of_a_query_that_was_killed_goes_with_the_next(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, signal, sys
from ssrem.tasks import query
from ssrem.tasks.warehouse.home import Warehouse
query.confined(Warehouse.at(sys.argv[1]), lambda connection: os.kill(os.getpid(), signal.SIGKILL))
"""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_python(code, home.root).returncode == -signal.SIGKILL
    assert [path.name.startswith("ssrem-") for path in tmp_path.iterdir()] == [True]
    ask(home, "SELECT 1")
    assert list(tmp_path.iterdir()) == []
