"""Gates: Great Expectations on the staged DuckDB tables, from the contracts and the SQL checks."""

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
from schemas.contract import Between, Finite, NotEmpty, OneOf, References, Table, WithinBounds
from sql import checks
from ssrem.errors import GateError

if TYPE_CHECKING:
    import duckdb

SHOWN_ROWS = 3
SAVED_ROWS = 1000


def warm_up() -> threading.Thread:
    """Import Great Expectations beside the work that its gate will check: it takes seconds, and mostly one core."""

    def load() -> None:
        with contextlib.suppress(ImportError):  # the gate itself will say so
            import duckdb_engine  # noqa: F401
            import great_expectations.expectations  # noqa: F401

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True)
class Rule:
    """One expectation: what it says, how Great Expectations checks it, and the SQL that finds what breaks it."""

    table: str
    says: str
    kind: str
    arguments: dict[str, Any]
    offending: str


@dataclass(frozen=True)
class Result:
    """Outcome of a rule: a row of `quality_results`, and the rule it is of."""

    row: dict[str, Any]
    rule: Rule

    def save_rows(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        """Write the rows that broke the rule, at most SAVED_ROWS, as CSV."""
        target = str(path).replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM ({self.rule.offending}) LIMIT {SAVED_ROWS}) TO '{target}' (HEADER)"
        )


def rules(table: Table) -> Iterator[Rule]:
    """The rules that a contract implies: keys, nulls and its expectations."""
    name = table.name
    key = ", ".join(table.key)
    # As a query: the library's own expectation for several columns takes thrice the time on millions of rows.
    repeated = f"SELECT {key}, count(*) AS times FROM {name} GROUP BY {key} HAVING count(*) > 1"
    yield _by_query(name, f"({key}) to be unique", repeated)
    for column in table.required:
        yield Rule(
            name,
            f"{column} not to be null",
            "ExpectColumnValuesToNotBeNull",
            {"column": column},
            f'SELECT * FROM {name} WHERE "{column}" IS NULL',
        )
    for expectation in table.expectations:
        match expectation:
            case Between(column, low, high):
                bounds = (
                    f"{'' if low is None else f'at least {low}'}{' and ' if None not in (low, high) else ''}"
                )
                bounds += "" if high is None else f"at most {high}"
                outside = " OR ".join(
                    [f'"{column}" < {low}'] * (low is not None)
                    + [f'"{column}" > {high}'] * (high is not None)
                )
                yield Rule(
                    name,
                    f"{column} to be {bounds}",
                    "ExpectColumnValuesToBeBetween",
                    {"column": column, "min_value": low, "max_value": high},
                    f"SELECT * FROM {name} WHERE {outside}",
                )
            case OneOf(column, values):
                listed = ", ".join(f"'{v}'" for v in values)
                yield Rule(
                    name,
                    f"{column} to be one of {', '.join(values)}",
                    "ExpectColumnValuesToBeInSet",
                    {"column": column, "value_set": list(values)},
                    f'SELECT * FROM {name} WHERE "{column}" NOT IN ({listed})',
                )
            case NotEmpty():
                yield _by_query(
                    name, "at least one row", f"SELECT 'empty' AS {name} WHERE NOT EXISTS (FROM {name})"
                )
            case References(columns, target):
                says = f"({', '.join(columns)}) to be found in {target}"
                yield _by_query(name, says, expectation.query(name))
            case WithinBounds(columns, target):
                says = f"({', '.join(columns)}) to be in the range of {target}"
                yield _by_query(name, says, expectation.query(name))
            case Finite(columns):
                yield _by_query(name, f"({', '.join(columns)}) to be finite", expectation.query(name))


def _by_query(table: str, says: str, query: str) -> Rule:
    # Great Expectations warns of a query without its batch; ours look at several tables, so a comment names it.
    arguments = {"unexpected_rows_query": f"{query}\n/* of {{batch}} */", "description": says}
    return Rule(table, says, "ExpectQueryToReturnNoRows", arguments, query)


def check_tables(
    connection: duckdb.DuckDBPyConnection, stage: str, run_id: str, tables: Sequence[str]
) -> list[Result]:
    """Check the staged `tables` and run the SQL checks of `stage`; one Result a rule, in order of tables.

    Raises GateError where a rule cannot be evaluated at all.
    """
    wanted = [rule for name in tables for rule in rules(TABLES[name])]
    wanted += [_by_query(c.table, f"no row of {c.name}: {c.why}", c.query) for c in checks(stage)]
    by_table: dict[str, list[Rule]] = {}
    for rule in wanted:
        by_table.setdefault(rule.table, []).append(rule)
    results = []
    with _great_expectations(connection) as validate:
        for table, table_rules in by_table.items():
            for rule, (passed, checked, unexpected) in zip(
                table_rules, validate(table, table_rules), strict=True
            ):
                row = {
                    "run_id": run_id,
                    "stage": stage,
                    "table_name": table,
                    "expectation": rule.says,
                    "passed": passed,
                    "rows_checked": checked,
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

    def validate(table: str, table_rules: list[Rule]) -> list[tuple[bool, int | None, int]]:
        asset = source.add_table_asset(table, table_name=table)
        batch = asset.add_batch_definition_whole_table("all").get_batch()
        expectations = [_expectation(rule) for rule in table_rules]
        for number, expectation in enumerate(expectations):
            expectation.meta = {"rule": number}
        suite = context.suites.add(gx.ExpectationSuite(name=table, expectations=expectations))
        outcomes = {}
        for result in batch.validate(suite, result_format="BASIC").results:
            if any(e.get("exception_message") for e in _exceptions(result.exception_info)):
                message = next(e["exception_message"] for e in _exceptions(result.exception_info))
                raise GateError(
                    f"the gate could not check table {table}: {_short(message)}; nothing was published"
                )
            found = result.result
            unexpected = found.get("unexpected_count", found.get("observed_value", 0))
            config: Any = result.expectation_config
            outcomes[config.meta["rule"]] = (
                bool(result.success),
                found.get("element_count"),
                int(unexpected or 0),
            )
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


def _expectation(rule: Rule) -> Any:
    import great_expectations.expectations as library

    from tasks import expectations as own

    return (getattr(own, rule.kind, None) or getattr(library, rule.kind))(**rule.arguments)


def _exceptions(info: Any) -> list[dict[str, Any]]:
    if not info:
        return []
    return [info] if "exception_message" in info else list(info.values())
