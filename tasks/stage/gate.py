"""Gates: the staged DuckDB tables are checked by their contracts and the SQL checks.

Every rule is a query for the rows that break it. In a flow run Great Expectations evaluates the queries; elsewhere
DuckDB alone does, since a command would spend most of its time on importing the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.schemas import TABLES
from ssrem.sql import checks, shared
from ssrem.tasks.stage.rules import Rule, not_checked, rules, shortened
from ssrem.tasks.stage.steps import in_flow_run

if TYPE_CHECKING:
    import duckdb

SHOWN_ROWS = 3
"""Rows that a message shows of those that break a rule."""

RESPONSES_AT_ONCE = 6_000_000
"""Most response ids whose candidates are joined at once, by which the space that a check takes is bounded."""

SAVED_ROWS = 1000
"""Most rows that are saved of those that break a rule."""


@dataclass(frozen=True)
class Result:
    """Outcome of a rule: the row of `check_results`, and the rule."""

    row: dict[str, Any]
    rule: Rule

    def save_rows(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        """Write the rows that broke the rule, at most SAVED_ROWS, as CSV."""
        target = str(path).replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM ({self.rule.offending}) LIMIT {SAVED_ROWS}) TO '{target}' (HEADER)"
        )


def check_tables(
    connection: duckdb.DuckDBPyConnection, stage: str, run_id: str, tables: Sequence[str]
) -> list[Result]:
    """Check the staged `tables` and run the SQL checks of `stage`; one Result a rule, in order of tables.

    Raises GateError where a rule cannot be evaluated at all.
    """
    wanted = [rule for name in tables for rule in rules(TABLES[name])]
    wanted += [Rule(c.table, f"no row of {c.name}: {c.why}", c.query) for c in checks(stage)]
    order = list(dict.fromkeys(rule.table for rule in wanted))
    wanted.sort(key=lambda rule: order.index(rule.table))
    create_shared(connection, stage)
    if in_flow_run():
        from ssrem.tasks.stage import expectations  # takes seconds to import

        broken = expectations.broken_rows(connection, wanted)
    else:
        broken = broken_rows(connection, wanted)
    sizes = {}
    for table in order:
        ((sizes[table],),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return [
        Result(
            {
                "run_id": run_id,
                "stage": stage,
                "table_name": rule.table,
                "expectation": rule.says,
                "passed": rows == 0,
                "rows_checked": sizes[rule.table],
                "unexpected": rows,
            },
            rule,
        )
        for rule, rows in zip(wanted, broken, strict=True)
    ]


def create_shared(connection: duckdb.DuckDBPyConnection, stage: str) -> None:
    """Create the tables that several SQL checks of the stage read, for RESPONSES_AT_ONCE response ids at a time.

    Raises GateError where one cannot be created.
    """
    import duckdb

    for query in shared(stage):
        ((lowest, highest),) = connection.execute(
            "SELECT coalesce(min(response_id), 0), coalesce(max(response_id), 0) FROM responses"
        ).fetchall()
        into = f"CREATE OR REPLACE TABLE main.{query.name} AS"
        for first in range(lowest, highest + 1, RESPONSES_AT_ONCE):
            part = {"first": first, "last": first + RESPONSES_AT_ONCE - 1}
            try:
                connection.execute(f"{into} {query.text}", part)
            except duckdb.Error as error:
                raise not_checked(query.name, error) from error
            into = f"INSERT INTO main.{query.name}"


def broken_rows(connection: duckdb.DuckDBPyConnection, wanted: Sequence[Rule]) -> list[int]:
    """How many rows break each rule. Raises GateError where a rule cannot be evaluated.

    The rules of a table that only filter its rows go into one statement, as most of the time of small tables is that of
    planning. Each of the others, which may take much memory, has its own.
    """
    import duckdb

    together: dict[object, list[int]] = {}
    for number, rule in enumerate(wanted):
        together.setdefault(rule.table if rule.of_rows else number, []).append(number)
    counts: dict[int, int] = {}
    for numbers in together.values():
        query = " UNION ALL ".join(f"SELECT {n}, count(*) FROM ({wanted[n].offending})" for n in numbers)
        try:
            counts.update(connection.execute(query).fetchall())
        except duckdb.Error as error:
            raise not_checked(wanted[numbers[0]].table, error) from error
    return [counts[number] for number in range(len(wanted))]


def offending_rows(connection: duckdb.DuckDBPyConnection, result: Result) -> str:
    """The first rows that broke a rule, on one line."""
    cursor = connection.execute(f"SELECT * FROM ({result.rule.offending}) LIMIT {SHOWN_ROWS}")
    names = [d[0] for d in cursor.description or []]
    rows = [
        ", ".join(f"{n}={shortened(v)}" for n, v in zip(names, row, strict=True)) for row in cursor.fetchall()
    ]
    return "; ".join(f"({row})" for row in rows)
