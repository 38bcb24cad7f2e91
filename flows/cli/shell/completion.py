"""What Tab offers at the prompt of `ssrem sql`: tables, their columns, SQL's words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas import TABLES

KEYWORDS = (
    "ALL", "AND", "ANTI", "AS", "ASC", "ASOF", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DESC",
    "DESCRIBE", "DISTINCT", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FILTER", "FIRST", "FROM", "FULL",
    "GROUP", "HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "INTERVAL", "IS", "JOIN", "LAST", "LEFT",
    "LIKE", "LIMIT", "NOT", "NULL", "NULLS", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION",
    "PIVOT", "QUALIFY", "RANGE", "RECURSIVE", "RIGHT", "ROWS", "SELECT", "SEMI", "SHOW", "SUMMARIZE",
    "TABLES", "THEN", "TRUE", "UNION", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
)  # fmt: skip
"""Words of queries; those that only statements that write have are of no use here."""

FIRST_WORDS = ("DESCRIBE", "FROM", "PIVOT", "SELECT", "SHOW", "SUMMARIZE", "UNPIVOT", "VALUES", "WITH")

_NAMED = re.compile(r"\b(?:from|join|,)\s+\"?(\w+)\"?(?:\s+(?:as\s+)?\"?(\w+)\"?)?", re.IGNORECASE)
_WITH = re.compile(r"(\w+)\s+AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(", re.IGNORECASE)
_TABLE_NEXT = re.compile(r"\b(?:from|join|describe|summarize)\s+$", re.IGNORECASE)


def completions(before: str, word: str, after: str = "") -> list[str]:
    """What `word`, typed after `before`, may become; `after` is the rest of the statement, where it stands already.

    After FROM and JOIN a table, after `alias.` a column of it, elsewhere a column of the tables that are named (of any,
    where none is), a table or a word of SQL, which comes in the case of what is typed.
    """
    statement = f"{before}{word}{after}"
    if "." in word:
        alias, _, start = word.rpartition(".")
        table = _aliases(statement).get(alias.lower(), alias.lower())
        columns = TABLES[table].column_names if table in TABLES else ()
        return [f"{alias}.{column}" for column in _starting(start, columns)]
    keywords = KEYWORDS if before.strip() else FIRST_WORDS
    words = [w.lower() for w in keywords] if word.islower() else keywords
    if not before.strip():
        return _starting(word, words)
    tables = [*TABLES, *dict.fromkeys(_WITH.findall(statement))]
    if _TABLE_NEXT.search(before):
        return _starting(word, tables)
    named = [table for table in _aliases(statement).values() if table in TABLES]
    columns = tuple(dict.fromkeys(c for table in named or TABLES for c in TABLES[table].column_names))
    return list(dict.fromkeys(_starting(word, [*columns, *tables, *words])))


def _aliases(statement: str) -> dict[str, str]:
    """Alias, or the table's own name, to table, of what FROM and JOIN name."""
    found = {}
    for table, alias in _NAMED.findall(statement):
        known = table.lower()
        found[known] = known
        if alias and alias.upper() not in KEYWORDS:
            found[alias.lower()] = known
    return found


def _starting(start: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.lower().startswith(start.lower())]
