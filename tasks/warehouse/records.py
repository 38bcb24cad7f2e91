"""Answers of queries as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb


def records(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> list[dict[str, Any]]:
    """The answer to `query`, a mapping of column to value for each row."""
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
