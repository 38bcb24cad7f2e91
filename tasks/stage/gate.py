"""Gates: Great Expectations checks the staged DuckDB tables by their contracts and the SQL checks.

Every rule is a query for the rows that break it, evaluated by one custom expectation: the library's expectations for
columns take three times as long, as they resolve a dozen metrics each, and the same query shows the rows.
"""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas import TABLES
from schemas.contract import Table
from sql import checks
from ssrem.errors import GateError

if TYPE_CHECKING:
    import duckdb

SHOWN_ROWS = 3
"""Rows that a message shows of those that break a rule."""

SAVED_ROWS = 1000
"""Most rows that are saved of those that break a rule."""


def warm_up() -> threading.Thread:
    """Import Great Expectations in a thread, beside the work that its gate will check: it takes seconds."""

    def load() -> None:
        with contextlib.suppress(ImportError):  # the gate itself will say so
            import duckdb_engine  # noqa: F401
            import great_expectations.expectations  # noqa: F401

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True)
class Rule:
    """One expectation: its table, what it says, and the query for the rows that break it."""

    table: str
    says: str
    offending: str


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


def rules(table: Table) -> Iterator[Rule]:
    """The rules that a contract implies: its key, its columns that may not be null, and its expectations."""
    name, key = table.name, ", ".join(table.key)
    repeated = f"SELECT {key}, count(*) AS times FROM {name} GROUP BY {key} HAVING count(*) > 1"
    yield Rule(name, f"({key}) to be unique", repeated)
    for column in table.required:
        yield Rule(name, f"{column} not to be null", f'SELECT * FROM {name} WHERE "{column}" IS NULL')
    for expectation in table.expectations:
        yield Rule(name, expectation.says, expectation.query(name))


def check_tables(
    connection: duckdb.DuckDBPyConnection, stage: str, run_id: str, tables: Sequence[str]
) -> list[Result]:
    """Check the staged `tables` and run the SQL checks of `stage`; one Result a rule, in order of tables.

    Raises GateError where a rule cannot be evaluated at all.
    """
    wanted = [rule for name in tables for rule in rules(TABLES[name])]
    wanted += [Rule(c.table, f"no row of {c.name}: {c.why}", c.query) for c in checks(stage)]
    by_table: dict[str, list[Rule]] = {}
    for rule in wanted:
        by_table.setdefault(rule.table, []).append(rule)
    results = []
    with _great_expectations(connection) as validate:
        for table, table_rules in by_table.items():
            (counted,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
            for rule, unexpected in zip(table_rules, validate(table, table_rules), strict=True):
                row = {
                    "run_id": run_id,
                    "stage": stage,
                    "table_name": table,
                    "expectation": rule.says,
                    "passed": unexpected == 0,
                    "rows_checked": counted[0],
                    "unexpected": unexpected,
                }
                results.append(Result(row, rule))
    return results


def offending_rows(connection: duckdb.DuckDBPyConnection, result: Result) -> str:
    """The first rows that broke a rule, on one line."""
    cursor = connection.execute(f"SELECT * FROM ({result.rule.offending}) LIMIT {SHOWN_ROWS}")
    names = [d[0] for d in cursor.description or []]
    rows = [
        ", ".join(f"{n}={_short(v)}" for n, v in zip(names, row, strict=True)) for row in cursor.fetchall()
    ]
    return "; ".join(f"({row})" for row in rows)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


@contextlib.contextmanager
def _great_expectations(connection: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    """Great Expectations over the open DuckDB connection, pushed down to SQL; quiet unless it breaks."""
    with contextlib.redirect_stdout(io.StringIO()):
        import duckdb_engine
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig
        from sqlalchemy import event
        from sqlalchemy.engine import Engine
        from sqlalchemy.engine.cursor import FullyBufferedCursorFetchStrategy

        from tasks.stage.expectations import ExpectQueryToReturnNoRows

    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.ERROR)

    def connect() -> Any:
        cursor = connection.cursor()
        cursor.execute("SET search_path = 'main,published'")
        return duckdb_engine.ConnectionWrapper(cursor)

    def fetch_at_once(
        conn: Any, cursor: Any, statement: Any, parameters: Any, context: Any, many: Any
    ) -> None:
        # Great Expectations closes the connection before it fetches, and DuckDB then drops the open result.
        if context.dialect.name == "duckdb":
            context.cursor_fetch_strategy = FullyBufferedCursorFetchStrategy(
                cursor, initial_buffer=cursor.fetchall()
            )

    def validate(table: str, table_rules: list[Rule]) -> list[int]:
        """How many rows break each rule."""
        asset = source.add_table_asset(table, table_name=table)
        batch = asset.add_batch_definition_whole_table("all").get_batch()
        expectations = [
            # Great Expectations warns of a query without its batch; ours look at several tables, so a comment names it.
            ExpectQueryToReturnNoRows(
                unexpected_rows_query=f"{rule.offending}\n/* of {{batch}} */",
                description=rule.says,
                meta={"rule": number},
            )
            for number, rule in enumerate(table_rules)
        ]
        suite = context.suites.add(gx.ExpectationSuite(name=table, expectations=expectations))
        outcomes = {}
        for result in batch.validate(suite, result_format="BASIC").results:
            if any(e.get("exception_message") for e in _exceptions(result.exception_info)):
                message = next(e["exception_message"] for e in _exceptions(result.exception_info))
                raise GateError(
                    f"the gate could not check table {table}: {_short(message)}; nothing was published"
                )
            config: Any = result.expectation_config
            outcomes[config.meta["rule"]] = int(result.result["observed_value"])
        return [outcomes[number] for number in range(len(table_rules))]

    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    event.listen(Engine, "after_cursor_execute", fetch_at_once)
    source = context.data_sources.add_sql(
        name="staged", connection_string="duckdb:///:memory:", kwargs={"creator": connect}
    )
    try:
        yield validate
    finally:
        event.remove(Engine, "after_cursor_execute", fetch_at_once)
        source.get_engine().dispose()


def _exceptions(info: Any) -> list[dict[str, Any]]:
    if not info:
        return []
    return [info] if "exception_message" in info else list(info.values())
