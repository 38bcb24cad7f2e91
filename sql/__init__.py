"""The SQL of ssrem: one statement a file, named after the table it makes; checks are queries that return failures;
questions are queries that people ask of the published tables."""

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
    """A named assertion: `query` returns the rows of `table` that must not exist; `why` is its leading comment."""

    name: str
    table: str
    why: str
    query: str


@dataclass(frozen=True)
class Question:
    """What people ask of the published tables: `title` is the question, `notes` how to read the answer."""

    name: str
    title: str
    notes: str
    query: str


@cache
def questions() -> tuple[Question, ...]:
    """The questions, in order. The first line of each file is the question, the comments under it are the notes."""
    found = []
    for entry in sorted(files("sql").joinpath("questions").iterdir(), key=lambda e: e.name):
        lines = entry.read_text(encoding="utf-8").splitlines()
        end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
        title, *notes = [line.removeprefix("--").strip() for line in lines[:end]]
        name = entry.name.removesuffix(".sql")
        found.append(Question(name, title, " ".join(notes), "\n".join(lines[end:]).strip()))
    return tuple(found)


ALSO = {"forget": ("ingest",)}
"""Stage to those whose checks its tables have to pass, too."""


def checks(stage: str) -> list[Check]:
    """The checks of a stage, by name. The first line of each file names the table: `-- table: NAME`."""
    found = [check for other in ALSO.get(stage, ()) for check in checks(other)]
    folder = files("sql").joinpath("checks", stage)
    if not folder.is_dir():  # a stage may have none
        return found
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".sql"):
            continue
        lines = entry.read_text(encoding="utf-8").splitlines()
        head = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        body = "\n".join(line for line in lines if not line.startswith("--")).strip()
        table = head[0].removeprefix("table:").strip()
        found.append(Check(entry.name.removesuffix(".sql"), table, " ".join(head[1:]), body))
    return found
