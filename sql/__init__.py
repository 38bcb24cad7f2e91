"""The SQL of ssrem, one statement a file: statements that make the table of their name, checks that return the rows
that must not exist, and queries of the published tables: questions, summaries for the terminal, rows of the report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@cache
def statement(name: str) -> str:
    """Text of the statement `FOLDER/TABLE`, such as `2_speaker_tables/turns`, with the comments that give its grain."""
    return files("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Check:
    """A named assertion: `query` returns the rows of `table` that violate it; `why` is its leading comment."""

    name: str
    table: str
    why: str
    query: str


@dataclass(frozen=True)
class Query:
    """A titled question: `title` is what it answers, `notes` say how to read the answer."""

    name: str
    title: str
    notes: str
    text: str


@cache
def queries(folder: str) -> dict[str, Query]:
    """The queries of `questions`, `summaries` or `report` by name, in order of the files.

    The first line of each file is the title, the comments below it are the notes.
    """
    by_name = {}
    for entry in sorted(files("sql").joinpath(folder).iterdir(), key=lambda e: e.name):
        lines = entry.read_text(encoding="utf-8").splitlines()
        end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
        title, *notes = [line.removeprefix("--").strip() for line in lines[:end]]
        name = entry.name.removesuffix(".sql")
        by_name[name] = Query(name, title, " ".join(notes), "\n".join(lines[end:]).strip())
    return by_name


ALSO = {"forget": ("ingest",)}
"""Stage → other stages whose checks its tables must pass, too."""


def checks(stage: str) -> list[Check]:
    """The checks of a stage, by name. The first line of each file names the table: `-- table: NAME`."""
    stage_checks = [check for other in ALSO.get(stage, ()) for check in checks(other)]
    folder = files("sql").joinpath("checks", stage)
    if not folder.is_dir():  # a stage may have none
        return stage_checks
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".sql"):
            continue
        lines = entry.read_text(encoding="utf-8").splitlines()
        head = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        body = "\n".join(line for line in lines if not line.startswith("--")).strip()
        table = head[0].removeprefix("table:").strip()
        stage_checks.append(Check(entry.name.removesuffix(".sql"), table, " ".join(head[1:]), body))
    return stage_checks
