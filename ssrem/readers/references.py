"""References to messages and people that are written otherwise than their ids, such as `1.0` for `1`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

_FLOAT = r"^(\d{1,15}|[1-8]\d{15})\.0$"
"""A whole number below 2^53, or nearly so, from where on floats may stand for an integer that differs from them."""

_FORMS = (
    ("reply_to", "utterance_id", _FLOAT),
    ("addressee", "speaker", _FLOAT),
    ("reply_to", "utterance_id", r"^t[13]_(\w+)$"),
)
"""Column of references, column of the ids that they name, and a form of references: of integers that were stored as
floats because some are missing, and of Reddit's, which name the kind of the post. Group 1 is the id."""


class References:
    """Writes references as ids: one in a form of _FORMS, if no id of the dump is in that form, is its group 1.

    survey: gives the batches of the whole dump, which are read, until an id in the form is found, only if a reference
    is in the form.
    """

    def __init__(self, survey: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self._survey = survey
        self._of_ids: dict[tuple[str, str], bool] = {}

    def as_ids(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch of RAW_SCHEMA with its references written as ids."""
        for column, ids, form in _FORMS:
            if _any(batch[column], form) and not self._has_ids(ids, form):
                plain = pc.replace_substring_regex(batch[column], form, r"\1")
                batch = batch.set_column(batch.schema.get_field_index(column), column, plain)
        return batch

    def _has_ids(self, ids: str, form: str) -> bool:
        if (ids, form) not in self._of_ids:
            self._of_ids[ids, form] = any(_any(batch[ids], form) for batch in self._survey())
        return self._of_ids[ids, form]


def _any(values: pa.Array, form: str) -> bool:
    return values.null_count < len(values) and bool(pc.any(pc.match_substring_regex(values, form)).as_py())
