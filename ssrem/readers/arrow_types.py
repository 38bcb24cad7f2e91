"""Arrow types of JSON values, learned row by row, and Arrow columns as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

_MOST_COLUMNS = 256
"""Most columns, and members of an object: objects whose keys are data, such as ids, must not fill the memory."""


class LearnedSchema:
    """An Arrow schema learned from parsed JSON rows, with which blocks of similar rows are read as whole columns.

    Only types that represent every value exactly are learned. A column with other values (fractions, lists of objects)
    stays out of the schema, so that its blocks are read row by row. is_time: whether a column holds times, which may
    be fractions.
    """

    def __init__(self, is_time: Callable[[str], bool]) -> None:
        self._is_time = is_time
        self._types: dict[str, pa.DataType] = {}

    def learn(self, row: Mapping[str, object]) -> None:
        for name, value in row.items():
            if not _can_be_written(name):
                continue
            kind = pa.float64() if _is_number(value) and self._is_time(name) else exact_type(value)
            if kind is None:
                continue
            known = self._types.get(name)
            if known is not None:
                self._types[name] = _merged(known, kind)
            elif len(self._types) < _MOST_COLUMNS:
                self._types[name] = kind

    def schema(self) -> pa.Schema:
        return pa.schema(list(self._types.items()))


def _can_be_written(name: str) -> bool:
    """Whether Arrow can store the name: JSON's escapes can write half a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact_type(value: object) -> pa.DataType | None:
    """The Arrow type that represents this JSON value exactly, or None."""
    if value is None:
        return pa.null()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64()
    if isinstance(value, list):
        if all(isinstance(member, str) for member in value):
            return pa.list_(pa.string() if value else pa.null())
        return None
    if isinstance(value, dict):
        if len(value) > _MOST_COLUMNS or not all(map(_can_be_written, value)):
            return None
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
            if field.name not in members and len(members) >= _MOST_COLUMNS:
                continue
            members[field.name] = _merged(members.get(field.name, pa.null()), field.type)
        return pa.struct(list(members.items()))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_merged(old.value_type, new.value_type))
    return new


def python_values(column: pa.Array) -> list[object]:
    """The column's values.

    If Python cannot represent one of them (a date in the year 300,000, an unknown time zone, text that is not UTF-8),
    all times of the column are returned as the stored integers, and all texts as the stored bytes.
    """
    try:
        values: list[object] = column.to_pylist()
    except (ArithmeticError, ValueError, LookupError):
        values = column.cast(_stored(column.type), safe=False).to_pylist()
    return values


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.int64() if kind.bit_width == 64 else pa.int32()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(_stored(kind.value_type))
    return kind
