"""What commands say and leave behind: errors of one line, an unharmed home folder, tables and JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.cli import output
from ssrem.cli.main import main
from ssrem.cli.options import Call
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.progress_lines import other_lines
from support.small_home import Made

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

Say = Callable[..., str]


@pytest.fixture
def says(capsys: Capture) -> Say:
    """Run a command that must fail; returns its one line, without the name of the program."""

    def run(*arguments: str | Path, status: int = 1) -> str:
        assert main([str(a) for a in arguments]) == status
        captured = capsys.readouterr()
        lines = other_lines(captured.err)
        assert len(lines) == 1, captured.err
        assert lines[0].startswith("ssrem: ")
        return lines[0].removeprefix("ssrem: ")

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file of a name and a content."""

    def write(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def whole(made: Made) -> Iterator[Warehouse]:
    """The small home, which the test only reads and must leave as it is: other workers look at it too."""
    home, before = made.home, made.home.catalog.read_bytes()
    assert home.partitions()
    yield home
    assert home.catalog.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["tables", "--corpus", "tinny"], "'tinny' has landed in {home} (landed: tiny); did you mean tiny?"),
        (["study", "length", "--of", "peple"], "people); did you mean people?"),
        (["correlate", "{annotated}", "--layout", "evl"], "there is no layout 'evl'; did you mean eval?"),
    ],
)
def test_a_wrong_name_names_the_nearest(made: Made, says: Say, arguments: list[str], meant: str) -> None:
    values = {"home": made.home.root, "annotated": made.annotated}
    written = [argument.format(**values) for argument in arguments]
    assert meant.format(**values) in says(*written, "--home", made.home.root)


