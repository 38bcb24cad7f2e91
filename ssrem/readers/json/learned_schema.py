"""Arrow types of JSON values, learned row by row."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ssrem.readers.fields import Layout
from ssrem.readers.metadata import encodable

_MOST_COLUMNS = 256
"""Most columns, and most members of an object: objects whose keys are data, such as ids, must not fill the memory."""


class LearnedSchema:
    """An Arrow schema learned from parsed JSON rows, with which blocks of similar rows are read as whole columns.

    Only types that represent every value exactly are learned. A column with other values (fractions, lists of objects)
    stays out of the schema, so that its blocks are read row by row; only columns of times may hold fractions.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._types: dict[str, pa.DataType] = {}

    def learn(self, row: Mapping[str, object]) -> None:
        """Add the columns of a row, and widen their types so that they hold its values."""
        for name, value in row.items():
            if not encodable(name):
                continue
            kind = pa.float64() if _is_number(value) and self._is_time(name) else exact_type(value)
            if kind is not None and (name in self._types or len(self._types) < _MOST_COLUMNS):
                self._types[name] = _merged(self._types.get(name, pa.null()), kind)

    def schema(self) -> pa.Schema:
        """What was learned so far."""
        return pa.schema(list(self._types.items()))

    def _is_time(self, column: str) -> bool:
        return self._layout.plan((column,)).sources.get("time") == (column,)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact_type(value: object) -> pa.DataType | None:
    """The Arrow type that represents this JSON value exactly, or None."""
    match value:
        case None:
            return pa.null()
        case str():
            return pa.string()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case list() if all(isinstance(member, str) for member in value):
            return pa.list_(pa.string() if value else pa.null())
        case dict() if len(value) <= _MOST_COLUMNS and all(map(encodable, value)):
            members = {name: exact_type(member) for name, member in value.items()}
            return None if None in members.values() else pa.struct(list(members.items()))
    return None


def _merged(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """A type for the values of both; the newer one if there is none."""
    if pa.types.is_null(new):
        return old
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        members = {field.name: field.type for field in old}
        for field in new:
            if field.name in members or len(members) < _MOST_COLUMNS:
                members[field.name] = _merged(members.get(field.name, pa.null()), field.type)
        return pa.struct(list(members.items()))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_merged(old.value_type, new.value_type))
    return new
