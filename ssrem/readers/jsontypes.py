"""Learns, from parsed JSON rows, an Arrow schema with which whole blocks of like rows can be read exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

_MOST_COLUMNS = 256  # and members of an object: keys that are data, such as ids, must not fill the memory


class LearnedSchema:
    """Column → Arrow type, from the rows seen. Only types that keep every value exactly are learned; a row
    with anything else (a fraction, a list of objects) leaves its column out, so that its block is read row by
    row.

    is_time: tells columns of times, where a number may be a fraction.
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
    """Whether a column can be called so: JSON's escapes can name half a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact_type(value: object) -> pa.DataType | None:
    """The Arrow type that keeps this JSON value exactly, or None."""
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
    """The type for values of both; where there is none, the newer."""
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
