"""Read-only questions to the published snapshot."""

from __future__ import annotations

from typing import Any

import duckdb

from ssrem.errors import SsremError
from tasks.home import Home


def ask(home: Home, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Answer one SELECT over the published tables: column names and rows.

    The query sees the tables and nothing else: it cannot write, read other files, load extensions or change settings.
    Raises SsremError, in one line, for anything that is not a single valid SELECT.
    """
    with home.reader() as connection:
        paths = ", ".join("'" + str(home.root / p.path).replace("'", "''") + "'" for p in home.parts())
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            statements = connection.extract_statements(query)
            # EXPLAIN ANALYZE and MULTI would run whatever they wrap, so only plain queries pass.
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise SsremError("ssrem sql takes one SELECT; it cannot write, and changes no setting")
            cursor = connection.execute(statements[0])
            return [d[0] for d in cursor.description or []], cursor.fetchall()
        except duckdb.Error as error:
            raise SsremError(f"SQL: {' '.join(str(error).split())}") from None
