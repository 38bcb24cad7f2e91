"""Great Expectations over an open DuckDB connection, pushed down to SQL. It takes seconds to import.

Every rule is evaluated by one custom expectation: the library's expectations for columns take three times as long, as
they resolve a dozen metrics each, and the same query shows the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb_engine
import great_expectations as gx
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.cursor import FullyBufferedCursorFetchStrategy

from ssrem.tasks.stage.rules import Rule, not_checked

if TYPE_CHECKING:
    import duckdb

logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.ERROR)


class ExpectQueryToReturnNoRows(UnexpectedRowsExpectation):
    """A query returns no row. The rows are counted only: the library's own expectation runs it again to fetch them."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.row_count",)

    def _validate(self, metrics: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        count = metrics["unexpected_rows_query.row_count"]
        return {"success": count == 0, "result": {"observed_value": count}}


def broken_rows(connection: duckdb.DuckDBPyConnection, wanted: Sequence[Rule]) -> list[int]:
    """How many rows break each rule; the rules of a table stand together.

    Raises GateError where a rule cannot be evaluated.
    """
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    with _source(context, connection) as source:
        return [
            rows
            for table, rules in groupby(wanted, key=lambda rule: rule.table)
            for rows in _validate(context, source, table, list(rules))
        ]


@contextmanager
def _source(context: Any, connection: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    """The open connection as a data source of Great Expectations."""

    def connect() -> Any:
        cursor = connection.cursor()
        cursor.execute("SET search_path = 'main,published'")
        return duckdb_engine.ConnectionWrapper(cursor)

    event.listen(Engine, "after_cursor_execute", _fetch_at_once)
    source = context.data_sources.add_sql(
        name="staged", connection_string="duckdb:///:memory:", kwargs={"creator": connect}
    )
    try:
        yield source
    finally:
        event.remove(Engine, "after_cursor_execute", _fetch_at_once)
        source.get_engine().dispose()


def _fetch_at_once(_: Any, cursor: Any, statement: Any, parameters: Any, context: Any, many: Any) -> None:
    # Great Expectations closes the connection before it fetches, and DuckDB then drops the open result.
    if context.dialect.name == "duckdb":
        context.cursor_fetch_strategy = FullyBufferedCursorFetchStrategy(
            cursor, initial_buffer=cursor.fetchall()
        )


def _validate(context: Any, source: Any, table: str, rules: list[Rule]) -> list[int]:
    """How many rows of one table break each of its rules."""
    asset = source.add_table_asset(table, table_name=table)
    batch = asset.add_batch_definition_whole_table("all").get_batch()
    expectations = [
        # Great Expectations warns of a query without its batch; ours look at several tables, so a comment names it.
        ExpectQueryToReturnNoRows(
            unexpected_rows_query=f"{rule.offending}\n/* of {{batch}} */",
            description=rule.says,
            meta={"rule": number},
        )
        for number, rule in enumerate(rules)
    ]
    suite = context.suites.add(gx.ExpectationSuite(name=table, expectations=expectations))
    broken = {}
    for result in batch.validate(suite, result_format="BASIC").results:
        info = result.exception_info or {}
        for exception in [info] if "exception_message" in info else info.values():
            if message := exception.get("exception_message"):
                raise not_checked(table, message)
        broken[result.expectation_config.meta["rule"]] = int(result.result["observed_value"])
    return [broken[number] for number in range(len(rules))]
