"""The SQL of ssrem: statements that make the table of their name, one a file, and the macros that they use; checks that
return the rows that must not exist; queries of the published tables: questions, summaries for the terminal, rows of the
report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile


@cache
def statement(name: str) -> str:
    """Text of the statement `FOLDER/TABLE`, such as `2_speaker_tables/turns`, with the comments that give its grain."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Query:
    """The query of a file: `title` is the first line of the comment above it, `notes` are the lines below."""

    name: str
    title: str
    notes: str
    text: str


@dataclass(frozen=True)
class Check:
    """A named assertion: `query` returns the rows of `table` that violate it; `why` is its leading comment."""

    name: str
    table: str
    why: str
    query: str


@cache
def queries(folder: str) -> dict[str, Query]:
    """The queries of `questions`, `summaries` or `report` by name, in order of the files."""
    return {query.name: query for query in _read(folder)}


ALSO = {"forget": ("ingest",)}
"""Stage → other stages whose checks its tables must pass, too."""


def checks(stage: str) -> list[Check]:
    """The checks of a stage, by name. The first line of each file names the table: `-- table: NAME`."""
    return [
        Check(query.name, query.title.removeprefix("table:").strip(), query.notes, query.text)
        for checked in (*ALSO.get(stage, ()), stage)
        for query in _read(f"checks/{checked}")
    ]


def shared(stage: str) -> list[Query]:
    """The queries of the tables that several checks of a stage read, such as what one pass over a large table finds."""
    return [query for checked in (*ALSO.get(stage, ()), stage) for query in _read(f"checks/{checked}/shared")]


def _read(folder: str) -> Iterator[Query]:
    """The queries of a folder, in order of the files; none if there is no such folder."""
    path = files(__name__).joinpath(folder)
    entries = path.iterdir() if path.is_dir() else ()
    for entry in sorted((e for e in entries if e.name.endswith(".sql")), key=lambda e: e.name):
        lines = entry.read_text(encoding="utf-8").splitlines()
        head = list(takewhile(lambda line: line.startswith("--"), lines))
        title, *notes = [line.removeprefix("--").strip() for line in head]
        text = "\n".join(lines[len(head) :]).strip()
        yield Query(entry.name.removesuffix(".sql"), title, " ".join(notes), text)