def test_only_figures_of_evaluators_are_followed_by_who_is_no_better_than_chance(
    whole: Warehouse, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("ssrem.tasks.query.no_better", lambda *_: ["ssrem is no better than chance."])
    for summary, said in (("speaker_sets", False), ("identification", True), ("agreement", True)):
        output.outcome(Call(home_=whole.root), [summary], {})
        assert ("no better than chance" in capsys.readouterr().out) == said


LINE = '{"conversation_id": "c", "speaker": "a", "text": "hi"}\n'


def test_files_of_two_formats_are_no_corpus(whole: Warehouse, says: Say, file: Any) -> None:
    both = file("d.jsonl", LINE), file("other.csv", "conversation,speaker,text\nc,a,x\n")
    assert "the files of a corpus are of one format" in says("run", *both, "--home", whole.root)


def test_people_need_a_key_and_a_name(whole: Warehouse, says: Say, file: Any, monkeypatch: Patch) -> None:
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY", raising=False)
    key, home = ("--pseudonym-key", file("weak.key", "weak")), ("--home", whole.root)
    for verb in ("ingest", "run"):
        land = (verb, file("one.jsonl", LINE))
        assert "SSREM_PSEUDONYM_KEY" in says(*land, "--pseudonymise", *home)
        assert "--pseudonymise" in says(*land, *key, *home)
    weak = says(*land, "--pseudonymise", *key, *home)
    assert "4 bytes" in weak and "weak" not in weak
    assert "'p99' in tiny" in says("forget", "p99", *home)
    assert "'huge'" in says("forget", "p3", "--corpus", "huge", *home)


def test_several_sources_and_what_is_piped_in_land(
    tmp_path: Path, file: Any, capsys: Capture, monkeypatch: Patch
) -> None:
    home = str(tmp_path / "home")
    content = "conversation,speaker,text,time\nc,a,caf\xe9,02.05.2018 19:38\nc,b,hi,soon\n".encode("cp1252")
    pipe = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", pipe)
    piped = ["ingest", "-", "--name", "piped", "--encoding", "cp1252", "--home", home]
    assert main(piped) == 0
    said = capsys.readouterr()
    assert "1 value is no time and became null, such as 'soon' (stdin line 3)" in said.err
    files = [str(file(name, LINE.replace("hi", name))) for name in ("one.jsonl", "two.jsonl")]
    assert main(["ingest", *files, "--name", "both", "--home", home, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["utterances"] == 2
    rows = Warehouse.at(home).query(
        "SELECT text, CAST(time AS VARCHAR) FROM utterances WHERE corpus = 'piped' ORDER BY ALL"
    )
    assert rows == [("café", "2018-05-02 19:38:00"), ("hi", None)]


def test_a_wrong_setting(whole: Warehouse, says: Say) -> None:
    said = says("train", "--set", f"seed={10**400}", "--home", whole.root)
    assert "seed: input should be less than or equal to 2147483647, not 1000" in said


def test_nothing_before_training(tmp_path: Path, says: Say, made: Made) -> None:
    fresh = tmp_path / "fresh"
    named = (made.annotated, "--evaluator", "rsrem")
    for command, way_out in (
        (("correlate", *named), "ssrem train rsrem"),
        (("score", *named), "ssrem train rsrem"),
        (("train",), "ssrem ingest"),
        (("tables",), "ssrem ingest"),
        (("sql", "SELECT 1"), "ssrem run"),
        (("report",), f"{fresh} is empty; fill it with ssrem run, "),
    ):
        assert way_out in says(*command, "--home", fresh)
    assert not fresh.exists()


def test_sql_error_is_short(whole: Warehouse, says: Say) -> None:
    said = says("sql", "SELECT *\nFROM scors", "--home", whole.root)
    assert "scors" in said and "scores" in said and "LINE" not in said


def test_sql_shows_what_people_wrote_as_it_is(whole: Warehouse, capsys: Capture) -> None:
    text = "'[bold]:smile:' || chr(27) || chr(10) AS text"
    query = f"SELECT {text}, 1234567 AS id, 1e-5 AS p, 2 AS p, NULL AS none"
    assert main(["sql", query, "--home", str(whole.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 row"
    assert lines[1].split() == ["text", "id", "p", "p_1", "none"]
    assert lines[3].split() == ["[bold]:smile:\\x1b\\n", "1234567", "1e-05", "2", "–"]


@pytest.mark.parametrize(("streams", "shown"), [(">&-", False), ("<&- 2>&-", True)])
def test_streams_that_are_closed_or_do_not_have_a_letter(whole: Warehouse, streams: str, shown: bool) -> None:
    """As where a daemon starts the command, or a locale has ASCII alone."""
    line = f"{sys.executable} -m ssrem sql \"SELECT 'D\u00e9' AS name\" --home {whole.root} {streams}"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "D\\xe9" in done.stdout if shown else done.stdout == ""


def test_json_is_json_whatever_the_value(whole: Warehouse, capsys: Capture) -> None:
    query = (
        "SELECT 'NaN'::DOUBLE AS a, 1.5::DECIMAL(4, 1) AS b, TIMESTAMP '2020-01-02 03:04:05' AS c, "
        "'\\xFFx'::BLOB AS d, [1, 2] AS e, {'f': 1} AS g, DATE '2020-01-02' AS h, INTERVAL 1 DAY AS i"
    )
    assert main(["sql", query, "--json", "--home", str(whole.root)]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    plain = {"a": None, "b": 1.5, "c": "2020-01-02T03:04:05", "d": "\\xffx", "e": [1, 2], "g": {"f": 1}}
    assert row == plain | {"h": "2020-01-02", "i": "1 day, 0:00:00"}


def test_no_rows(whole: Warehouse, capsys: Capture) -> None:
    query = ["sql", "SELECT corpus FROM corpora WHERE false", "--home", str(whole.root)]
    assert main(query) == 0
    assert capsys.readouterr().out == "no rows (corpus)\n"
    assert main([*query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_score_prints_a_row_a_response(whole: Warehouse, made: Made, capsys: Capture, tmp_path: Path) -> None:
    arguments = ["score", str(made.annotated), "--evaluator", "ssrem", "--home", str(whole.root)]
    assert main(arguments) == 0
    head, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert head == ["row", "score", "f", "g", "h"]
    assert [int(row[0]) for row in rows] == list(range(1, 31))
    assert main([*arguments, "--json", "--output", str(tmp_path / "out.jsonl")]) == 0
    assert capsys.readouterr().out == ""
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [f"{row['h']:.6f}" for row in answers] == [row[4] for row in rows]
    stored = whole.query(
        "SELECT s.h, e.signature FROM scores AS s INNER JOIN evaluators AS e USING (evaluator, version) "
        "WHERE s.evaluator = 'ssrem' AND s.kind = 'response' ORDER BY s.response_id::BIGINT"
    )
    assert [row["h"] for row in answers] == pytest.approx([h for h, _ in stored])
    assert {row["signature"] for row in answers} == {stored[0][1]}
