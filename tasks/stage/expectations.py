"""A custom expectation for Great Expectations. Import it only in a gate: the library takes seconds to load."""

from __future__ import annotations

from typing import Any, ClassVar

from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation


class ExpectQueryToReturnNoRows(UnexpectedRowsExpectation):
    """A query returns no row. The rows are counted only: the library's own expectation runs it again to fetch them."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.row_count",)

    def _validate(self, metrics: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        count = metrics["unexpected_rows_query.row_count"]
        return {"success": count == 0, "result": {"observed_value": count}}
