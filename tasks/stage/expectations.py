"""An expectation of our own for Great Expectations. Import it only in a gate: the library takes seconds to load."""

from __future__ import annotations

from typing import Any, ClassVar

from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation


class ExpectQueryToReturnNoRows(UnexpectedRowsExpectation):
    """A query returns no row. It is counted and nothing more: the library's own runs it again to fetch the rows."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.row_count",)

    def _validate(self, metrics: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        count = metrics["unexpected_rows_query.row_count"]
        return {"success": count == 0, "result": {"observed_value": count}}
