"""Answers of `ssrem sql` as files: written atomically, and as confined as other answers."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from ssrem.cli.main import main
from ssrem.errors import SsremError
from ssrem.tasks.ingest import land
from ssrem.tasks.query import ask, print_csv, save_csv, save_parquet
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import run_python

ALL_KINDS = """
    SELECT 1 AS a, 2 AS a, NULL AS nothing, [1.5, NULL] AS list, {'x': 'ä', 'd': DATE '2020-01-02'} AS pair,
        'a,"b"' || chr(10) AS text, 'x'::BLOB AS bytes, TIMESTAMP '2020-01-02 03:04:05' AS time,
        1.50::DECIMAL(4, 2) AS money
"""
Save = Callable[[Warehouse, str, Path], int]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "dump.jsonl").write_text(
        '{"conversation_id": "c", "speaker": "p", "text": "hi"}\n'
        '{"conversation_id": "c", "speaker": "q", "text": "ho"}\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "gate", lambda stage: stage.create("check_results"))
        land(str(folder / "dump.jsonl"), str(folder / "home"), DumpSettings(name="c", speakers="person"))
    return Warehouse.at(folder / "home")


def test_csv_holds_every_kind_of_value(home: Warehouse, tmp_path: Path) -> None:
    assert save_csv(home, ALL_KINDS, tmp_path / "out.csv") == 1
    with (tmp_path / "out.csv").open(newline="") as file:
        head, row = csv.reader(file)
    assert head == ["a", "a_1", "nothing", "list", "pair", "text", "bytes", "time", "money"]
    assert row == [
        *("1", "2", "", "[1.5, null]", '{"x": "ä", "d": "2020-01-02"}'),
        *('a,"b"\n', "x", "2020-01-02T03:04:05", "1.50"),
    ]
    out = io.StringIO()
    assert print_csv(home, "FROM utterances", out) == 2
    assert out.getvalue().count("\n") == 3


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_text_that_a_spreadsheet_would_take_for_a_formula(
    home: Warehouse,
    tmp_path: Path,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = f"SELECT '{text}' AS text, -1 AS number, {{'x': '{text}'}} AS pair"
    save_csv(home, query, tmp_path / "out.csv")
    arguments = ["sql", query, "--home", str(home.root), "--csv"]
    assert main([*arguments, str(tmp_path / "raw.csv"), "--raw"]) == 0
    rows = {}
    for name in ("out", "raw"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            rows[name] = list(csv.reader(file))[1]
    pair = json.dumps({"x": text})
    assert rows == {"out": [f"'{text}", "-1", pair], "raw": [text, "-1", pair]}


def test_a_terminal_gets_no_control_characters(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sql", "SELECT 'a' || chr(27) || '[2J' AS text", "--home", str(home.root), "--csv", "-"]
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


def test_parquet_keeps_types_and_names(home: Warehouse, tmp_path: Path) -> None:
    assert save_parquet(home, ALL_KINDS, tmp_path / "out.parquet") == 1
    with duckdb.connect(":memory:") as connection:
        kinds = connection.execute(f"DESCRIBE FROM '{tmp_path / 'out.parquet'}'").fetchall()
        assert connection.execute(
            f"SELECT a_1, list, money::VARCHAR FROM '{tmp_path / 'out.parquet'}'"
        ).fetchall() == [(2, [1.5, None], "1.50")]
    assert {"DECIMAL(4,2)", "TIMESTAMP", "BLOB"} <= {kind[1] for kind in kinds}
    assert save_parquet(home, "FROM corpora WHERE false", tmp_path / "none.parquet") == 0
    with pytest.raises(SsremError, match=r"Parquet cannot hold the answer: .*cast that column"):
        save_parquet(home, "SELECT INTERVAL 1 DAY", tmp_path / "none.parquet")


@pytest.mark.parametrize("save", [save_csv, save_parquet])
def test_a_file_is_written_whole_or_not_at_all(
    home: Warehouse, tmp_path: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("before")
    bad = "SELECT CASE WHEN range = 250000 THEN 'x' ELSE '1' END::INT FROM range(300000)"
    for query, message in (
        ("SELECT nope", "SQL: Binder Error"),
        (bad, "SQL: Conversion Error"),
        ("COPY (SELECT 1) TO 'x'", "one SELECT"),
        ("FROM read_text('/etc/hostname')", "SQL: Permission Error"),
    ):
        with pytest.raises(SsremError, match=message) as error:
            save(home, query, tmp_path / "out")
        assert str(error.value).isprintable()
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out", "before")]
    with pytest.raises(SsremError, match=r"cannot write .*No such file"):
        save(home, "SELECT 1", tmp_path / "no" / "out")
    monkeypatch.setattr("ssrem.tasks.query.ANSWER_BYTES", 1 << 20)  # files may be larger than memory
    assert save(home, "FROM range(300000)", tmp_path / "out") == 300_000


def pipe(home: Warehouse, monkeypatch: pytest.MonkeyPatch, text: str, *options: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return main(["sql", *options, "--home", str(home.root)])


def test_queries_are_read_from_a_pipe(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert pipe(home, monkeypatch, "-- one\nSELECT\n  text FROM utterances;\n\nSELECT 40 + 2 AS answer") == 0
    output = capsys.readouterr().out
    assert "ho" in output and output.rstrip().endswith("42")
    assert pipe(home, monkeypatch, "SELECT 1 AS a;\n\n\nSELECT\n nope;\nSELECT 2 AS b;\n") == 1
    captured = capsys.readouterr()
    assert "1 row\n" in captured.out and "b\n" not in captured.out  # not what comes after the one that fails
    assert captured.err.startswith("ssrem: SQL: Binder Error") and captured.err.endswith(
        "(query 2 of standard input, from line 4)\n"
    )
    assert pipe(home, monkeypatch, " -- nothing\n;") == 1
    assert "holds no query" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT '\xff'"), encoding="utf-8"))
    assert main(["sql", "--home", str(home.root)]) == 1
    assert capsys.readouterr().err == "ssrem: standard input is no utf-8 text; convert it first\n"


def test_forms_of_an_answer(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "out.csv")
    assert pipe(home, monkeypatch, "SELECT speaker FROM utterances ORDER BY ALL;", "--csv", path) == 0
    assert capsys.readouterr().err == f"2 rows in {path}\n"
    assert Path(path).read_text() == "speaker\np\nq\n"
    assert pipe(home, monkeypatch, "", "SELECT 1 AS a", "--csv", "-") == 0
    assert capsys.readouterr().out == "a\n1\n"
    assert pipe(home, monkeypatch, "SELECT 1; SELECT 2", "--parquet", path) == 1
    assert "take the answer of one query" in capsys.readouterr().err
    assert pipe(home, monkeypatch, "", "SELECT 1", "--json", "--csv", path) == 2
    assert "one form" in capsys.readouterr().err
