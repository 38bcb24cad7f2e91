"""The prompt of `ssrem sql`, in a real terminal; and its parts."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from flows.cli.shell.completion import completions
from flows.cli.shell.history import KEPT, History, place
from flows.cli.shell.statements import Statements, on_one_line
from support.small_home import Made
from support.terminal import Terminal

WATCHED = (
    "import sys\nfrom flows.cli.main import main\nfrom tasks.query import sandbox as query\nanswered = query._answer\n"
    "def watched(*given):\n    print('asked', flush=True)\n    return answered(*given)\n"
    "query._answer = watched\nsys.exit(main(sys.argv[1:]))"
)
ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range + b.range) = 1;\n"
READY = r"\nssrem> $"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def opened(made: Made, state: Path) -> Iterator[Callable[..., Terminal]]:
    """`ssrem sql` in a terminal, at its first prompt."""

    def start(*command: str) -> Terminal:
        said = [sys.executable, *(command or ("-m", "flows.cli")), "sql", "--home", str(made.home.root)]
        terminal = Terminal(said, XDG_STATE_HOME=str(state))
        started.append(terminal)
        terminal.until(READY)
        return terminal

    started: list[Terminal] = []
    assert made.said.returncode == 0, made.said.stderr
    yield start
    for terminal in started:
        terminal.end()


def test_a_session(opened: Callable[..., Terminal], state: Path, made: Made) -> None:
    terminal = opened()

    terminal.type("SELECT corpus, ';' AS mark -- not yet;\n")
    terminal.until(r"\n  \.\.\.> $")
    terminal.type("FROM corpora; SELECT 40 + 2 AS answer;\n")
    assert "tiny    ;" in terminal.until(r"42\s+ssrem> $")

    terminal.type("SELECT nope FROM scores;\n")  # an error is a line, and the prompt goes on
    assert terminal.until(READY).count("\n") == 2
    terminal.type("DROP VIEW scores;\n")
    terminal.until("ssrem: ssrem sql takes one SELECT")
    terminal.until(READY)

    # Tab: a table, a column of what an alias stands for, a command and its table.
    terminal.type("SELECT count(*) AS n FROM identi\t;\n")
    assert "FROM identification;" in terminal.until(r"\n12\s+ssrem> $")
    terminal.type("SELECT DISTINCT i.evaluator FROM identification AS i WHERE i.gt_\t > 2;\n")
    assert "i.gt_above > 2;" in terminal.until(r"no rows \(evaluator\)\nssrem> $")
    terminal.type(".sch\t learning_c\t\n")
    assert "mean loss a response" in terminal.until(READY)
    terminal.type("\\d\n")
    assert " a turn: neighbouring messages" in terminal.until(READY)
    terminal.type(".questions 14\n")
    assert "Who rates strictly?" in terminal.until(r"4 rows.*\n(.|\n)*\nssrem> $")
    terminal.type(".nope\n")
    terminal.until(r"ssrem: no command \.nope; \.help lists them\nssrem> $")

    terminal.type("SELECT forgotten,\n")  # Ctrl-C drops what is typed
    terminal.until(r"\.\.\.> $")
    terminal.type("and more")
    terminal.until("and more$")
    terminal.interrupt(READY)
    terminal.type("SELECT 7 AS fresh;\n")
    terminal.until(r"\n\s+7\n\nssrem> $")

    terminal.send(b"SELECT '\xff' AS broken;\n")
    terminal.until(r"\n\?\s+ssrem> $")
    terminal.type("SELECT range FROM range(1000);\n")
    terminal.until(r"the first 200 of 1,000 rows.*\n\nssrem> $")
    terminal.type("\x04")
    assert terminal.close() == (0, "\n")

    kept = state / "ssrem" / "sql_history"
    lines = kept.read_text().splitlines()
    assert lines[:3] == [
        "SELECT corpus, ';' AS mark FROM corpora;",
        "SELECT 40 + 2 AS answer;",
        "SELECT nope FROM scores;",
    ]
    assert not any("forgotten" in line for line in lines)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not list(made.home.root.rglob("*history*"))

    again = opened()
    again.type("\x10\x10\x10\n")  # up, three times
    assert "\nfresh\n" in again.until(r"\n\s+7\n\nssrem> $")
    again.type(".quit\n")
    assert again.close()[0] == 0


def test_ctrl_c_stops_the_query_and_not_the_prompt(opened: Callable[..., Terminal]) -> None:
    terminal = opened("-c", WATCHED)
    for pressed in ("\x03", "\x03\x03\x03"):
        terminal.type(ENDLESS)
        terminal.until("asked\n")
        terminal.type(pressed)
        terminal.until(r"\^C\n(.|\n)*ssrem> $")
        terminal.type("SELECT 40 + 2 AS answer;\n")
        terminal.until(r"\n\s+42\n\nssrem> $")
    terminal.type("\x04")
    assert terminal.close()[0] == 0


def test_a_home_without_tables_opens_no_prompt(tmp_path: Path) -> None:
    code, said = Terminal(
        [sys.executable, "-m", "flows.cli", "sql", "--home", str(tmp_path / "none")]
    ).close()
    assert code == 1
    assert said.startswith("ssrem: nothing is published in") and said.count("\n") == 1


# Its parts


def test_a_semicolon_ends_a_statement_unless_it_is_quoted() -> None:
    statements = Statements()
    assert statements.take("SELECT ';', \"a;\" -- ;") == []
    assert statements.take("/* ; */ FROM x; SELECT $$;") == ["SELECT ';', \"a;\" -- ;\n/* ; */ FROM x"]
    assert statements.take("$$, 'ä€';;  ; -- done") == ["SELECT $$;\n$$, 'ä€'"]
    assert statements.pending == ""
    assert statements.take("SELECT 1") == [] and statements.rest() == "SELECT 1" and statements.pending == ""


@given(some.text(alphabet="ab'\"$;-/*\n \\é😀\0\ud800", max_size=20))
def test_whatever_is_typed_is_kept_or_cut(text: str) -> None:
    statements = Statements()
    taken = statements.take(text)
    assert all(one.strip() for one in taken)
    on_one_line(text)
    assert statements.take("") == []


def test_a_statement_on_one_line_means_the_same() -> None:
    said = "SELECT a, -- no; \n  b/* */c\n\nFROM  \"two  blanks\" WHERE x = 'line\n break'"
    assert on_one_line(said) == "SELECT a, b c FROM \"two  blanks\" WHERE x = 'line\n break'"


@pytest.mark.parametrize(
    ("before", "word", "after", "offered"),
    [
        ("", "sel", "", ["select"]),
        ("", "SEL", "", ["SELECT"]),
        ("SELECT * FROM ", "ev", "", ["evaluators"]),
        ("SELECT * FROM turns LEFT JOIN\n", "ev", "", ["evaluators"]),
        ("SELECT ", "s.k", " FROM scores AS s", ["s.kind", "s.k"]),
        ("SELECT ", "c.k", " FROM scores s, candidates c", ["c.kind", "c.k"]),
        ("SELECT ", "scores.f_", "", ["scores.f_unit"]),
        ("SELECT ", "x.f", "", []),
        ("SELECT * FROM candidates WHERE ", "k", "", ["kind", "k"]),
        ("WITH best AS (SELECT 1) SELECT * FROM ", "be", "", ["best"]),
    ],
)
def test_tab_offers(before: str, word: str, after: str, offered: list[str]) -> None:
    assert completions(before, word, after) == offered


def test_without_a_table_the_columns_of_all_are_offered() -> None:
    offered = completions("SELECT ", "g")
    assert {"gt_above", "ground_truth", "g_unit", "group"} <= set(offered)
    assert len(offered) == len(set(offered))


def test_history_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sql_history"
    history = History(path)
    assert history.load() == []
    assert history.add("SELECT 1;") == "SELECT 1;"
    assert history.add("SELECT  1;") is None
    assert history.add("SELECT 'a\nb';") == "SELECT 'a\nb';"
    assert path.read_text() == "SELECT 1;\n"
    path.write_text("".join(f"SELECT {n};\n" for n in range(2 * KEPT + 1)))
    assert History(path).load()[-1] == f"SELECT {2 * KEPT};"
    assert len(path.read_text().splitlines()) == KEPT
    assert [p.name for p in path.parent.iterdir()] == ["sql_history"]


def test_history_lies_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert place() == tmp_path / ".local" / "state" / "ssrem" / "sql_history"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert place() == tmp_path / "state" / "ssrem" / "sql_history"
