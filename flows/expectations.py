"""Great Expectations evaluates the gates of flow runs, and shows the results on pages. Takes seconds to import."""

import shutil
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import great_expectations as gx
from duckdb_engine import ConnectionWrapper
from great_expectations.data_context.types import base
from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation
from sqlalchemy import Engine, event
from sqlalchemy.engine.cursor import FullyBufferedCursorFetchStrategy as Fetched

from ssrem.tasks.stage.gate import Rule, not_checked


class NoRows(UnexpectedRowsExpectation):
    """Expects that a query returns no row. It only counts them: its base class runs the query again to fetch rows."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.row_count",)

    def _validate(self, metrics: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        count = metrics["unexpected_rows_query.row_count"]
        return {"success": count == 0, "result": {"observed_value": count}}


@event.listens_for(Engine, "after_cursor_execute")
def _fetch(_: Any, cursor: Any, statement: Any, parameters: Any, context: Any, many: Any) -> None:
    if context.dialect.name == "duckdb":  # the library closes the connection before it reads the result
        context.cursor_fetch_strategy = Fetched(cursor, initial_buffer=cursor.fetchall())


class Gates:
    """Gates that Great Expectations evaluates and shows together on pages in a folder, which `write` writes anew."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
        sites = {"gates": {"class_name": "SiteBuilder", "store_backend": store}}
        config: Any = base.DataContextConfig(store_backend_defaults=base.InMemoryStoreBackendDefaults())
        config.data_docs_sites, config.progress_bars = sites, {"globally": False}
        self.context: Any = gx.get_context(mode="ephemeral", project_config=config)

    def broken_rows(self, connection: Any, rules: Sequence[Rule]) -> list[int]:
        """The number of rows that break each rule of a gate, in order. GateError if a rule cannot be evaluated."""
        self.count += 1
        search = "SET search_path = 'main,published'"
        connect = {"creator": lambda: ConnectionWrapper(connection.cursor().execute(search))}
        about = {"name": f"gate {self.count}", "connection_string": "duckdb://", "kwargs": connect}
        source = self.context.data_sources.add_sql(**about)
        broken = {}
        for table, some in groupby(enumerate(rules), key=lambda numbered: numbered[1].table):
            name = f"{table} {self.count}"  # a stage may check a table at several gates
            expectations = [
                NoRows(
                    unexpected_rows_query=f"{rule.offending}\n/* {{batch}} */",  # it warns if the batch is missing
                    description=rule.says,
                    meta={"rule": number},
                )
                for number, rule in some
            ]
            # All are added at once, since the library writes the whole suite for each one added later.
            suite = self.context.suites.add(gx.ExpectationSuite(name, expectations=expectations))
            batch = source.add_table_asset(table, table_name=table).add_batch_definition_whole_table("all")
            validation = gx.ValidationDefinition(name=name, data=batch, suite=suite)
            for result in self.context.validation_definitions.add(validation).run().results:
                if "observed_value" not in result.result:
                    raise not_checked(table, next(iter(result.exception_info.values()))["exception_message"])
                broken[result.expectation_config.meta["rule"]] = result.result["observed_value"]
        source.get_engine().dispose()
        return [broken[number] for number in range(len(rules))]

    def write(self) -> Path:
        """Replace what is in the folder by the pages; returns the path of the first one."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.context.build_data_docs()
        return self.folder / "index.html"
