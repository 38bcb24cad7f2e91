"""Read-only questions to the published snapshot."""

from __future__ import annotations

import re
from typing import Any

import duckdb

from ssrem.errors import HomeError, SsremError
from tasks.home import Home
from tasks.integrity import blamed


def ask(home: Home, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Answer one SELECT over the published tables: column names, each of its own, and rows.

    The query sees the tables and nothing else: it cannot write, read other files, load extensions or change settings.
    Raises HomeError where nothing is published, SsremError, in one line, for anything but a single valid SELECT.
    """
    snapshot, _ = home.readable()
    if not snapshot.number and not snapshot.parts:
        raise HomeError(
            f"nothing is published in {home.root}; run ssrem run first, or name another folder with --home"
        )
    with home.reader(snapshot=snapshot) as connection:
        paths = ", ".join("'" + str(home.root / p.path).replace("'", "''") + "'" for p in snapshot.parts)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET python_enable_replacements = false")  # names are tables, not our variables
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            statements = connection.extract_statements(query)
            # EXPLAIN ANALYZE and MULTI would run whatever they wrap, so only plain queries pass.
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise SsremError("ssrem sql takes one SELECT; it cannot write, and changes no setting")
            cursor = connection.execute(statements[0])
            return _distinct([d[0] for d in cursor.description or []]), cursor.fetchall()
        except duckdb.Error as error:
            if damaged := blamed(home.root, snapshot.parts, error):
                raise damaged from None
            raise SsremError(f"SQL: {_one_line(error)}") from None


def _distinct(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        taken, number = name, 1
        while taken in found:
            taken, number = f"{name}_{number}", number + 1
        found.append(taken)
    return found


def _one_line(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the query and the caret under it."""
    message = re.split(r"\n+LINE \d+:", str(error))[0]
    return " ".join(message.split())
